"""Checkpoints of circuits over numbers: the option --out of their commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from compiler.artifact.manifest import read_manifest
from compiler.artifact.numbers_config import POSITION, NumberInput
from constructions.command.requests import directory

if TYPE_CHECKING:
    from constructions.command.display import Bars
    from constructions.construction import NumericConstruction

Out = Annotated[
    Path | None,
    typer.Option(parser=directory, metavar="PATH", help="save the model over numbers in this directory"),
]
Force = Annotated[bool, typer.Option(help="replace an earlier checkpoint")]
SAMPLES = 128


@dataclass(frozen=True)
class Saved:
    """good: whether what was built is verified; told: what a report says of it."""

    good: bool
    told: dict[str, Any]


def check_out(out: Path | None, force: bool) -> None:
    """What --out and --force ask for can be done: ValueError or CheckpointError before any work is."""
    if out is None:
        if force:
            raise ValueError("--force says what may be replaced, and there is no --out; give one, or leave it out.")
        return
    from compiler.artifact.save import check_target

    check_target(out, overwrite=force)


def checkpoint(construction: NumericConstruction, out: Path | None, force: bool, bars: Bars) -> Saved:
    """Build, verify and save a construction where --out asks for it; nothing is written that does not verify."""
    if out is None:
        return Saved(True, {})
    from constructions.checkpoints import artifact
    from constructions.checkpoints.built import build
    from constructions.checkpoints.guarantee import proof_of

    with bars.stage("compile for the checkpoint"):
        built = build(construction)
    results = artifact.verify(built, built.stack(), "auto", SAMPLES, construction.seed, bars.form("checkpoint"))
    good = artifact.passed(built, results)
    if good:
        artifact.save(built, results, out, None, proof_of(built), overwrite=force)
    return Saved(good, {"out": str(out) if good else None})


def over_numbers(directory: Path) -> bool:
    """Whether a checkpoint holds a model over numbers; CheckpointError where it is none of ours."""
    return read_manifest(directory).promise.over_numbers


def need_tokens(directory: Path, reason: str) -> None:
    """ValueError, with the reason, for a checkpoint over numbers."""
    if over_numbers(directory):
        raise ValueError(f"{directory} holds a model over numbers: {reason}")


def read_numbers(text: str, inputs: Sequence[NumberInput]) -> dict[str, np.ndarray]:
    """Values of inputs from text: positions by white space, numbers of a position by commas, inputs by semicolons.

    Such as "1 -2.5 3" for a single input of width 1, or "x = 1,2 3,4; n = 0 1". The position may be left out.
    ValueError in one sentence for anything else.
    """
    known = {record.name: record for record in inputs}
    needed = [name for name in known if name != POSITION]
    values: dict[str, np.ndarray] = {}
    for part in filter(str.strip, text.split(";")):
        name, equals, numbers = part.rpartition("=")
        name = name.strip() if equals or len(needed) != 1 else needed[0]
        if name not in known:
            raise ValueError(f"--input {part.strip()!r} must be NAME = NUMBERS; the inputs are {', '.join(known)}.")
        values[name] = _rows(numbers, known[name])
    missing = [name for name in needed if name not in values]
    if missing:
        raise ValueError(f"--input has no numbers for {missing[0]}; its inputs are {', '.join(map(str, inputs))}.")
    if len({len(rows) for rows in values.values()}) > 1:
        raise ValueError("--input has inputs of different lengths; every one needs as many positions.")
    return {name: rows[None] for name, rows in values.items()}


def _rows(text: str, record: NumberInput) -> np.ndarray:
    """(positions, width) numbers."""
    try:
        rows = [[float(number) for number in position.split(",")] for position in text.split()]
    except ValueError as reason:
        raise ValueError(f"--input holds {str(reason).rpartition(': ')[2]}, which is no number.") from None
    if not rows or any(len(row) != record.width for row in rows):
        raise ValueError(f"--input needs {record.width} numbers, by commas, at every position of {record.name}.")
    return np.array(rows)
