"""What the checker does not expect of a file is told as a sentence with its place, and proves nothing."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from verify.checker.formats import Rejected

UNEXPECTED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError)
CIRCUIT = "an entry of circuit.json"


class Unexpected(Rejected):
    """What the checker met is no rule of its own: nothing is proved, and of the file nothing is known."""


@contextmanager
def unexpected_told(what: str) -> Iterator[None]:
    """Unexpected, with the place, where something else is raised that says of no file what is wrong with it.

    what: of which something may be wrong.
    """
    try:
        yield
    except UNEXPECTED as reason:
        last = traceback.extract_tb(reason.__traceback__)[-1]
        at = f"in {last.name} ({Path(last.filename).name}:{last.lineno})"
        if isinstance(reason, MemoryError):
            told = f"the proof takes more memory than there is: {str(reason) or 'for a small object'}, {at}"
        elif isinstance(reason, FloatingPointError | OverflowError):
            told = f"a bound is beyond what float64 holds: {reason}, {at}"
        else:
            told = f"{what} is not of its kind, or the checker is at fault: {reason!r:.200}, {at}"
        raise Unexpected(told) from reason
