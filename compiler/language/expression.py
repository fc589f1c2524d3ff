"""The expression that names a stream which was given no name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from compiler.language.operations import Operation

_LONGEST_OPERAND = 28  # characters of an operand


class Written(Protocol):
    """What an expression is read from: a stream."""

    name: str | None
    operation: Operation

    @property
    def inputs(self) -> Sequence[Written]: ...


def expression(stream: Written, depth: int) -> str:
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
