"""What a run of the compiler did, step by step: `construct show NAME --passes` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

AS_WRITTEN = "as written"


@dataclass(frozen=True)
class Step:
    """A pass that ran, or a strategy or variant that was left.

    attempt: the strategy or variant under which it ran; said: what it changed, or why it refused.
    """

    attempt: str
    name: str
    said: str
    refused: bool = False


def told(steps: Sequence[Step]) -> str:
    """All steps as text, by attempt."""
    return "\n".join(_lines(steps)) + "\n"


def _lines(steps: Sequence[Step]) -> Iterator[str]:
    attempt, width = None, max((len(step.name) for step in steps), default=0)
    for step in steps:
        if step.attempt != attempt:
            attempt = step.attempt
            yield attempt
        yield f"  {step.name:{width}}  {'refused: ' if step.refused else ''}{step.said}"
