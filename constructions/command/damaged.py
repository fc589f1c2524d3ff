"""Exit codes of what is wrong with a checkpoint: its files are not what they must be, or the command was not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from compiler.artifact.errors import CheckpointError, of_damage
from compiler.artifact.files import MANIFEST


@contextmanager
def of_files(directory: Path) -> Iterator[None]:
    """A CheckpointError of the body ends with exit code 1, as a verification that failed: of whatever file it is. Where
    no checkpoint and no export stands, or where the error has a code of its own, that stays.
    """
    try:
        yield
    except CheckpointError:
        from compiler.export.directory import RECORD  # brings torch, which `--help` does not need

        stands = any((directory / name).exists() for name in (MANIFEST, RECORD))
        with of_damage() if stands else nullcontext():
            raise
