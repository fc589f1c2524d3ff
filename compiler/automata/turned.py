"""A cascade of resets and permutations as a circuit, for mixers whose state can be moved by a swap of two places.

All levels stand *behind* the present letter. What is done is a table of one number, letter + letters · Σ_j weight_j ·
c_j, with c_j before the letter; a level that starts at s calls s number 0 and 0 number s, so that the zeros before the
first letter are where it starts. A level of resets is a latch. One that permutations move is a column for each factor
of a letter's permutation (`compiler/automata/turning.py`): the first is moved by the table's swap, each other one by
that swap seen through the columns before it.

To see a place a through D, the product of the columns before: it is the place p that D takes to a, and Σ_p p·[D(p) = a]
finds it, with [D(p) = a] = Σ_m [C(p) = m]·[D'(m) = a] where D = C·D' for the last of these columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compiler.automata.cascade import HOLD, Cascade, Key
from compiler.automata.codes import Code, code_of
from compiler.automata.counted import counted
from compiler.automata.permutations import Swap
from compiler.automata.turning import Turning, turnings
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool, OneHot
from compiler.language.words import concatenate, latch, permute


def turned_levels(cascade: Cascade, letter: Stream, letters: int, counts: bool = False) -> list[Stream]:
    """c_i of each level behind the present letter, as numbers. letter: which it is, 0 … letters − 1.

    counts: whether levels that permutations move are counted, for mixers whose state cannot turn.
    """
    return _Levels(cascade, letter, letters, counts).found


def turned_output(cascade: Cascade, levels: Sequence[Stream], entries: Mapping[Hashable, int]) -> Stream:
    """The number that `entries` gives the cascade's output behind the present letter."""
    code, number = _of_levels(cascade, levels)
    return number.lookup(_filled([None if value is None else entries[value] for value in _listed(code)]))


def turned_one_hot(cascade: Cascade, levels: Sequence[Stream], outputs: Sequence[Hashable]) -> Stream:
    """Which of these outputs the cascade has behind the present letter: OneHot."""
    code, number = _of_levels(cascade, levels)
    return _one_hot(
        number, code.size, {key: outputs.index(output) for key, output in code.entries.items()}, len(outputs)
    )


def _of_levels(cascade: Cascade, levels: Sequence[Stream]) -> tuple[Code, Stream]:
    by = {(*_numbered(cascade, cascade.reads, key), 0): value for key, value in cascade.outputs.items()}
    code = code_of(by, [cascade.levels[j].size for j in cascade.reads], 1)
    return code, _total(code, [levels[j] for j in cascade.reads])


def _numbered(cascade: Cascade, reads: Sequence[int], key: Key) -> Key:
    """The values of a key as the numbers that streams hold."""
    return tuple(_number(value, cascade.levels[j].start) for j, value in zip(reads, key, strict=False))


def _number(value: int, start: int) -> int:
    return start if value == 0 else 0 if value == start else value


def _total(code: Code, reads: Sequence[Stream], scale: int = 1) -> Stream:
    terms = [scale * weight * c for weight, c in zip(code.weights, reads, strict=True)]
    return sum(terms[1:], start=terms[0]) if terms else constant(0)


def _listed(code: Code) -> list:
    return [code.entries.get(number) for number in range(code.size)]


def _filled(entries: Sequence[int | None]) -> list[int]:
    """The entries; what may be anything is as the one before it, and 0 before any is told."""
    last = 0
    return [last := last if value is None else value for value in entries]


def _one_hot(number: Stream, size: int, lane: Mapping[int, int], lanes: int) -> Stream:
    """OneHot of the lane that each number names; absent for the others."""
    which = np.zeros((lanes, size))
    for key, at in lane.items():
        which[at, key] = 1
    return (which @ number.one_hot(size)).retyped(OneHot(lanes))


_Entry = tuple[tuple[Swap | None, ...], int | None]
"""The factors of what moves a level, and the value that is set or None."""


@dataclass
class _Levels:
    """The streams of a cascade's levels, from the top."""

    cascade: Cascade
    letter: Stream
    letters: int
    counts: bool
    found: list[Stream] = field(default_factory=list)

    def __post_init__(self) -> None:
        own = {i: turning for turning in turnings(self.cascade) for i in turning.members}
        built: dict[int, dict[int, Stream]] = {}
        for i in range(len(self.cascade.levels)):
            if i not in own:
                self.found.append(self._latch(i))
                continue
            first = own[i].members[0]
            if first not in built:
                built[first] = self._turned(own[i])
            self.found.append(built[first][i])

    def _table(self, reads: tuple[int, ...], by: Mapping[Key, Hashable]) -> tuple[Code, Stream]:
        """The code of a table of what stands before the letter, and the letter, and its number."""
        keyed = {(*_numbered(self.cascade, reads, key[:-1]), key[-1]): value for key, value in by.items()}
        code = code_of(keyed, [self.cascade.levels[j].size for j in reads], self.letters)
        if not reads:
            return code, self.letter
        return code, self.letter + _total(code, [self.found[j] for j in reads], self.letters).shift(1)

    def _latch(self, i: int) -> Stream:
        level = self.cascade.levels[i]
        actions = {key: action for key, action in level.sets.items() if isinstance(action, int)}  # nothing moves it
        sets = {key: HOLD if action == HOLD else _number(action, level.start) for key, action in actions.items()}
        code, number = self._table(level.reads, sets)
        what = number.lookup(_filled([None if value == HOLD else value for value in _listed(code)]))
        whether = number.lookup(_filled([None if value is None else int(value != HOLD) for value in _listed(code)]))
        when = whether.retyped(Bool()).named(f"sets[{i}]")
        return latch(what.named(f"set[{i}]"), when).named(f"level[{i}]")

    def _turned(self, turning: Turning) -> dict[int, Stream]:
        starts = {i: self.cascade.levels[i].start for i in turning.members}
        name = f"level[{turning.members[0]}]"
        if self.counts:
            code, number = self._table(turning.reads, self.cascade.levels[turning.members[0]].sets)
            actions: dict[int, Any] = dict(code.entries)
            return counted(turning.size, actions, code.size, number, starts, name)
        by = {key: (factors, turning.resets.get(key)) for key, factors in turning.factors.items()}
        code, number = self._table(turning.reads, by)
        entries: dict[int, Any] = dict(code.entries)
        return _Columns(turning, entries, code.size, number, name).followed(starts)


@dataclass
class _Columns:
    """The columns of a turning. entries: of the table that chooses what is done, by its number, less than `size`."""

    turning: Turning
    entries: Mapping[int, _Entry]
    size: int
    number: Stream
    name: str
    columns: list[list[Stream]] = field(default_factory=list)  # C_j at each place
    products: list[list[Stream]] = field(default_factory=list)  # D_j at each place, all but the last

    def followed(self, starts: Mapping[int, int]) -> dict[int, Stream]:
        """For each level, by its start, its number behind the letter."""
        n, last = self.turning.size, self.turning.columns - 1
        for j in range(last):
            swaps = self._swaps(j)
            self.columns.append([self._column(j, p, swaps) for p in range(n)])
            if j < last - 1:
                self.products.append([self._product(j, p) for p in range(n)])
        swaps, reset = self._swaps(last), self._reset()
        found = {}
        for i, start in starts.items():
            held = permute(start, swaps, self.turning.pairs[last], reset).named(f"{self.name}.c{last + 1}[{start}]")
            weights = [_number(value, start) for value in range(n)]
            found[i] = self._image(held, weights).named(f"level[{i}]")
        return found

    def _column(self, j: int, place: int, swaps: Stream) -> Stream:
        return permute(place, swaps, self.turning.pairs[j]).named(f"{self.name}.c{j + 1}[{place}]")

    def _product(self, j: int, place: int) -> Stream:
        """D_(j+1) at a place."""
        if not j:
            return self.columns[0][place]
        name = f"{self.name}.d{j + 1}[{place}]"
        return (
            _through(self.columns[j][place], self.products[j - 1], range(self.turning.size))
            .one_hot(self.turning.size)
            .named(name)
        )

    def _image(self, held: Stream, weights: Sequence[int]) -> Stream:
        """The weight of the place to which the product of the columns so far takes the one that is held."""
        if not self.columns:
            return np.array([weights]) @ held
        if len(self.columns) == 1:
            return _through(held, self.columns[0], weights)
        return _through(held, self._last_product(), weights)

    def _last_product(self) -> list[Stream]:
        """D at each place, of all columns so far."""
        if len(self.products) < len(self.columns):
            j = len(self.columns) - 1
            self.products.append([self._product(j, p) for p in range(self.turning.size)])
        return self.products[-1]

    def _where(self, of: Callable[[_Entry], int | None], lanes: int) -> Stream:
        """OneHot of the lane that each entry of the table names."""
        lane = {key: at for key, entry in self.entries.items() if (at := of(entry)) is not None}
        return _one_hot(self.number, self.size, lane, lanes)

    def _swaps(self, j: int) -> Stream:
        """Which pair of places moves column j: OneHot over the pairs."""
        pairs, n = self.turning.pairs[j], self.turning.size
        if not j:
            return self._where(lambda entry: None if entry[0][0] is None else pairs.index(entry[0][0]), len(pairs))

        def end(k: int) -> Stream:
            place = self._where(lambda entry: None if (swap := entry[0][j]) is None else swap[k], n)
            return self._seen(place, range(n))

        both = (end(0) + n * end(1)).named(f"{self.name}.ends{j + 1}")
        lane = {p + n * q: k for k, pair in enumerate(pairs) for p, q in (pair, pair[::-1])}
        return _one_hot(both, n * n, lane, len(pairs)).named(f"{self.name}.swap{j + 1}")

    def _reset(self) -> Stream | None:
        """Where the last column is put; None where nothing is ever set."""
        if not self.turning.resets:
            return None
        place = self._where(lambda entry: entry[1], self.turning.size)
        if not self.columns:
            return place
        n = self.turning.size
        return _one_hot(self._seen(place, range(1, n + 1)), n + 1, {p + 1: p for p in range(n)}, n)

    def _seen(self, place: Stream, weights: Sequence[int]) -> Stream:
        """The weight of the place that the product of the columns so far takes to this one; 0 where there is none."""
        n, last = self.turning.size, len(self.columns) - 1
        every = [(p, m, a) for p in range(n) for m in range(n) for a in range(n)]
        if not last:
            every = [(p, a, a) for p in range(n) for a in range(n)]
        flags = _picked(self.columns[last], [(p, m) for p, m, _ in every]) + _lanes(place, [a for *_, a in every])
        if last:
            flags = flags + _picked(self.products[last - 1], [(m, a) for _, m, a in every])
        return np.array([[weights[p] for p, *_ in every]]) @ (flags >= (3 if last else 2))


def _through(held: Stream, product: Sequence[Stream], weights: Sequence[int]) -> Stream:
    """The weight of the place to which a permutation, given at each place, takes the one that is held."""
    n = len(product)
    every = [(m, a) for m in range(n) for a in range(n) if weights[a]]
    flags = _lanes(held, [m for m, _ in every]) & _picked(product, every)
    return np.array([[weights[a] for _, a in every]]) @ flags


def _picked(places: Sequence[Stream], lanes: Sequence[tuple[int, int]]) -> Stream:
    """For each (place, lane) that lane of what stands at the place."""
    n = places[0].width
    return _lanes(concatenate(*places), [n * p + a for p, a in lanes])


def _lanes(stream: Stream, lanes: Sequence[int]) -> Stream:
    return stream[list(lanes)].retyped(Bool(len(lanes)))
