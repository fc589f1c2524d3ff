"""Values that depend on letters which are left open: tables over the letters that stood at some positions (lemma of
open letters).

All numbers are whole: those of the circuit are (`exact`), and every operation keeps them so, for what it gives stays
below 2^52 (`small`), where float64 holds all whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import reduce
from hashlib import blake2b

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.values.effort import weights_beside

MOST_ENTRIES = 1 << 20
MOST_WORK, OF_A_WEIGHT, LARGEST_WORK = 1 << 30, 1 << 20, 1 << 32
"""Numbers that a proof of answers may go through; more of them for each weight that is not 0; and with any weights."""
MOST_KEPT = 1 << 29  # bytes of all situations, each different table once
_MOST_CASES = 256
_LARGEST = 2.0**52
_OPERATION = 1 << 13  # numbers that take as long as one operation on few, with all that stands around it
_MARKS = 8  # that take as long as a number
Ids = tuple[int, ...]
Held = tuple[Ids, np.ndarray]
"""A set of combinations of the open letters with these ids: a mask over their choices."""


class Split(Exception):
    """What has to be one number is not: the cases to look at one by one, each the combinations that have one value."""

    def __init__(self, cases: list[Held]):
        super().__init__()
        self.cases = cases


class Nobody(Exception):
    """No sequence is in this situation."""


@dataclass(frozen=True, eq=False)
class Open:
    """Lanes as functions of open letters. ids: of these, rising; data: (lanes, choices of each)."""

    ids: Ids
    data: np.ndarray

    @property
    def width(self) -> int:
        return self.data.shape[0]


def fixed(values: Iterable[float]) -> Open:
    return Open((), exact(np.array(list(values), dtype=np.float64)))


def exact(data: np.ndarray) -> np.ndarray:
    """Rejected unless all numbers are whole and below 2^52."""
    if not (np.abs(data) < _LARGEST).all() or not (data == np.floor(data)).all():
        raise Rejected("the proof of answers takes whole numbers of less than 52 bits")
    return data + 0.0


class Work:
    """What a proof may still cost: a proof that would take minutes is none."""

    def __init__(self) -> None:
        self.left, self.room = min(MOST_WORK + OF_A_WEIGHT * weights_beside(), LARGEST_WORK), MOST_KEPT
        self._kept: dict[tuple[str, bytes], np.ndarray] = {}

    def spend(self, numbers: int, operations: int = 1) -> None:
        self.left -= numbers + operations * _OPERATION
        if self.left < 0:
            raise Rejected("there are too many situations to go through one by one")

    def keep(self, size: int) -> None:
        """So many more bytes are held to the end."""
        self.room -= size
        if self.room < 0:
            raise Rejected(f"the situations to go through one by one take more than {MOST_KEPT} bytes")

    def kept(self, table: np.ndarray) -> np.ndarray:
        """The table, or an equal one that is kept already: all situations share it."""
        self.spend(table.size)
        raw = table.tobytes()
        told = f"{table.dtype} {table.shape}", blake2b(raw).digest()
        if told not in self._kept:
            self.keep(len(raw))
            self._kept[told] = np.frombuffer(raw, table.dtype).reshape(table.shape)
        return self._kept[told]


def small(data: np.ndarray) -> np.ndarray:
    """Rejected unless all numbers are below 2^52, so that none was rounded."""
    if not max(data.max(initial=0.0), -data.min(initial=0.0)) < _LARGEST:
        raise Rejected("the proof of answers takes numbers of less than 52 bits")
    return data


@dataclass(frozen=True, eq=False)
class Situation:
    """choices: the letters that each open one may be; held: which combinations there are, all of these sets at once."""

    choices: dict[int, np.ndarray]
    held: tuple[Held, ...]
    work: Work

    def with_(self, *more: Held) -> Situation:
        return Situation(self.choices, (*self.held, *(_rising(own, mask) for own, mask in more)), self.work)

    def possible(self, ids: Ids) -> np.ndarray:
        """A mask over the choices of these letters; what chains of other letters rule out may still be in it."""
        mask = np.ones([len(self.choices[i]) for i in ids], dtype=bool)
        self.work.spend(mask.size * len(self.held) // _MARKS)
        for own, held in self.held:
            if set(own) & set(ids):
                gone = tuple(k for k, i in enumerate(own) if i not in ids)
                left = tuple(i for i in own if i in ids)
                known = np.asarray(self._narrowed(own, held).any(axis=gone)) if gone else held
                mask &= spread(Open(left, known[None]), ids)[0]
        return mask

    def _narrowed(self, own: Ids, held: np.ndarray) -> np.ndarray:
        """A set without what is ruled out of it by those of some of its letters."""
        for some, more in self.held:
            if len(some) < len(own) and set(some) <= set(own):
                held = held & spread(Open(some, more[None]), own)[0]
        return held

    def union(self, *values: Open, most: int = MOST_ENTRIES) -> Ids | None:
        """The letters that some of the values depend on; None where a table over them is too large."""
        ids = tuple(sorted({i for v in values for i in v.ids}))
        entries = max(v.width for v in values)
        for i in ids:
            entries *= len(self.choices[i])
        return ids if entries <= most else None

    def fix(self, value: Open) -> Open:
        """The value without letters; Split where it has several."""
        if not value.ids:
            return value
        mask = self.possible(value.ids)
        columns = value.data[:, mask]
        if not columns.shape[1]:
            raise Nobody
        if (columns == columns[:, :1]).all():
            return Open((), columns[:, 0].copy())
        kinds, which = np.unique(columns, axis=1, return_inverse=True)
        if kinds.shape[1] > _MOST_CASES:
            raise Rejected(f"a number that must be known has {kinds.shape[1]} values")
        cases = []
        for k in range(kinds.shape[1]):
            case = np.zeros_like(mask)
            case[mask] = which.reshape(-1) == k
            cases.append((value.ids, case))
        raise Split(cases)

    def apply(self, function: Callable[..., np.ndarray], *values: Open) -> Open:
        """Lane by lane; a single lane goes with all others. Where the table would be too large, letters are fixed."""
        ids = self.union(*values)
        if ids is None:
            values = tuple(self.fix(v) for v in values)
            ids = ()
        found = function(*(spread(v, ids) for v in values))
        sizes = [len(self.choices[i]) for i in ids]
        self.work.spend(found.size)
        return Open(ids, small(np.broadcast_to(found, (max(v.width for v in values), *sizes))))

    def linear(self, matrix: np.ndarray, value: Open) -> Open:
        """matrix (rows, lanes) times the lanes."""
        rows = matrix.shape[0]
        if matrix.shape[1] != value.width:
            raise Rejected(f"a matrix of {matrix.shape[1]} columns is multiplied by {value.width} lanes")
        if rows == value.width and (matrix == np.eye(rows)).all():
            return value
        flat = value.data.reshape(value.width, -1)
        self.work.spend(matrix.size * flat.shape[1])
        if rows * flat.shape[1] > MOST_ENTRIES:
            value = self.fix(value)
            flat = value.data.reshape(value.width, -1)
        if np.abs(matrix).sum(axis=1).max(initial=0.0) * np.abs(flat).max(initial=0.0) >= _LARGEST:
            raise Rejected("the proof of answers takes sums of less than 52 bits")
        return Open(value.ids, (exact(matrix) @ flat).reshape(rows, *value.data.shape[1:]))

    def sum(self, values: list[Open]) -> Open:
        return reduce(lambda a, b: self.apply(np.add, a, b), values)


def _rising(own: Ids, mask: np.ndarray) -> Held:
    places = sorted(range(len(own)), key=lambda k: own[k])
    return tuple(own[k] for k in places), mask.transpose(places)


def spread(value: Open, ids: Ids) -> np.ndarray:
    """The table with an axis for each of these letters, of length 1 where it does not depend on it."""
    sizes = dict(zip(value.ids, value.data.shape[1:], strict=True))
    return value.data.reshape(value.width, *(sizes.get(i, 1) for i in ids))
