"""Kernel certificate: the worst margin of a one-block memory that never forgets, over all inputs of a language.

Statement. Let a module be one real block (Mamba, Mamba-2, S4D) between an embedding and a head, with A = 0 wherever the
state is written. Then h_t = Σ_{s≤t} Δ(w_s) B(w_s) x̂(w_s), where w_s is the window of the last tokens that the
convolution reads, so that the logits at t are own(w_t) + Σ_{s≤t} K(w_s, w_t): a sum over pairs of windows, whatever the
length. All windows are enumerated and K is taken from the module's tensors (`mixer.py`). At a window that asks for a
slot in which exactly one window has stored, `kernel_bound.py` bounds logit(right) − logit(any other) from below over
every sequence of the language. If the least bound is positive, every query of every sequence is answered right.

Exactness. No float32 sum of the module rounds, in any order of summation, so the logits are the numbers of this proof:
what enters the state is checked in `mixer.py`, the state and what is read from it here (`lattice.py` for the argument).
Rests on: a softplus, silu and exp that are exact at 0 and on the safe set, and exp(−0) = 1.

The margin is a lower bound, attained if the worst windows fit into one sequence, as they do in the circuits of Theorems
2 and 4. A margin of 0 or less proves nothing, neither right nor wrong: writes that always come in cancelling pairs, as
those of key codes in one group of Mamba-2 do, are counted as if each could come alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from compiler.artifact.model import Stack
from compiler.language.input_language import InputLanguage
from verify.certificates.ask import Ask
from verify.certificates.certificate import Certificate, Refused
from verify.certificates.finite import check_finite
from verify.certificates.kernel_bound import KernelBound, Worst, occurrences
from verify.certificates.kernel_scan import Scan, scan
from verify.certificates.lattice import Lattice, exponent
from verify.certificates.mixer import Mixer, read_mixer
from verify.certificates.windows import spell


@dataclass(frozen=True)
class KernelCertificate(Certificate):
    """windows, writes, reads: how many windows were gone through, write to the state, and kinds of reads there are.

    worst: the read, the write, the competitor and the sums behind the margin.
    """

    windows: int
    writes: int
    reads: int
    worst: dict[str, str | float]
    level: ClassVar = "margin-certified"


def certify_kernel(stack: Stack, language: InputLanguage, ask: Ask) -> KernelCertificate:
    """The least margin over every sequence of the language; the claim is proved if it `holds`.

    Raises Refused with the reason when the module is none of which this proof speaks.
    """
    if ask.policy != "once" or ask.otherwise is not None:
        raise Refused("a memory that adds up its writes answers slots written once, and this task asks for more")
    if len(stack.blocks) != 1 or stack.norms is not None or stack.final_norm is not None:
        raise Refused(
            f"the kernel certificate is for one block without norms, and this module has {len(stack.blocks)} "
            f"blocks{' and norms' if stack.norms else ''}"
        )
    embedding = stack.embedding.weight.detach().double().numpy()[: language.alphabet.size]
    head = stack.head.weight.detach().double().numpy()
    check_finite(stack)
    mixer = read_mixer(stack.blocks[0], embedding)
    stream = embedding if stack.residual else np.zeros_like(embedding)
    found = scan(mixer, language, ask, stream)
    bound = KernelBound(mixer, found, head, language)
    results = [worst for read in found.reads if (worst := bound.worst(read)) is not None]
    if not results:
        raise Refused("no slot that is asked for is ever stored, so there is nothing to prove")
    worst = min(results, key=lambda result: result.margin)
    if worst.margin > 0:
        _check_sums(mixer, found, head, stream, language)
    names = language.alphabet.tokens
    domain = f"{language.description}; at most {language.max_length} tokens; float32"
    return KernelCertificate(
        worst.margin, domain, found.count, len(found.writes.windows), len(found.reads), _told(worst, names)
    )


def _told(worst: Worst, names: tuple[str, ...]) -> dict[str, str | float]:
    return {
        "read": spell(worst.read, names),
        "stored": spell(worst.stored, names),
        "answer": names[worst.answer],
        "competitor": names[worst.competitor] if worst.competitor < len(names) else f"#{worst.competitor}",
        "signal": worst.signal,
        "interference": worst.interference,
    }


def _check_sums(mixer: Mixer, found: Scan, head: np.ndarray, stream: np.ndarray, language: InputLanguage) -> None:
    """Refuse if float32 could round the state, or what a read makes of it."""
    state = _state_bounds(found, language)
    steps = state.exact("the state of (channel, column)").exponent
    columns, gates = (np.array([getattr(read, part) for read in found.reads]) for part in ("columns", "gate"))
    used = (columns != 0).any(axis=0) & (state.bound > 0)
    scale = np.where(used, exponent(columns).min(axis=0) + steps, exponent(np.zeros(1))).min(axis=1)
    skipped = mixer.lattices.x.times(Lattice.of(mixer.skip[None]))
    y = np.abs(columns) @ state.bound.T + skipped.bound  # (reads, channels)
    Lattice(y.max(axis=0), np.minimum(scale, skipped.exponent)).exact("y of channel")
    gated = Lattice((y * np.abs(gates)).max(axis=0), np.minimum(scale, skipped.exponent) + exponent(gates).min(axis=0))
    out = gated.exact("the gated channel").through(mixer.out).plus(Lattice.of(stream)).exact("out_proj row")
    out.through(head).exact("logit")


def _state_bounds(found: Scan, language: InputLanguage) -> Lattice:
    """|h| ≤ Σ_a cap(a) · max |Δ x̂| · max |B| over windows with token a at a lag, for the best lag: (channels,
    columns).
    """
    writes = found.writes
    bound: np.ndarray | None = None
    for lag in range(writes.windows.shape[1]):
        caps, tokens = occurrences(language, lag), writes.windows[:, lag] + 1
        charge, columns = (_largest(part, tokens, len(caps)) for part in (writes.charge, writes.columns))
        total = (caps[:, None] * charge).T @ columns
        bound = total if bound is None else np.minimum(bound, total)
    assert bound is not None, "a window has at least the present position"
    charge, columns = (_finest(part) for part in (writes.charge, writes.columns))
    return Lattice(bound, charge[:, None] + columns)


def _largest(matrix, groups: np.ndarray, count: int) -> np.ndarray:
    """The largest |entry| of each column among the rows of each group: (groups, columns)."""
    coo = matrix.tocoo()
    result = np.zeros((count, matrix.shape[1]))
    np.maximum.at(result, (groups[coo.row], coo.col), np.abs(coo.data))
    return result


def _finest(matrix) -> np.ndarray:
    """The least exponent in each column."""
    coo = matrix.tocoo()
    result = np.repeat(exponent(np.zeros(1)), matrix.shape[1])
    np.minimum.at(result, coo.col, exponent(coo.data))
    return result
