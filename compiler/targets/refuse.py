"""Refusals that targets share: parts of a block that a module has no place for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compiler.errors import CompileError
from compiler.ir.block import SelectiveBlock


def refuse(target: str, found: Iterator[str]) -> None:
    """Raise CompileError with all that was found; nothing where nothing was."""
    reasons = [(None, f"{target} has no place for {what}") for what in found]
    if reasons:
        raise CompileError(reasons)


def column_steps(block: SelectiveBlock) -> Iterator[str]:
    """Steps that belong to the columns."""
    if block.columns.step is not None:
        yield "steps of the columns: its Δ belongs to the channels (this block is of mamba-delta-t)"


def column_groups(block: SelectiveBlock) -> Iterator[str]:
    """A direct sum of column groups."""
    if block.foreign is not None:
        yield "a direct sum of column groups: a channel has one decay for all columns (this block is of mamba)"


def steps_from_lanes(block: SelectiveBlock) -> Iterator[str]:
    """Steps that are linear in the present lanes."""
    yield from _rows(block, block.channels.delta_lanes, "lanes")


def steps_from_features(block: SelectiveBlock) -> Iterator[str]:
    """Steps that are linear in x̂."""
    yield from _rows(block, block.channels.delta_features, "x̂")


def _rows(block: SelectiveBlock, matrix, what: str) -> Iterator[str]:
    used = np.flatnonzero(np.diff(matrix.indptr))
    if len(used):
        yield f"a step that is linear in {what}: channel {block.channels.names[used[0]]} has one"
