"""A circuit in intervals: what each stream can be where some letters, and how often others stood before, are known
(lemma of matches).

Arrays are float64 and hold whole numbers below 2^52, so none is rounded; a number that might be larger is refused.
Before the first letter every stream is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from verify.checker.files import Matrix
from verify.checker.formats import Rejected
from verify.checker.meaning.conditions import no_rule, place
from verify.checker.meaning.entries import float_of, read_matrix, read_number

_LARGEST = 2.0**52
_MOST_ENTRIES = 1 << 24  # of one stream over all cases
_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Hull:
    """lo, hi: (lanes, cases), bounds of each lane in each case."""

    lo: np.ndarray
    hi: np.ndarray

    def __post_init__(self) -> None:
        if not max(self.hi.max(initial=0.0), -self.lo.min(initial=0.0)) < _LARGEST:
            raise Rejected("the proof of answers takes numbers of less than 52 bits")

    def take(self, rows: np.ndarray | slice, cases: np.ndarray | slice = slice(None)) -> Hull:
        return Hull(self.lo[rows][:, cases], self.hi[rows][:, cases])


@dataclass(frozen=True, eq=False)
class Windows:
    """Cases of what stands at a position and before it. sets: (sets, letters + 1), which letters are in each set; in
    the last place, whether it may be that nothing stands there, the sequence having not begun. The first set is
    everything. at: (lags, cases), the set at each lag; further back everything may stand.
    """

    sets: np.ndarray
    at: np.ndarray

    @property
    def count(self) -> int:
        return self.at.shape[1]

    def of(self, lag: int) -> np.ndarray:
        """(cases,): the set at a lag."""
        return self.at[lag] if lag < len(self.at) else np.zeros(self.count, dtype=np.int64)

    def begun(self, lag: int) -> np.ndarray:
        """(cases,): 1 where a letter stands there in any case, −1 where none does, 0 where both may be."""
        surely = (~self.sets[self.at[lag:], -1]).any(axis=0)
        return np.where(surely, 1, np.where(self.sets[self.of(lag), :-1].any(axis=1), 0, -1))


Counts = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Of some classes of positions in some cases: how often each stood at least and at most, (classes, cases) each."""


@dataclass(frozen=True, eq=False)
class Seen:
    """How often each class of positions stood up to the present one, that included. classes: what is known there."""

    classes: Hulls
    counts: Counts

    def summed(self, added: Hull, classes: np.ndarray, cases: np.ndarray) -> Hull:
        """A running sum of what is added at each of these classes: (lanes, classes) to (lanes, cases)."""
        fewest, most = self.counts(classes, cases)
        size = np.maximum(np.abs(added.lo), np.abs(added.hi)).sum(axis=1).max(initial=0.0)
        if size * most.max(initial=0.0) >= _LARGEST:
            raise Rejected("the proof of answers takes sums of less than 52 bits")
        lo = np.maximum(added.lo, 0.0) @ fewest + np.minimum(added.lo, 0.0) @ most
        return Hull(lo, np.maximum(added.hi, 0.0) @ most + np.minimum(added.hi, 0.0) @ fewest)

    def kept(self, key: Hull, value: Hull, classes: np.ndarray, cases: np.ndarray) -> Hull:
        """One of the values that may have been written at these classes; 0 as well where it may be that none was."""
        fewest, most = self.counts(classes, cases)
        may, did = (key.hi[0] > 0)[:, None] & (most > 0), (key.lo[0] > 0)[:, None] & (fewest > 0)
        nothing = ~did.any(axis=0)
        lo = np.stack([np.where(may, row[:, None], np.inf).min(axis=0, initial=np.inf) for row in value.lo])
        hi = np.stack([np.where(may, row[:, None], -np.inf).max(axis=0, initial=-np.inf) for row in value.hi])
        return Hull(np.where(nothing, np.minimum(lo, 0.0), lo), np.where(nothing, np.maximum(hi, 0.0), hi))


class Hulls:
    """The streams of circuit.json in cases: letters as the windows say, and states by what was seen (None: unknown)."""

    def __init__(self, data: dict, windows: Windows, seen: Seen | None = None):
        self.streams, self.windows, self.seen = data["streams"], windows, seen
        self._known: dict[tuple[int, int], Hull] = {}

    def value(self, i: int, lag: int = 0) -> Hull:
        """Stream i, so many positions back, where a letter stands there."""
        if (i, lag) not in self._known:
            stream = self.streams[i]
            rule = _RULES.get(stream["operation"])
            try:
                if rule is None:
                    raise Rejected(f"{no_rule(stream['operation'])} among matches")
                found = rule(self, stream, lag)
                if found.lo.size > _MOST_ENTRIES:
                    raise Rejected(f"it has {found.lo.size} numbers over all cases, too many to go through")
            except Rejected as reason:
                raise reason.at(place(self.streams, i))  # noqa: B904 (the same one)
            self._known[i, lag] = found
        return self._known[i, lag]

    def inputs(self, stream: dict, lag: int) -> list[Hull]:
        return [self.value(k, lag) for k in stream["inputs"]]

    def remembered(self, stream: dict, lag: int) -> Seen:
        if self.seen is None or lag:
            raise Rejected(f"a {stream['operation']} is read where letters alone are known")
        return self.seen


def whole(data: np.ndarray) -> np.ndarray:
    """Rejected unless all numbers are whole."""
    if not np.isfinite(data).all() or not (data == np.floor(data)).all():
        raise Rejected("the proof of answers takes whole numbers")
    return data + 0.0


def mapped(matrix: Matrix, x: Hull) -> Hull:
    """matrix · x."""
    if matrix.shape[1] != len(x.lo):
        raise Rejected(f"a matrix of {matrix.shape[1]} columns is multiplied by {len(x.lo)} lanes")
    found = Hull(np.zeros((matrix.shape[0], x.lo.shape[1])), np.zeros((matrix.shape[0], x.lo.shape[1])))
    if not len(matrix.data):
        return found
    rows, first = np.unique(matrix.rows, return_index=True)
    weights = whole(matrix.data)[:, None]
    size = np.add.reduceat(np.abs(weights), first, axis=0).max()
    if size * max(x.hi.max(initial=0.0), -x.lo.min(initial=0.0)) >= _LARGEST:
        raise Rejected("the proof of answers takes sums of less than 52 bits")
    step = max(1, _AT_ONCE // len(matrix.data))
    for start in range(0, x.lo.shape[1], step):
        part = slice(start, start + step)
        ends = weights * x.lo[matrix.cols, part], weights * x.hi[matrix.cols, part]
        found.lo[rows, part] = np.add.reduceat(np.minimum(*ends), first, axis=0)
        found.hi[rows, part] = np.add.reduceat(np.maximum(*ends), first, axis=0)
    return found


def plus(a: Hull, b: Hull) -> Hull:
    return Hull(a.lo + b.lo, a.hi + b.hi)


def times(a: Hull, b: Hull) -> Hull:
    """A single lane goes with all of the other."""
    ends = [p * q for p in (a.lo, a.hi) for q in (b.lo, b.hi)]
    return Hull(np.minimum.reduce(ends), np.maximum.reduce(ends))


def _embed(h: Hulls, s: dict, lag: int) -> Hull:
    """Over the letters of each set; of a set of none, nothing reads it."""
    table = read_matrix(s["attributes"]["table"])  # (letters, lanes)
    found = np.zeros((2, table.shape[1], len(h.windows.sets)))
    dense = np.zeros((h.windows.sets.shape[1] - 1, table.shape[1]))
    if table.shape[0] > len(dense):
        raise Rejected("an embedding has more rows than there are letters")
    dense[table.rows, table.cols] = whole(table.data)
    for k, letters in enumerate(h.windows.sets[:, :-1]):
        if letters.any():
            found[:, :, k] = dense[letters].min(axis=0), dense[letters].max(axis=0)
    return Hull(*found[:, :, h.windows.of(lag)])


def _constant(h: Hulls, s: dict, lag: int) -> Hull:
    values = whole(np.array([float_of(v) for v in s["attributes"]["values"]]))
    full = np.repeat(values[:, None], h.windows.count, axis=1)
    return Hull(full, full)


def _linear(h: Hulls, s: dict, lag: int) -> Hull:
    parts = zip(s["attributes"]["matrices"], h.inputs(s, lag), strict=True)
    first, *others = (mapped(read_matrix(matrix), x) for matrix, x in parts)
    for other in others:
        first = plus(first, other)
    return first


def _shifted(h: Hulls, s: dict, lag: int) -> Hull:
    k = s["attributes"]["k"]
    if k < 0:
        raise Rejected("a shift to the future")
    x, begun = h.value(s["inputs"][0], lag + k), h.windows.begun(lag + k)
    if not k:
        return x
    lo = np.where(begun > 0, x.lo, np.where(begun < 0, 0.0, np.minimum(x.lo, 0.0)))
    return Hull(lo, np.where(begun > 0, x.hi, np.where(begun < 0, 0.0, np.maximum(x.hi, 0.0))))


def _monotone(function: Callable[..., np.ndarray], flags: bool = False) -> Callable[[Hulls, dict, int], Hull]:
    """Of a function that no operand lowers; flags: the operands must be 0 or 1."""

    def rule(h: Hulls, s: dict, lag: int) -> Hull:
        operands = h.inputs(s, lag)
        if flags:
            for x in operands:
                _flag(x, s)
        return Hull(function(*(x.lo for x in operands)), function(*(x.hi for x in operands)))

    return rule


def _flag(x: Hull, s: dict) -> Hull:
    if x.lo.min(initial=0.0) < 0 or x.hi.max(initial=0.0) > 1:
        raise Rejected(f"an operand of {s['operation']} is not shown to be 0 or 1")
    return x


def _not(h: Hulls, s: dict, lag: int) -> Hull:
    x = _flag(h.value(s["inputs"][0], lag), s)
    return Hull(1.0 - x.hi, 1.0 - x.lo)


def _clip(h: Hulls, s: dict, lag: int) -> Hull:
    lo, hi = whole(np.array([float_of(s["attributes"][name]) for name in ("lo", "hi")]))
    x = h.value(s["inputs"][0], lag)
    return Hull(np.clip(x.lo, lo, hi), np.clip(x.hi, lo, hi))


def _multiply(h: Hulls, s: dict, lag: int) -> Hull:
    return times(*h.inputs(s, lag))


def _summed(h: Hulls, s: dict, lag: int) -> Hull:
    seen = h.remembered(s, lag)
    added = seen.classes.value(s["inputs"][0])
    return seen.summed(added, np.arange(added.lo.shape[1]), np.arange(h.windows.count))


def _read(h: Hulls, s: dict, lag: int) -> Hull:
    """Σ over the columns of the query times what the column holds; columns that no query reads are left out."""
    seen, policy = h.remembered(s, lag), s["attributes"]["policy"]
    if policy not in ("sum", "once", "first", "last") or read_number(s["attributes"].get("skip", 0)):
        raise Rejected(f"the proof of matches has no rule for a memory of the policy {policy!r}")
    value, key, _, *when = (seen.classes.value(k) for k in s["inputs"])
    query = h.value(s["inputs"][2])
    if len(key.lo) != len(query.lo) or any(len(flag.lo) != 1 for flag in when):
        raise Rejected("the memory's operands are of different widths")
    for flag in when:
        key = times(key, _flag(flag, s))
    found = Hull(*np.zeros((2, len(value.lo), h.windows.count)))
    for n in range(len(key.lo)):
        cases = np.flatnonzero((query.lo[n] != 0) | (query.hi[n] != 0))
        classes = np.flatnonzero((key.lo[n] != 0) | (key.hi[n] != 0))
        if len(cases) and len(classes):
            own, stored = key.take(slice(n, n + 1), classes), value.take(slice(None), classes)
            if policy in ("sum", "once"):
                held = seen.summed(times(own, stored), classes, cases)
            else:
                held = seen.kept(_flag(own, s), stored, classes, cases)
            term = times(query.take(slice(n, n + 1), cases), held)
            total = plus(found.take(slice(None), cases), term)  # within 52 bits each time
            found.lo[:, cases], found.hi[:, cases] = total.lo, total.hi
    return found


_RULES: dict[str, Callable[[Hulls, dict, int], Hull]] = {
    "Embed": _embed,
    "Constant": _constant,
    "Linear": _linear,
    "Emit": _linear,
    "Shift": _shifted,
    "Relu": _monotone(lambda x: np.maximum(x, 0.0)),
    "Clip": _clip,
    "Min": _monotone(np.minimum),
    "Max": _monotone(np.maximum),
    "And": _monotone(np.minimum, flags=True),
    "Or": _monotone(np.maximum, flags=True),
    "Not": _not,
    "Multiply": _multiply,
    "Cumsum": _summed,
    "MemoryRead": _read,
}
