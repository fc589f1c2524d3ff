"""Arrays from an .npz file that anybody wrote: each is known by its header before its bytes are read."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

MOST_BYTES = 1 << 28  # of one array, unpacked: 2^25 numbers of 8 bytes


def read_arrays(path: Path, names: Sequence[str], what: str) -> list[np.ndarray]:
    """The arrays of these names; ValueError, in one sentence that begins with `what`, where the file has none of them.

    An array's dtype and shape stand in the first bytes of its part of the file. They are read first: an array of
    Python objects is never unpickled, and one that would unpack to more than `MOST_BYTES` is never unpacked.
    """
    needed = f"an .npz file with the arrays {', '.join(names)} is needed"
    try:
        with zipfile.ZipFile(path) as archive:
            held = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            missing = [name for name in names if name not in held]
            if missing:
                raise ValueError(f"{what} has no array {missing[0]}, and {needed}")
            for name in names:
                with archive.open(held[name]) as part:
                    _check_header(part, f"{what}: {name}")
        return _loaded(path, names, what)
    except OSError as reason:
        why = (reason.strerror or str(reason)).lower()
        raise ValueError(f"{what} cannot be read: {why}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, RuntimeError) as reason:
        raise ValueError(f"{what} is damaged, or no .npz file, and {needed} ({_line(reason)})") from None


def _loaded(path: Path, names: Sequence[str], what: str) -> list[np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        try:
            return [np.asarray(arrays[name]) for name in names]
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
