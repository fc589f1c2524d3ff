"""Columns: no state has more columns than its author allowed."""

from __future__ import annotations

from compiler.context import Context
from compiler.errors import CompileError
from compiler.ir.block import SelectiveBlock
from compiler.language.stream import Stream


def check_columns(blocks: tuple[SelectiveBlock, ...], context: Context) -> None:
    """Raise CompileError naming each operation whose columns are more than was asked for."""
    limit = context.columns
    if not limit.asked or limit.most is None:
        return
    reasons: list[tuple[Stream | None, str]] = []
    for block in blocks:
        if block.d_state > limit.most:
            text = f"its state has {block.d_state} columns, and max_d_state is {limit.most}; {block.d_state} would do"
            reasons.append((block.columns.coordinates[0].reader, text))
    if reasons:
        raise CompileError(reasons)
