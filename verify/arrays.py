"""Arrays from an .npz file that anybody wrote: each is known by its header before its bytes are read."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from compiler.artifact.plain_files import opened

MOST_BYTES = 1 << 28  # of one array, unpacked: 2^25 numbers of 8 bytes
MOST_FILE = 1 << 30  # of the file: three such arrays that are not packed
MOST_AT_ONCE = 1 << 20  # of one read: the list of a file's parts and the header of an array are read whole


def read_arrays(path: Path, names: Sequence[str], what: str) -> list[np.ndarray]:
    """The arrays of these names; ValueError, in one sentence that begins with `what`, where the file has none of them.

    An array's dtype and shape stand in the first bytes of its part of the file. They are read first: an array of
    Python objects is never unpickled, and one that would unpack to more than `MOST_BYTES` is never unpacked. What is no
    plain file, or larger than `MOST_FILE`, is never opened.
    """
    needed = f"an .npz file with the arrays {', '.join(names)} is needed"
    try:
        with opened(path, MOST_FILE) as file, zipfile.ZipFile(_Limited(file)) as archive:
            parts = {name: _part(archive, name, what, needed) for name in names}
            for name, info in parts.items():
                with archive.open(info) as part:
                    _check_header(_Limited(part), f"{what}: {name}")
            return [_array(archive, info, what) for info in parts.values()]
    except OSError as reason:
        why = (reason.strerror or str(reason)).lower()
        raise ValueError(f"{what} cannot be read: {why}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError) as reason:
        raise ValueError(f"{what} is damaged, or no .npz file, and {needed} ({_line(reason)})") from None


class _Limited:
    """A file of which no more than `MOST_AT_ONCE` bytes are read at once: how many, the file itself says."""

    def __init__(self, file: Any):
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        read = self._file.read(size if 0 <= size <= MOST_AT_ONCE else MOST_AT_ONCE + 1)
        if size > MOST_AT_ONCE or len(read) > MOST_AT_ONCE:
            raise zipfile.BadZipFile(f"its list of parts, or a header, has more than {MOST_AT_ONCE:,} bytes")
        return read


def _part(archive: zipfile.ZipFile, name: str, what: str, needed: str) -> zipfile.ZipInfo:
    """The one member that is this array."""
    found = [info for info in archive.infolist() if info.filename in (name, f"{name}.npy")]
    if len(found) != 1:
        told = f"more than one array {name}" if found else f"no array {name}"
        raise ValueError(f"{what} has {told}, and {needed}")
    return found[0]


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, what: str) -> np.ndarray:
    """The numbers of the member whose header was checked: no reader looks it up by its name again."""
    with archive.open(info) as part:
        try:
            return npy.read_array(part, allow_pickle=False)
        except ValueError as reason:  # fewer bytes than the header tells
            raise ValueError(f"{what} is cut: {_line(reason)}") from None


def _check_header(part, what: str) -> None:
    try:
        version = npy.read_magic(part)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(part)
    except Exception as reason:  # NumPy's reader of headers raises whatever Python's own meets in them
        raise ValueError(f"{what} is no array ({_line(reason)})") from None
    if dtype.hasobject or dtype.kind not in "biuf":
        raise ValueError(f"{what} holds {dtype}, and numbers are needed")
    if any(type(size) is not int or size < 0 for size in shape):  # NumPy lets True and False pass for sizes
        raise ValueError(f"{what} has the shape {shape}, and sizes are whole numbers of 0 or more")
    if prod(shape) * dtype.itemsize > MOST_BYTES:
        raise ValueError(f"{what} has the shape {shape}, which is more than {MOST_BYTES} bytes")


def _line(reason: Exception) -> str:
    return (str(reason).splitlines() or [type(reason).__name__])[0][:200]
