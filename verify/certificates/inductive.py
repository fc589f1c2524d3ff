"""Inductive certificate: latches that are right after every window are right after every sequence, of any length.

Statement. Let all but the last block of a stack keep no state, and let the last keep one number per channel. Then what
a step does to channel c depends on the window w of the last tokens and on the channel's own state h only. Let S_c hold
0 and every value that some window writes from 0. For every w, the first positions of a sequence included, and every h
in S_c, the module's own `step()` is run and must (a) leave h as it is, or write a value of S_c that does not depend on
h, whichever the block IR says, bit for bit; (b) hand to out_proj the IR's number, bit for bit. By induction over
positions no channel ever leaves S_c, and state and gated output are the IR's at every position of every sequence. The
last map, head · out_proj, is the IR's matrix and cannot round on such numbers (`lattice.py`), so the logits are the
IR's, bit for bit. Channels are independent: the joint state is never enumerated.

With a task (`Ask`) it is also proved that they answer it; see `latch_answers.py`. Rests on elementwise operations that
do not depend on the place in a batch, and is about `step()`; the scans compute the same where E4 of exact-arithmetic
holds for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from compiler.artifact.model import Stack
from compiler.driver import Compiled
from verify.certificates.ask import Ask
from verify.certificates.certificate import Certificate, Refused
from verify.certificates.finite import check_finite
from verify.certificates.latch_answers import Answers
from verify.certificates.latch_rule import Comparison, last_block, rule
from verify.certificates.lattice import Lattice
from verify.certificates.stepper import Stepper
from verify.certificates.windows import after

MOST_VALUES = 8


@dataclass(frozen=True)
class InductiveCertificate(Certificate):
    """windows, steps: how many windows there are, and real steps taken from them; channels: latches proved.

    values: the most that one holds.
    """

    windows: int
    steps: int
    channels: int
    values: int
    level: ClassVar = "bit-exact"


def certify_latches(stack: Stack, compiled: Compiled, ask: Ask | None = None) -> InductiveCertificate:
    """Prove the last block's latches, and with `ask` the answers, for sequences of every length over the alphabet.

    Raises Violated, naming a channel and a window, where a step is wrong, and Refused where the module holds no
    latches.
    """
    block, tokens = last_block(compiled), _tokens(compiled)
    stepper = Stepper(stack, tokens, ask.reach if ask else 1)
    check_finite(stack)
    comparison = Comparison(stack, compiled)
    values = _values(stepper, comparison)
    answers = Answers(stack, ask, values, comparison) if ask else None
    gated, passing = _Seen(stepper.channels), _Seen(stack.embedding.embedding_dim)
    for token in tokens:
        windows = after(stepper.histories, token)
        ruled = rule(compiled, windows)
        steps = [stepper.step(token, state) for state in values]
        for real in steps:
            comparison.check(real, ruled, windows)
            gated.add(real.gated)
            passing.add(real.stream)
        if answers:
            answers.collect(windows, steps, ruled)
    _check_last_sums(stack, gated.lattice, passing.lattice)
    count = len(tokens) * len(stepper.histories)
    domain = f"every sequence of {len(tokens)} tokens, of every length, by step(); float32"
    margin = answers.margin() if answers else None
    return InductiveCertificate(margin, domain, count, count * len(values), len(block.channels.names), len(values))


def _tokens(compiled: Compiled) -> list[int]:
    """The tokens that the input language uses at all."""
    language = compiled.source.language
    return (
        np.flatnonzero(language.occurrences).tolist() if language else list(range(compiled.source.token_alphabet.size))
    )


def _values(stepper: Stepper, comparison: Comparison) -> np.ndarray:
    """S_c of every channel, 0 first and 0 where a channel has fewer: (most values, channels) float32."""
    known = np.zeros((1, stepper.channels), dtype=np.float32)
    for token in stepper.tokens:
        found = stepper.step(token, known[0]).after
        while True:
            new = ~(found[None] == known[:, None]).any(axis=0)
            if not new.any():
                break
            first = np.take_along_axis(found, new.argmax(axis=0)[None], axis=0)[0]
            known = _with(known, np.where(new.any(axis=0), first, 0))
            if len(known) > MOST_VALUES:
                channel = int(new.any(axis=0).argmax())
                raise Refused(
                    f"channel {comparison.name(channel)} holds more than {MOST_VALUES} values, and the "
                    "certificate goes through no more"
                )
    return known


def _with(known: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The values with one more, where it is not 0, in each channel's first free place."""
    grown = np.vstack([known, np.zeros_like(new)[None]])
    free = 1 + (grown[1:] == 0).argmax(axis=0)
    channels = np.flatnonzero(new)
    grown[free[channels], channels] = new[channels]
    return grown[: 1 + int((grown[1:] != 0).any(axis=1).sum())]


class _Seen:
    """The lattice of all rows seen so far."""

    def __init__(self, width: int):
        self.lattice = Lattice.of(np.zeros((1, width)))

    def add(self, rows: np.ndarray) -> None:
        new, old = Lattice.of(rows.astype(np.float64)), self.lattice
        self.lattice = Lattice(np.maximum(old.bound, new.bound), np.minimum(old.exponent, new.exponent))


def _check_last_sums(stack: Stack, gated: Lattice, passing: Lattice) -> None:
    """Refuse if out_proj or the head could round in float32."""
    out, head = (layer.weight.detach().double().numpy() for layer in (stack.blocks[-1].out_proj, stack.head))
    gated.through(out).plus(passing).exact("out_proj row").through(head).exact("logit")
