"""Tasks that ask what earlier items say, of those most like what stands here: contexts and points (lemma of
matches).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.tasks.matches import Places, Window
from verify.checker.tasks.names import Names, Stated
from verify.checker.tasks.task_copies import TEXT_BAR, TEXT_END, number
from verify.checker.tasks.task_forms import ONCE

_MOST_ITEMS = 1 << 13
_MOST_MARKS = 1 << 26  # of sets of letters


class Sets:
    """Sets of letters, numbered as they are named: rows of `Places.sets`."""

    def __init__(self, letters: int):
        self._rows = [np.ones(letters + 1, dtype=bool)]

    def of(self, ids: Sequence[int] | np.ndarray) -> int:
        row = np.zeros_like(self._rows[0])
        if len(self._rows) * len(row) > _MOST_MARKS:
            raise Rejected(f"there are {len(self._rows)} sets of {len(row) - 1} letters to go through, and more")
        row[ids] = True
        self._rows.append(row)
        return len(self._rows) - 1

    def but(self, ids: Sequence[int] | np.ndarray) -> int:
        """All others, and nothing."""
        self._rows[self.of(ids)] ^= True
        return len(self._rows) - 1

    def array(self) -> np.ndarray:
        return np.stack(self._rows)


@dataclass(frozen=True, eq=False)
class Behind:
    """Where the letters up to here end with a context: the letter of `values` that stood right behind it earlier, the
    present position included, where that was one and the same letter each time.

    A context is n letters of `text`, or fewer, down to none, right behind a letter of `stops`. said: (values,), what is
    said of each. once: asked only where such a letter stood behind it exactly once.
    """

    letters: int
    n: int
    text: np.ndarray
    stops: np.ndarray
    values: np.ndarray
    said: np.ndarray
    once: bool = False

    def _context(self, letters: Sequence[int]) -> tuple[int, ...] | None:
        """The context that ends with these letters."""
        m = next((i for i, a in enumerate(reversed(letters)) if a not in self.text), len(letters))
        if m >= self.n:
            return tuple(letters[len(letters) - self.n :])
        return tuple(letters[len(letters) - m :]) if m < len(letters) and letters[-m - 1] in self.stops else None

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        found: list[int | None] = []
        for t in range(1, len(letters) + 1):
            here = self._context(letters[:t])
            behind = [letters[s] for s in range(t) if here is not None and self._context(letters[:s]) == here]
            behind = [v for v in behind if v in self.values]
            asked = len(behind) == 1 if self.once else len(set(behind)) == 1
            found.append(int(self.said[self.values.tolist().index(behind[0])]) if asked else None)
        return found

    def places(self) -> Places:
        sets = Sets(self.letters)
        at = {a: sets.of([a]) for a in dict.fromkeys([*self.text.tolist(), *self.values.tolist()])}
        text, stops, value, none = sets.of(self.text), sets.of(self.stops), sets.of(self.values), sets.but(self.values)
        strange = sets.but(np.concatenate([self.text, self.stops]))
        lengths = range(0 if len(self.stops) else self.n, self.n + 1)
        if sum(len(self.text) ** m for m in lengths) * len(self.values) > _MOST_ITEMS:
            raise Rejected(f"there are more than {_MOST_ITEMS} pairs of a context and what stood behind it")
        contexts: list[Window] = [
            (*(at[a] for a in word), *((stops,) if m < self.n else ()))
            for m in lengths
            for word in product(self.text.tolist(), repeat=m)
        ]
        items = [(at[v], *context) for context in contexts for v in self.values.tolist()]
        others: list[Window] = [(none,), *((value, *(text,) * m, strange) for m in range(self.n))]
        each = len(self.values)
        return Places(
            sets.array(),
            [*items, *others],
            contexts,
            np.repeat(np.arange(len(contexts)), each),
            np.tile(self.said, len(contexts)),
            np.eye(len(contexts), dtype=np.int64) - 1,
            self.once,
        )


@dataclass(frozen=True, eq=False)
class Nearest:
    """At a query, a letter: what the items, one letter each, say whose key is nearest to it of those seen so far,
    where all these say one letter.

    near: (keys, queries), the larger the nearer. items: (keys, said), their letters; said: letters.
    """

    letters: int
    items: np.ndarray
    queries: np.ndarray
    said: np.ndarray
    near: np.ndarray

    def answers(self, letters: Sequence[int]) -> list[int | None]:
        items = {a: divmod(k, len(self.said)) for k, a in enumerate(self.items.reshape(-1).tolist())}
        queries, found = self.queries.tolist(), []
        for t, asked in enumerate(letters):
            seen = [items[a] for a in letters[:t] if a in items] if asked in queries else []
            near = [self.near[key, queries.index(asked)] for key, _ in seen]
            told = {value for (_, value), much in zip(seen, near, strict=True) if much == max(near)}
            found.append(int(self.said[told.pop()]) if len(told) == 1 else None)
        return found

    def places(self) -> Places:
        sets, (keys, values) = Sets(self.letters), self.items.shape
        items: list[Window] = [(sets.of([a]),) for a in self.items.reshape(-1).tolist()]
        queries: list[Window] = [(sets.of([a]),) for a in self.queries.tolist()]
        classes = [*items, (sets.but(self.items.reshape(-1)),)]
        contexts, said = np.repeat(np.arange(keys), values), np.tile(self.said, keys)
        return Places(sets.array(), classes, queries, contexts, said, self.near - self.near.min(), False)


Matching = Behind | Nearest

# From the claim of a manifest -----------------------------------------------------------------------------------

_ALIKE = {"alike": "where that was one and the same letter each time", "one": f"where {ONCE}"}


def read_recall(claim: dict, names: Names) -> Stated[Matching]:
    """{"matches": "alike" | "one"}: v0, v1, … behind one of k0, k1, …"""
    keys, values = names.numbered("k"), names.numbered("v")
    says = f"at each of {names.shown(keys)}: the one of {names.shown(values)} that stood right behind it before"
    return _behind(names, Behind(names.count, 1, keys, keys[:0], values, values), claim, says)


def read_induction(claim: dict, names: Names) -> Stated[Matching]:
    """{"matches"}: the letter right behind the present one, of v0, v1, …"""
    letters = names.numbered("v")
    says = f"at each of {names.shown(letters)}: the letter that stood right behind it before"
    task = Behind(names.count, 1, letters, letters[:0], letters, letters)
    return replace(_behind(names, task, claim, says), known=letters)


def read_ngram(claim: dict, names: Names) -> Stated[Matching]:
    """{"n", "matches"}: what stood behind the last n of x0, x1, …, fewer behind ^ or |; instead of | the end, ".".

    Copies are right where no context of a string has two continuations: what is written behind the bar is behind the
    same contexts as what stands before it.
    """
    text, n = names.numbered("x"), number(claim["n"], 1 << 10)
    begin, bar, end = (names.one(name) for name in (BEGIN, TEXT_BAR, TEXT_END))
    says = (
        f"the one of {names.shown(text)} {TEXT_BAR!r} that stood before right behind the same last {n} of "
        f"{names.shown(text)}, fewer behind {BEGIN!r} or {TEXT_BAR!r}, with {TEXT_END!r} for {TEXT_BAR!r}"
    )
    task = Behind(names.count, n, text, np.array([begin, bar]), np.append(text, bar), np.append(text, end))
    return replace(_behind(names, task, claim, says, TEXT_END), known=np.append(text, [begin, bar, end]))


def _behind(names: Names, task: Behind, claim: dict, says: str, end: str | None = None) -> Stated[Matching]:
    """With the places that count: all of which one letter is true, or a single one."""
    matches = claim["matches"]
    needed = np.concatenate([task.text, task.stops, task.values])
    return Stated(replace(task, once=matches == "one"), f"{says}, {_ALIKE[matches]}", end, needed=needed)


def read_selection(claim: dict, names: Names) -> Stated[Matching]:
    """{"points": "angle" | "plane" | "signs", "size"}: of the items seen, k0=v0, k0=v1, …, the value of the key nearest
    to the query, q0, q1, …; keys and queries are the same points, and v0, v1, … are said.
    """
    near = _near(claim["points"], claim["size"])
    queries, values = names.numbered("q"), names.numbered("v")
    if len(queries) != len(near):
        raise ValueError(f"{len(near)} points and {len(queries)} queries")
    items = names.these([f"k{i}=v{v}" for i in range(len(near)) for v in range(len(values))])
    points = _POINTS[claim["points"]].format(claim["size"])
    says = (
        f"at each of {names.shown(queries)}: of {names.shown(items)} before it the value, {names.shown(values)}, of "
        f"the key nearest to it ({points}), where the nearest keys have one value"
    )
    task = Nearest(names.count, items.reshape(len(near), -1), queries, values, near)
    return Stated(task, says, needed=np.append(items, queries))


BEGIN = "^"
MATCHES = {
    "recall": read_recall,
    "unique-induction": read_induction,
    "copy-ngram": read_ngram,
    "token-selection": read_selection,
}
_POINTS = {
    "angle": "angles that divide the circle in {} parts, in their order",
    "plane": "the whole (x, y) with x² + y² = {}, x first",
    "signs": "vectors of {} entries −1 or 1, the last one changing first",
}


def _near(points: object, size: object) -> np.ndarray:
    """(keys, queries) whole numbers that order unit vectors by their inner products with each. angle: 2πi/size; plane:
    whole (x, y) with x² + y² = size, x first; signs: of `size` entries −1 and 1, the last changing first.
    """
    if type(size) is not int or not 1 <= size <= (10 if points == "signs" else 1 << 10):
        raise ValueError(f"size = {size!r}")
    if points == "angle":
        apart = np.abs(np.arange(size)[:, None] - np.arange(size)[None])
        return -np.minimum(apart, size - apart)
    if points == "signs":
        found = list(product((-1, 1), repeat=size))
    elif points == "plane":
        reach = range(-size, size + 1)
        found = [(x, y) for x in reach for y in reach if x * x + y * y == size]
    else:
        raise ValueError(f"points = {points!r}")
    vectors = np.array(found, dtype=np.int64).reshape(len(found), -1)
    return vectors @ vectors.T
