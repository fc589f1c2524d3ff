"""The exceptions of this package, and what those of libraries say."""

from collections.abc import Iterator
from contextlib import contextmanager

from compiler.language.markdown import one_line


class CheckpointError(ValueError):
    """A checkpoint that cannot be written or must not be loaded; the message is one sentence for people.

    exit_code: with which a command ends; None: as it does for bad usage.
    """

    exit_code: int | None = None


class ScoreError(CheckpointError):
    """A checkpoint whose model was run and scores no numbers, so that no token can be chosen."""

    exit_code = 1


class EditedError(CheckpointError):
    """A checkpoint that is not what its circuit compiles to."""

    exit_code = 1


class DisguisedError(CheckpointError):
    """A disguised checkpoint, whole as it may be, where a plain one is needed: that is bad usage, and no damage."""

    exit_code = 2


@contextmanager
def of_damage() -> Iterator[None]:
    """A CheckpointError of the body is about a file that stands there, and ends a command as a failed verification."""
    try:
        yield
    except CheckpointError as reason:
        if reason.exit_code is None:
            reason.exit_code = 1
        raise


def first_line(reason: Exception) -> str:
    """What an exception of a library says: its first line, and the next where the first only leads to it."""
    lines = str(reason).splitlines() or [type(reason).__name__]
    return one_line(" ".join(lines[:2]) if lines[0].rstrip().endswith(":") else lines[0])
