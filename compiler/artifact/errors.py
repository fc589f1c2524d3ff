"""The exceptions of this package, and what those of libraries say."""

from compiler.language.markdown import one_line


class CheckpointError(ValueError):
    """A checkpoint that cannot be written or must not be loaded; the message is one sentence for people.

    exit_code: with which a command ends; None: as it does for bad usage.
    """

    exit_code: int | None = None


class ScoreError(CheckpointError):
    """A checkpoint whose model was run and scores no numbers, so that no token can be chosen."""

    exit_code = 1


def first_line(reason: Exception) -> str:
    """What an exception of a library says: its first line, and the next where the first only leads to it."""
    lines = str(reason).splitlines() or [type(reason).__name__]
    return one_line(" ".join(lines[:2]) if lines[0].rstrip().endswith(":") else lines[0])
