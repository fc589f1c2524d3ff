"""The numbers and matrices that circuit.json holds, in the forms in which it writes them."""

from __future__ import annotations

import base64
from fractions import Fraction

import numpy as np

from verify.checker.files import Matrix
from verify.checker.formats import Rejected
from verify.checker.values.exact import number


def read_number(x: int | float | str) -> Fraction:
    return Fraction(x)


def float_of(x: int | float | str) -> float:
    """The number as a float64; Rejected where that would round it: who reads floats would read another number."""
    return number(read_number(x))


def read_matrix(data: dict) -> Matrix:
    """The three forms in which circuit.json writes matrices; Rejected where an entry is none, or stands twice."""
    if "diagonal" in data:
        places = np.arange(data["size"])
        return _matrix((data["size"],) * 2, places, places, np.full(len(places), float_of(data["diagonal"])))
    shape = tuple(data["shape"])
    if "rows" in data:
        if len(data["rows"]) != shape[0]:
            raise Rejected(f"a matrix of circuit.json has {shape[0]} rows, and lists {len(data['rows'])}")
        listed = [(r, c, v) for r, row in enumerate(data["rows"]) for c, v in row]
        rows, cols = (np.array([entry[i] for entry in listed], dtype=np.int64) for i in (0, 1))
        known = {v: float_of(v) for v in {v for _, _, v in listed}}
        return _matrix(shape, rows, cols, np.array([known[v] for _, _, v in listed], dtype=np.float64))
    counts, cols, units = (_integers(data[name]) for name in ("counts", "columns", "values"))
    floats = units.astype(float)
    if np.abs(floats).max(initial=0.0) > 2.0**53 or (floats.astype(np.int64) != units).any():
        raise Rejected("a matrix of circuit.json needs more than the 53 bits that the checker carries")
    if len(counts) != shape[0]:
        raise Rejected(f"a matrix of circuit.json has {shape[0]} rows, and counts {len(counts)}")
    rows = np.repeat(np.arange(shape[0]), counts)
    entries = np.ldexp(floats, data["exponent"])
    if (np.ldexp(entries, -data["exponent"]) != floats).any():
        raise Rejected("a matrix of circuit.json holds a number that float64 does not hold")
    return _matrix(shape, rows, cols, entries)


def _matrix(shape: tuple, rows: np.ndarray, cols: np.ndarray, data: np.ndarray) -> Matrix:
    height, width = shape
    inside = len(rows) == len(cols) == len(data) and (rows < height).all() and ((cols >= 0) & (cols < width)).all()
    if not inside or len(rows) and (np.diff(rows * width + cols) <= 0).any():
        raise Rejected("a matrix of circuit.json has an entry outside of it, or not in its order")
    return Matrix((height, width), rows, cols, data)


def _integers(data: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(data["base64"]), f"<i{data['bytes']}").astype(np.int64)
