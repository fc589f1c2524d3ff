"""What the two readers say of a checkpoint, and whether they may say it."""

from __future__ import annotations

import linecache
from pathlib import Path

from compiler import CompileError
from compiler.artifact.errors import CheckpointError
from constructions.checkpoints.saved import verify_checkpoint
from tests.artifact.hostile.changed import changed
from verify.certificates import Violated
from verify.checker.check import check

LONGEST_SENTENCE = 2000  # characters
NOBODY = "(raised by no statement)"


def verdict(directory: Path) -> tuple[str, list[str]]:
    """("accepted", "failed" or "refused", what is said), as the command would."""
    try:
        found = verify_checkpoint(directory, "random", 2)
    except CompileError as error:  # a sentence for each reason
        return "refused", str(error).splitlines()[:1]
    except (CheckpointError, Violated, ValueError) as error:
        return "refused", [*str(error).splitlines(), *([] if _written(error) else [NOBODY])]
    return ("accepted", []) if found.good else ("failed", found.complaints)


def _written(error: Exception) -> bool:
    """Whether a statement of Python raised it: what the libraries say of shapes and dtypes is raised in C."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is None or linecache.getline(at.tb_frame.f_code.co_filename, at.tb_lineno).strip().startswith("raise")


def judge(good: Path | None, bad: Path) -> tuple[str, str | None]:
    """(the verdict, what is wrong with it or None).

    good: what it was before it was damaged; None where another checkpoint, if it is a good one, may be accepted.
    """
    try:
        reason = check(bad).reason  # its own reader; what it may accept is measured in tests/verify/checker
        name, said = verdict(bad)
    except Exception as error:  # what the command would show as a traceback
        return "traceback", f"{type(error).__name__}: {error!s:.1000}"
    if name == "refused" and said[-1:] == [NOBODY]:
        return name, f"a sentence that nobody wrote: {said[0]:.1000}"
    if good is not None and name == "accepted" and (file := changed(good, bad)):
        return name, f"it was accepted, and {file} changed"
    if name == "refused" and (len(said) != 1 or not said[0]):
        return name, f"it was not refused in one sentence: {str(said):.1000}"
    for sentence in (*said, reason or ""):
        if len(sentence) > LONGEST_SENTENCE:
            return name, f"a sentence has {len(sentence)} characters: {sentence:.200}"
    return name, None
