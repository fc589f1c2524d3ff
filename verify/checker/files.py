"""A checkpoint's files: config.json, model.safetensors and the promise of construction.json, read without any library.

Everything is checked before it is used: sizes, types, shapes, and that every weight is a finite number of the dtype.
"""

from __future__ import annotations

import itertools
import json
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from verify.checker.budget import JSON_BYTES, JSON_LISTS, JSON_OBJECTS, within
from verify.checker.families import check_config, shapes
from verify.checker.formats import FORMATS, Format, Rejected
from verify.checker.values.language import Language, parse

WEIGHTS = "model.safetensors"
_STORED = np.dtype("<f4")  # whatever the promise's dtype is: the loader opens no other
_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Matrix:
    """A sparse matrix (vectors are one row): the entries that are not 0, by row."""

    shape: tuple[int, int]
    rows: np.ndarray
    cols: np.ndarray
    data: np.ndarray

    @cached_property
    def _starts(self) -> np.ndarray:
        return np.searchsorted(self.rows, np.arange(self.shape[0] + 1))

    def row(self, i: int) -> list[tuple[int, Fraction]]:
        """(column, entry) of one row."""
        span = slice(self._starts[i], self._starts[i + 1])
        return [(c, Fraction(v)) for c, v in zip(self.cols[span].tolist(), self.data[span].tolist(), strict=True)]

    @cached_property
    def T(self) -> Matrix:
        order = np.argsort(self.cols, kind="stable")
        return Matrix(self.shape[::-1], self.cols[order], self.rows[order], self.data[order])

    def dense_row(self, i: int) -> np.ndarray:
        span = slice(self._starts[i], self._starts[i + 1])
        full = np.zeros(self.shape[1])
        full[self.cols[span]] = self.data[span]
        return full

    def part(self, first: int, count: int) -> Matrix:
        """Some consecutive rows."""
        keep = (self.rows >= first) & (self.rows < first + count)
        return Matrix((count, self.shape[1]), self.rows[keep] - first, self.cols[keep], self.data[keep])


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """manifest: construction.json, of which only the promise is checked. config: as in the file, with the keys of
    `families` checked. tensors: by name.
    """

    manifest: dict
    config: dict
    tensors: dict[str, Matrix]
    language: Language
    format: Format


def read(directory: str | Path) -> Checkpoint:
    """The files of a checkpoint; Rejected, in one sentence, where they are not what they must be."""
    directory = Path(directory)
    manifest = read_json(directory / "construction.json")
    config, language, dtype = _stated(read_json(directory / "config.json"), manifest.get("promise"))
    tensors = read_tensors(directory / WEIGHTS, shapes(config), dtype)
    return Checkpoint(manifest, config, tensors, language, dtype)


def in_memory(config: dict, tensors: dict[str, np.ndarray], promise: dict) -> Checkpoint:
    """The same of what is about to be saved: float32 arrays by name."""
    config, language, dtype = _stated(config, promise)
    expected = shapes(config)
    if set(tensors) != set(expected) or any(tensors[name].shape != shape for name, shape in expected.items()):
        raise Rejected("the tensors are not those of the config")
    found = {name: _sparse(name, _pieces(tensors[name].reshape(-1)), shape, dtype) for name, shape in expected.items()}
    return Checkpoint({"promise": promise}, config, found, language, dtype)


def _stated(config: dict, promise: object) -> tuple[dict, Language, Format]:
    """Config, input language and dtype, checked."""
    if not isinstance(promise, dict) or not isinstance(promise.get("language"), dict):
        raise Rejected("construction.json states no promise with an input language")
    name = promise.get("dtype")
    if not isinstance(name, str) or name not in FORMATS:
        raise Rejected(f"the promise's dtype is {name!r:.60}, expected one of {', '.join(FORMATS)}")
    config, language = check_config(config, name), parse(promise)
    if language.tokens > config["vocab_size"]:
        raise Rejected(f"the language has {language.tokens} letters, and the vocabulary {config['vocab_size']}")
    return config, language, FORMATS[name]


def read_json(path: Path) -> dict:
    try:
        within(_size(path), JSON_BYTES, path.name, "bytes")
        content = parse_json(path.read_text("utf-8"), path.name)
    except OSError as reason:
        raise Rejected(f"{path.name} cannot be read: {reason.strerror}") from reason
    except RecursionError as reason:
        raise Rejected(f"{path.name} is nested too deeply") from reason
    except ValueError as reason:
        raise Rejected(f"{path.name} is not JSON: {reason}") from reason
    if not isinstance(content, dict):
        raise Rejected(f"{path.name} does not hold an object")
    return content


def _size(path: Path) -> int:
    """The bytes of a file; Rejected for what has no end, such as a device, or never begins, such as a pipe."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise Rejected(f"{path.name} is no ordinary file")
    return found.st_size


def parse_json(text: str, name: str):
    """JSON, without the keys that stand twice, for readers differ in which one they take, and with numbers alone: NaN
    and infinities, 1e999 among them, are none. Rejected as soon as it has had more lists or objects than the checker
    reads.
    """
    within(text.count("["), JSON_LISTS, name, "lists")
    objects = itertools.count(1)

    def unique(pairs: list) -> dict:
        within(next(objects), JSON_OBJECTS, name, "objects")
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key stands twice")
        return dict(pairs)

    def finite(number: str) -> float:
        if not isfinite(float(number)):
            raise ValueError(f"{number[:20]} is no finite number")
        return float(number)

    def whole(number: str) -> int:
        if number == "-0":
            raise ValueError("-0 is no whole number for other readers")
        if 0 < sys.get_int_max_str_digits() < len(number.lstrip("-")):
            raise Rejected(f"{name} has an integer of more than {sys.get_int_max_str_digits():,} digits")
        return int(number)

    hooks: Any = {"object_pairs_hook": unique, "parse_int": whole, "parse_float": finite, "parse_constant": finite}
    return json.loads(text, **hooks)


# model.safetensors ----------------------------------------------------------------------------------


def read_tensors(path: Path, expected: dict[str, tuple[int, ...]], dtype: Format) -> dict[str, Matrix]:
    """Every tensor, its entries finite numbers of the dtype. The format: 8 bytes length, a JSON header, raw bytes."""
    try:
        size = _size(path)
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= min(size - 8, JSON_BYTES):
                raise Rejected(f"{path.name} has a header of {length} bytes in a file of {size}")
            header = parse_json(file.read(length).decode("utf-8"), path.name)
    except OSError as reason:
        raise Rejected(f"{path.name} cannot be read: {reason.strerror}") from reason
    except (ValueError, RecursionError) as reason:
        raise Rejected(f"{path.name} has no safetensors header: {reason}") from reason
    if not isinstance(header, dict) or set(header) - {"__metadata__"} != set(expected):
        found = set(header) - {"__metadata__"} if isinstance(header, dict) else set()
        raise Rejected(f"{path.name} lacks or adds the tensors {sorted(found ^ set(expected))[:3]}")
    _check_metadata(path.name, header.get("__metadata__"))
    raw = _mapped(path, 8 + length, size)
    tensors = {name: _tensor(name, header[name], shape, raw, dtype) for name, shape in expected.items()}
    spans = sorted(header[name]["data_offsets"] for name in expected)
    if [*(first for first, _ in spans), len(raw)] != [0, *(last for _, last in spans)]:
        raise Rejected(f"the tensors of {path.name} overlap, or leave bytes between them that none holds")
    return tensors


def _check_metadata(name: str, metadata: object) -> None:
    """Texts by name, if anything: others the library does not open."""
    pairs = list(metadata.items()) if isinstance(metadata, dict) else []
    if metadata is not None and not isinstance(metadata, dict) or any(type(value) is not str for _, value in pairs):
        raise Rejected(f"the __metadata__ of {name} are no texts by name")
    try:
        "".join(itertools.chain(*pairs)).encode("utf-8")
    except UnicodeEncodeError as reason:
        raise Rejected(f"the __metadata__ of {name} hold half a character") from reason


def _mapped(path: Path, first: int, size: int) -> np.ndarray:
    """The bytes of a file from one on, which are read where they are needed."""
    try:
        return np.memmap(path, dtype=np.uint8, mode="r", offset=first) if size > first else np.zeros(0, np.uint8)
    except OSError as reason:  # a file larger than the addresses that there are
        raise Rejected(f"{path.name} of {size} bytes cannot be read: {reason.strerror}") from reason


def _tensor(name: str, entry: dict, shape: tuple[int, ...], raw: np.ndarray, dtype: Format) -> Matrix:
    try:
        kind, stored, (first, last) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        if len(entry) > 3:
            raise Rejected(f"the header of {name} has an entry that is none of dtype, shape and data_offsets")
    except (KeyError, TypeError, ValueError) as reason:
        raise Rejected(f"the header of {name} is not one: {reason!r}") from reason
    if kind != "F32":
        raise Rejected(f"{name} is stored as {kind!r:.20}, expected F32")
    if stored != shape or any(type(i) is not int for i in (*stored, first, last)):
        raise Rejected(f"{name} has the shape {stored}, expected {shape}")
    count = int(np.prod(shape, dtype=object))
    if not (0 <= first <= last <= len(raw) and last - first == count * _STORED.itemsize):
        raise Rejected(
            f"{name} has {last - first} bytes at {first}, expected {count * _STORED.itemsize} within the file"
        )
    flat = raw[first:last].view(_STORED)
    return _sparse(name, (np.asarray(chunk) for chunk in _pieces(flat)), shape, dtype)


def _pieces(flat: np.ndarray) -> Iterator[np.ndarray]:
    """The array in consecutive pieces, so that what is formed of each is small."""
    return (flat[start : start + _CHUNK] for start in range(0, len(flat), _CHUNK))


def _sparse(name: str, chunks: Iterable[np.ndarray], shape: tuple[int, ...], dtype: Format) -> Matrix:
    """The entries that are not 0, from consecutive pieces of the flat float32 array."""
    places, values, start = [np.zeros(0, np.int64)], [np.zeros(0, np.float32)], 0
    for part in chunks:
        at = np.flatnonzero(part != 0)  # of booleans it is ten times faster
        places.append(at + start)
        values.append(part[at])
        start += len(part)
    place, value = np.concatenate(places), np.concatenate(values)
    _check_entries(name, value, dtype)
    two = (1 if len(shape) == 1 else shape[0], shape[-1])
    return Matrix(two, place // two[1], place % two[1], value.astype(np.float64))


def _check_entries(name: str, values: np.ndarray, dtype: Format) -> None:
    if not np.isfinite(values).all():
        raise Rejected(f"{name} has an entry that is not finite")
    kept = values
    if dtype.name == "bfloat16":
        kept = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    elif dtype.name == "float16":
        with np.errstate(over="ignore"):
            kept = values.astype(np.float16).astype(np.float32)
    if not (kept == values).all():
        raise Rejected(f"{name} has the entry {float(values[kept != values][0])!r}, which {dtype.name} does not hold")
    if (np.abs(values) < 2.0**-126).any() and dtype.name != "float16":
        raise Rejected(f"{name} has a denormal entry, which some backends read as 0")
