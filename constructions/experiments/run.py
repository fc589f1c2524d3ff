"""The experiments of *Understanding Input Selectivity in Mamba*, with built weights in place of trained ones.

Paper B's chains, which models also write by themselves.

Figures 2, A.2 and A.3 (MQAR over a grid), Table 1 (KEEP FIFTH) and Figure 3 (induction heads, with
the hard setting of App. D.4). Each row compares the paper's bound, the size that was built and the
information bound: the bits that any state must hold, beside the state entries that ours has.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from compiler.artifact.package import bare_sizes
from compiler.errors import CompileError
from constructions import artifact
from constructions.construction import Construction
from constructions.copy_dp.chains import PAPER
from constructions.experiments.chains import chains, every_chain
from constructions.selectivity.induction_heads import InductionHeads
from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from verify.check import Verification


def figure_2() -> Iterator[Construction]:
    for arch, vocab, kappa in product(("mamba", "mamba2", "s4d"), (128, 256, 512), (4, 8, 16, 32)):
        yield MQAR(kappa=kappa, vocab=vocab, arch=arch, length=100)


def table_1() -> Iterator[Construction]:
    for arch in ("mamba", "mamba2"):
        yield KeepNth(n=5, vocab=128, length=50, arch=arch)


def figure_3() -> Iterator[Construction]:
    for arch, vocab in product(("mamba", "mamba-delta-t", "mamba2"), (5, 10, 20, 40)):
        yield InductionHeads(vocab=vocab, length=100, arch=arch)


EXPERIMENTS: dict[str, Callable[[], Iterator[Construction]]] = {
    "figure-2": figure_2,
    "table-1": table_1,
    "figure-3": figure_3,
    "chains": chains,
    "every-chain": every_chain,
}
EXHAUSTIVE = ("every-chain",)
WRITTEN = ("chains", "every-chain")  # whose models also write their chains, from a saved checkpoint


@dataclass(frozen=True)
class Row:
    """One built model of an experiment.

    used: the largest of each size over its blocks, state: of d_inner·d_state; refused: why there is no model in this
    dtype, "" where there is one; written: what each runtime wrote by itself; samples, seed: what was asked for, and
    seconds: how long it took from the circuit to the last token, and cpu_seconds: of processor time, which other
    programs on the machine do not change; 0.0 where it was not taken;
    parameters_of_model: of the bare modules.
    """

    arch: str
    parameters: str
    dtype: str
    bound: dict[str, int]
    accuracy: float = 1.0
    bit_exact: bool = True
    queries: int = 0
    used: dict[str, int] = field(default_factory=dict)
    state_entries: int = 0
    information_bits: float = 0.0
    refused: str = ""
    written: tuple[dict, ...] = ()
    samples: int = 0
    seed: int = 0
    seconds: float = 0.0
    parameters_of_model: int = 0
    bound_source: str = ""
    cpu_seconds: float = 0.0

    @property
    def good(self) -> bool:
        return self.accuracy == 1 and self.bit_exact and not any(run["wrong"] for run in self.written)


def chosen(experiment: str, only: Sequence[str] = ()) -> list[Construction]:
    """The models of an experiment; only: those that one of these texts names, each by its program, mixer and dtype.

    ValueError where a text names none.
    """
    models = list(EXPERIMENTS[experiment]())
    named = {text: [c for c in models if set(text.split()) <= {c.name, c.target, c.dtype}] for text in only}
    for text, found in named.items():
        if not found:
            known = ", ".join(dict.fromkeys(c.name for c in models))
            raise ValueError(
                f"--only {text!r}: {experiment} has no such model; name a program ({known}), mixer or dtype"
            )
    return [c for c in models if not only or any(c in found for found in named.values())]


def run(experiment: str, construction: Construction, samples: int, seed: int) -> Row:
    """Build and run a model of an experiment: adversarial cases and `samples` random sequences.

    "every-chain" runs every sequence instead. A dtype other than float32 may be refused, which is a row too.
    """
    mode = "exhaustive" if experiment in EXHAUSTIVE else "random"
    began, worked = time.perf_counter(), time.process_time()
    told = (*row_key(construction), construction.bound())
    asked = lambda: {
        "samples": samples,
        "seed": seed,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(time.process_time() - worked, 1),
    }
    try:
        built = artifact.build(construction)
    except CompileError as reason:
        if construction.dtype == "float32":
            raise
        return Row(*told, refused=str(reason.reasons[0][1]), **asked())
    written = _written(built, seed, every=mode == "exhaustive") if experiment in WRITTEN else ()
    row = _row(built, told, mode, samples, seed, written)
    return replace(row, **asked())


def row_key(construction: Construction) -> tuple[str, str, str]:
    """(mixer, parameters, dtype) of a model, as its row has them."""
    return construction.target, _parameters(construction), construction.dtype


def _row(built: artifact.Built, told: tuple, mode: str, samples: int, seed: int, written: tuple[dict, ...]) -> Row:
    most = min(samples, *(task.most_random for task in built.construction.tasks()))
    results = artifact.verify(built, built.bare_stack(), mode, most, seed, bare=True)
    total, sizes = sum(results.values(), start=Verification()), bare_sizes(built.compiled)
    return Row(
        *told,
        total.accuracy,
        total.bit_exact,
        total.queries,
        {name: max(getattr(size, name) for size in sizes) for name in ("d_model", "d_inner", "d_state")}
        | {"state": max(size.d_inner * size.d_state for size in sizes)},
        sum(built.compiled.context.target.state_entries(block) for block in built.compiled.blocks),
        built.construction.information_bits(),
        written=written,
        parameters_of_model=sum(p.numel() for p in built.bare_stack().parameters()),
        bound_source=built.construction.bound_source(),
    )


def _written(built: artifact.Built, seed: int, every: bool) -> tuple[dict, ...]:
    """What each runtime writes from a saved checkpoint, against the solver."""
    with TemporaryDirectory() as directory:
        checkpoint = Path(directory) / "checkpoint"
        artifact.save(built, {}, checkpoint)
        return tuple(artifact.generations(built, checkpoint, every))


def _parameters(construction: Construction) -> str:
    hidden = ("arch", "dtype", "seed", "max_length") if construction.theorem.startswith(PAPER) else ()
    shown = ("kappa", "vocab", "n")
    given = {k: v for k, v in construction.params().items() if (k not in hidden if hidden else k in shown)}
    told = " ".join(f"{name}={value}" for name, value in given.items())
    return f"{construction.name} {told}" if hidden else told
