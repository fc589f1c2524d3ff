"""What the compiler says when it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.language.stream import Stream
from compiler.steps import Step


class CompileError(ValueError):
    """A circuit that cannot be compiled exactly, with every reason found.

    reasons: (stream or None, one sentence) pairs; steps: of what `compile` refuses, what the passes did until then.
    """

    steps: tuple[Step, ...] = ()

    def __init__(self, reasons: Sequence[tuple[Stream | None, str]]):
        self.reasons = tuple(reasons)
        lines = dict.fromkeys(self._line(stream, reason) for stream, reason in self.reasons)  # each once
        super().__init__("\n".join(lines))

    @staticmethod
    def _line(stream: Stream | None, reason: str) -> str:
        return reason if stream is None else f"{stream.as_written.label} ({stream.origin}): {reason}"


class GrowsTooFar(NotImplementedError):
    """A rule's reason that a shorter length may do away with. `TooLong.SHORTER` stands in it.

    guess: a length for which it is worth to compile anew.
    """

    def __init__(self, reason: str, guess: int):
        super().__init__(reason)
        self.guess = guess


class TooLong(CompileError):
    """Sums leave the exact integers, or a division its thresholds; up to a shorter length they would not, so it seems.

    guess: a length for which it is worth to compile anew, 0 where there is none. `SHORTER` stands in the reasons.
    """

    SHORTER = "a shorter max_length may fit"

    def __init__(self, reasons: Sequence[tuple[Stream | None, str]], guess: Callable[[], int]):
        super().__init__(reasons)
        self.guess = guess

    def with_advice(self, advice: str) -> TooLong:
        """The same with other words on the length."""
        return TooLong([(stream, reason.replace(self.SHORTER, advice)) for stream, reason in self.reasons], self.guess)
