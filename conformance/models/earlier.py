"""What stands where models are to be written: those of an earlier run are replaced, and nothing else is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from compiler.artifact.others import keep_others
from compiler.artifact.place import check_place, staging
from conformance.models.case import hashes, vectors_of, written


def check_models(directory: Path, names: Iterable[str]) -> None:
    """ValueError where a file or a checkpoint that no earlier run has written stands in the place of a model."""
    check_place(directory)
    if directory.exists() and not directory.is_dir():
        raise ValueError(f"--out: {directory} is a file, and models are written to a directory of that name.")
    for name in names:
        place = directory / name
        told = written(vectors_of(place))
        if told is None and os.path.lexists(vectors_of(place)):
            raise _lost(vectors_of(place), "is no file of vectors")
        if os.path.lexists(place) and (told is None or not place.is_dir() or hashes(place) != told[2]):
            raise _lost(place, "is not as an earlier run has written it")


def _lost(path: Path, why: str) -> ValueError:
    return ValueError(f"--out: {path} {why}, and would be lost: move it away, or name another directory.")


@contextmanager
def replaced(directory: Path, names: Iterable[str]) -> Iterator[Path]:
    """A new directory for these models and their vectors, which takes the place of the earlier one if the body
    succeeds. What else stands there stays.
    """
    ours = {entry.name for name in names for entry in (directory / name, vectors_of(directory / name))}
    with staging(directory) as place:
        yield place
        keep_others(directory, place, ours)
