"""The expression that names a stream which was given no name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.language.stream import Stream

_LONGEST_OPERAND = 28  # characters of an operand


def expression(stream: Stream, depth: int) -> str:
    """`depth == 3` for what was written so; long operands and those further than `depth` deep are cut short."""
    if stream.name:
        return stream.name
    if not stream.inputs:
        return stream.operation.written()
    if not depth:
        return "…"
    operands = [_shortened(expression(source, depth - 1)) for source in stream.inputs[:4]]
    if len(stream.inputs) > len(operands):
        return f"{stream.operation.symbol}({', '.join(operands)}, …)"
    return stream.operation.written(*operands)


def _shortened(written: str) -> str:
    if len(written) <= _LONGEST_OPERAND:
        return written
    head = written.partition("(")[0]
    return f"{head}(…)" if head.isidentifier() and written.endswith(")") else "…"
