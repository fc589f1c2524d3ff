"""Matrices as JSON, entry by entry or, where they are large, as arrays of integers in base64."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

import numpy as np
from scipy import sparse

from compiler.language.data.scalars import (
    LARGEST_SIZE,
    DataError,
    Json,
    entry,
    known_keys,
    read_float,
    read_integer,
    shown,
    within,
    write_number,
)

LARGEST_LISTED = 4096  # entries and rows of a matrix that are written out one by one


def write_matrix(matrix: sparse.sparray | np.ndarray) -> dict:
    """The exact entries of a matrix, row by row."""
    sorted_rows = sparse.csr_array(matrix, copy=True)
    sorted_rows.sum_duplicates()
    sorted_rows.eliminate_zeros()
    rows, columns = map(int, sorted_rows.shape)
    if rows == columns == sorted_rows.nnz and rows > 1:
        weights = set(sorted_rows.data.tolist())
        one_each = np.array_equal(sorted_rows.indptr, np.arange(rows + 1))  # rows of two and of none have as many
        if len(weights) == 1 and one_each and np.array_equal(sorted_rows.indices, np.arange(rows)):
            return {"diagonal": write_number(weights.pop()), "size": rows}
    large = rows + sorted_rows.nnz > LARGEST_LISTED
    return (_compact(sorted_rows) if large else None) or {"shape": [rows, columns], "rows": _listed(sorted_rows)}


def _listed(matrix: sparse.csr_array) -> list:
    entries = [[int(j), write_number(v)] for j, v in zip(matrix.indices, matrix.data.tolist(), strict=True)]
    return [entries[start:stop] for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)]


def _compact(matrix: sparse.csr_array) -> dict | None:
    """Entries as integers times 2^exponent, with row lengths and columns; None where 64 bits do not hold them."""
    data = matrix.data.astype(np.float64)
    if not np.array_equal(data, matrix.data):
        return None
    mantissas, exponents = np.frexp(data)
    digits = np.ldexp(mantissas, 53).astype(np.int64)
    exponent = int((exponents - 53 + np.log2((digits & -digits).astype(float)).astype(int)).min(initial=0))
    values = np.ldexp(data, -exponent)
    if not (np.abs(values) < 2.0**62).all():
        return None
    return {
        "shape": [int(n) for n in matrix.shape],
        "exponent": exponent,
        "counts": _write_integers(np.diff(matrix.indptr)),
        "columns": _write_integers(matrix.indices),
        "values": _write_integers(values.astype(np.int64)),
    }


def _write_integers(values: np.ndarray) -> dict:
    """Little-endian two's complement integers of 1, 2, 4 or 8 bytes, in base64."""
    lo, hi = int(values.min(initial=0)), int(values.max(initial=0))
    size = next(n for n in (1, 2, 4, 8) if -(1 << (8 * n - 1)) <= lo and hi < 1 << (8 * n - 1))
    return {"bytes": size, "base64": base64.b64encode(values.astype(f"<i{size}").tobytes()).decode("ascii")}


def _read_integers(data: Json, what: str) -> np.ndarray:
    size, text = entry(data, "bytes", int), entry(data, "base64", str)
    known_keys(data, "bytes", "base64")
    if size not in (1, 2, 4, 8):
        raise DataError(f"its {what} have {shown(size)} bytes, and 1, 2, 4 or 8 are needed")
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"its {what} are no base64") from error
    if len(raw) % size:
        raise DataError(f"its {what} are {len(raw)} bytes, which {size} does not divide")
    return np.frombuffer(raw, f"<i{size}").astype(np.int64)


def read_matrix(data: Json, take: Callable[[int], None]) -> sparse.csr_array:
    """A csr matrix of float64, each entry the exact number; `take` is told of entries that a short form stands for."""
    if isinstance(data, dict) and "diagonal" in data:
        known_keys(data, "diagonal", "size")
        size, weight = entry(data, "size", int), read_float(data["diagonal"])
        within("size", size, LARGEST_SIZE)
        take(size)
        places = np.arange(size + 1)
        return sparse.csr_array((np.full(size, weight), places[:-1], places), shape=(size, size))
    shape = entry(data, "shape", list)
    if len(shape) != 2 or not all(isinstance(n, int) and not isinstance(n, bool) for n in shape):
        raise DataError("its shape must be two integers")
    for n in shape:
        within("shape", n, LARGEST_SIZE)
    if "rows" in data:
        known_keys(data, "shape", "rows")
        counts, columns, values = _read_rows(entry(data, "rows", list))
    else:
        known_keys(data, "shape", "exponent", "counts", "columns", "values")
        counts, columns = (
            _read_integers(entry(data, "counts", dict), "counts"),
            _read_integers(entry(data, "columns", dict), "columns"),
        )
        values = _scaled(_read_integers(entry(data, "values", dict), "values"), entry(data, "exponent", int))
    return _assembled(tuple(shape), counts, columns, values)


def _read_rows(rows: list) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    columns, values = [], []
    for row in rows:
        if not isinstance(row, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in row):
            raise DataError("each of its rows must be a list of [column, value] pairs")
        for column, value in row:
            columns.append(read_integer(column))
            values.append(read_float(value))
    if any(not 0 <= column < LARGEST_SIZE for column in columns):
        raise DataError(f"its columns must be 0 to {LARGEST_SIZE - 1}")
    return np.array([len(row) for row in rows], np.int64), np.array(columns, np.int64), np.array(values, np.float64)


def _scaled(values: np.ndarray, exponent: int) -> np.ndarray:
    """values · 2^exponent, each exactly."""
    if not -1100 < exponent < 1100:
        raise DataError(f"its exponent is {shown(exponent)}, and -1099 to 1099 is possible")
    exact = values.astype(np.float64)
    scaled = np.ldexp(exact, exponent)
    whole = np.isfinite(scaled).all() and np.array_equal(np.ldexp(scaled, -exponent), exact)
    if not whole or not (exact.astype(object) == values.astype(object)).all():
        raise DataError("one of its values is a number that no float64 holds exactly")
    return scaled


def _assembled(shape: tuple[int, int], counts: np.ndarray, columns: np.ndarray, values: np.ndarray) -> sparse.csr_array:
    rows, width = shape
    if len(counts) != rows or (counts < 0).any() or not int(counts.sum()) == len(columns) == len(values):
        raise DataError(f"its shape has {rows} rows, and its entries are listed for {len(counts)}")
    if len(columns) and not (columns.min() >= 0 and columns.max() < width):
        raise DataError(f"it has an entry outside its {width} columns")
    starts = np.concatenate([[0], np.cumsum(counts)])
    rises = np.diff(columns) > 0
    rises[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(columns))] - 1] = True  # a new row begins anew
    if not rises.all() or not values.all():
        raise DataError("the columns of each of its rows must rise, and no entry may be 0")
    return sparse.csr_array((values, columns, starts), shape=shape)
