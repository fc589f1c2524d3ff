"""A row of an experiment, run: the paper's number beside what is built, its sizes and bounds, and what is trained."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from compiler.artifact.package import bare_sizes
from compiler.errors import CompileError
from constructions.checkpoints import artifact
from constructions.checkpoints.built import Built, build
from constructions.construction import CircuitFamily
from constructions.experiments.catalogue import EXPERIMENTS
from constructions.experiments.details import detail_of
from constructions.experiments.entry import Entry, Measured
from constructions.papers import FREE_LUNCH
from verify.check import Verification

SIZES = ("d_model", "d_inner", "d_state")


@dataclass(frozen=True)
class Row:
    """One row of an experiment: arch, parameters and dtype are of the built model, "" where none is.

    used: the largest of each size over its blocks, state: of d_inner·d_state; refused: why there is no model in this
    dtype, "" where there is one; written: what each runtime wrote by itself; samples, seed: what was asked for, and
    seconds: how long it took from the circuit to the last token, and cpu_seconds: of processor time, which other
    programs on the machine do not change; 0.0 where it was not taken;
    bit_exact: whether all scores were the interpreter's, or as near as promised where real numbers are read;
    parameters_of_model: of the bare modules; promise: "random" where most answers are promised and not all.
    model, paper, room, cannot, ceiling, absent, controls, detail: as its Entry has them (`experiments.entry`), a
    theorem by its statement and the most answers that it allows, controls by their descriptions.
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
    promise: str = "all"
    model: str = ""
    paper: str = ""
    room: tuple[int, int] = (0, 0)
    cannot: str = ""
    ceiling: float = 1.0
    absent: str = ""
    controls: tuple[str, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, ...]:
        """Which row of its experiment it is."""
        return self.arch, self.parameters, self.dtype, self.model, self.paper, _room(self.room)

    @property
    def good(self) -> bool:
        right = self.accuracy == 1 or self.promise == "random"
        return right and self.bit_exact and not any(run["wrong"] for run in self.written)

    @property
    def fits(self) -> bool:
        """Whether what is built has no more channels and columns than the paper's model."""
        return all(self.used[name] <= most for name, most in zip(SIZES[1:], self.room, strict=True) if most)


def chosen(experiment: str, only: Sequence[str] = ()) -> list[Entry]:
    """The rows of an experiment; only: those that one of these texts names, each by its program, mixer and dtype.

    ValueError where a text names none.
    """
    entries = list(EXPERIMENTS[experiment].entries())
    named = {text: [e for e in entries if set(text.split()) <= _words(e)] for text in only}
    for text, found in named.items():
        if not found:
            known = ", ".join(dict.fromkeys(e.built.name if e.built else e.model for e in entries))
            raise ValueError(
                f"--only {text!r}: {experiment} has no such model; name a program ({known}), mixer or dtype"
            )
    return [e for e in entries if not only or any(e in found for found in named.values())]


def _words(entry: Entry) -> set[str]:
    built = entry.built
    return set(entry.model.split()) | ({built.name, built.target, built.dtype} if built else set())


def run(experiment: str, entry: Entry, samples: int, seed: int) -> Row:
    """Build and run the model of a row: adversarial cases and `samples` random sequences.

    "every-chain" runs every sequence instead. A dtype other than float32 may be refused, which is a row too, as is a
    machine that cannot hold the circuit. Where nothing is built the row says why.
    """
    began, worked = time.perf_counter(), time.process_time()
    row = replace(_measured(EXPERIMENTS[experiment].mode, EXPERIMENTS[experiment].written, entry.built, samples, seed))
    return replace(
        row,
        samples=samples,
        seed=seed,
        seconds=round(time.perf_counter() - began, 1),
        cpu_seconds=round(time.process_time() - worked, 1),
        model=entry.model,
        paper=entry.paper,
        room=entry.room,
        cannot=entry.cannot.statement if entry.cannot else "",
        ceiling=entry.cannot.ceiling if entry.cannot else 1.0,
        absent=entry.absent,
        controls=tuple(control.describe() for control in entry.controls),
        detail=detail_of(entry) if entry.detail else {},
    )


def row_key(entry: Entry) -> tuple[str, ...]:
    """`Row.key` of an entry that has not been run."""
    built = entry.built
    told = (built.target, _parameters(built), built.dtype) if built else ("", "", "")
    return *told, entry.model, entry.paper, _room(entry.room)


def _room(room: tuple[int, int]) -> str:
    return f"{room[0]:04}·{room[1]:04}"


@cache
def _measured(mode: str, written: bool, built: CircuitFamily | Measured | None, samples: int, seed: int) -> Row:
    """What is measured of a built model, once for all rows that it stands in."""
    if built is None:
        return Row("", "", "", {})
    if not isinstance(built, CircuitFamily):
        return _on_a_machine(built, samples, seed)
    told = (built.target, _parameters(built), built.dtype, built.bound())
    try:
        compiled = build(built)
    except CompileError as reason:
        if built.dtype == "float32":
            raise
        return Row(*told, refused=str(reason.reasons[0][1]))
    chains = _written(compiled, seed, every=mode == "exhaustive") if written else ()
    return _row(compiled, told, mode, samples, seed, chains)


def _on_a_machine(built: Measured, samples: int, seed: int) -> Row:
    told = (built.target, built.told(), built.dtype, {})
    try:
        return Row(*told, **built.measure(samples, seed))
    except CompileError as reason:
        return Row(*told, refused="; ".join(dict.fromkeys(str(why) for _, why in reason.reasons)))


def _row(built: Built, told: tuple, mode: str, samples: int, seed: int, written: tuple[dict, ...]) -> Row:
    most = min(samples, *(task.most_random for task in built.construction.tasks()))
    stack = built.stack() if built.over_numbers else built.bare_stack()
    bounded = artifact.promised_level(built) != artifact.EXACT
    results = artifact.verify(built, stack, mode, most, seed, bare=True)
    total, sizes = sum(results.values(), start=Verification()), bare_sizes(built.compiled)
    return Row(
        *told,
        total.accuracy,
        total.within if bounded else total.bit_exact,
        total.queries,
        {name: max(getattr(size, name) for size in sizes) for name in SIZES}
        | {"state": max(size.d_inner * size.d_state for size in sizes), "layers": len(sizes)},
        sum(built.compiled.context.target.state_entries(block) for block in built.compiled.blocks),
        built.construction.information_bits(),
        written=written,
        parameters_of_model=sum(p.numel() for p in stack.parameters()),
        bound_source=built.construction.bound_source(),
        promise=built.construction.promise(),
    )


def _written(built: Built, seed: int, every: bool) -> tuple[dict, ...]:
    """What each runtime writes from a saved checkpoint, against the solver."""
    with TemporaryDirectory() as directory:
        checkpoint = Path(directory) / "checkpoint"
        artifact.save(built, {}, checkpoint)
        return tuple(artifact.generations(built, checkpoint, every))


def _parameters(construction: CircuitFamily | Measured) -> str:
    if not isinstance(construction, CircuitFamily):
        return construction.told()
    hidden = ("arch", "dtype", "seed", "max_length") if construction.theorem.startswith(FREE_LUNCH) else ()
    shown = ("kappa", "vocab", "n", "largest", "key_code", "max_d_state")
    given = {k: v for k, v in construction.params().items() if (k not in hidden if hidden else k in shown and v)}
    told = " ".join(f"{name}={value}" for name, value in given.items())
    return f"{construction.name} {told}" if hidden else told
