"""What the compiler found wrong, for commands that name a remedy of their own."""

from __future__ import annotations

from compiler.errors import CompileError


def fact_of(error: CompileError) -> str:
    """The first reason of a refusal, without the compiler's advice: that speaks of bounds and weights of a circuit."""
    reason = error.reasons[0][1]
    return reason.rpartition("; ")[0] or reason
