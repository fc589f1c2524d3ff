"""Decisions: a flag made of a real number is that flag to the last bit."""

from __future__ import annotations

from compiler.context import Context
from compiler.errors import CompileError
from compiler.exactness.error_bound import error_bound
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import with_operation


def check_decisions(circuit: Circuit, context: Context) -> None:
    """Raise CompileError where real numbers are compared and may be further off than their gap allows."""
    settled = [stream for stream, half in with_operation(circuit.streams, ops.Half) if half.settled]
    if not settled or error_bound(circuit, context.domains, context.format, context.target.chunk) is not None:
        return
    reason = (
        f"it decides about a real number, and nothing shows that {context.format.name} is near enough to it for its "
        "gap; a wider gap may do, and exceeds(a, b, gap) is no flag and needs none"
    )
    raise CompileError([(settled[0], reason)])
