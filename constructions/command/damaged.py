"""Exit codes of what is wrong with a checkpoint: its files are not what they must be, or the command was not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from compiler.artifact.errors import CheckpointError, of_damage
from compiler.artifact.files import MANIFEST


@contextmanager
def of_files(directory: Path, exports: bool = False) -> Iterator[None]:
    """A CheckpointError of the body ends with exit code 1, as a verification that failed: of whatever file it is. Where
    no checkpoint stands, nor an export that the command takes, or where the error has a code of its own, that stays.

    exports: whether the command takes them.
    """
    try:
        yield
    except CheckpointError:
        with of_damage() if _stands(directory, exports) else nullcontext():
            raise
    except OSError as reason:  # of a file that is there, and that this user may not read
        if reason.filename is None or not Path(reason.filename).is_relative_to(directory):
            raise
        with of_damage():
            raise CheckpointError(f"{reason.filename} cannot be read: {(reason.strerror or '').lower()}.") from reason


def _stands(directory: Path, exports: bool) -> bool:
    from compiler.export.directory import RECORD  # brings torch, which `--help` does not need

    return (directory / MANIFEST).exists() or (exports and (directory / RECORD).exists())
