"""A cascade of resets and permutations as a circuit, for mixers whose state can be moved by a swap of two places.

All levels stand *behind* the present letter. What is done is a table of one number, letter + letters · Σ_j weight_j ·
c_j, with c_j before the letter; a level that starts at s calls s number 0 and 0 number s, so that the zeros before the
first letter are where it starts. A level of resets is a latch. One that permutations move is a column for each factor
of a letter's permutation (`compiler/automata/turning.py`): the first is moved by the table's swap, each other one by
that swap seen through the columns before it.

To see a place a through D, the product of the columns before: it is the place p that D takes to a. D = C·D' for the
last of these columns, so D' is gone back first: [D(p) = a] = Σ_m [C(p) = m]·[D'(m) = a]. The two places of a swap are
seen at once, then which pair they are. That is a block more than to add up numbers of the places, but all sums stay so
small that bfloat16 holds them.
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
from compiler.language.operations import Source
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool, OneHot, Type
from compiler.language.words import concatenate, latch, permute

MOST_SHOWN = 8  # of a sum of flags that is rectified without being cut: sums of sums must stay below 256 in bfloat16
MOST_MATCHED = 1 << 10  # combinations of values that are each compared with those that the levels have


@dataclass(frozen=True, eq=False)
class Followed:
    """A level behind the present letter. number: its value, with 0 and where it starts exchanged; places: a lane for
    each value, which is 1 at the level's; None where the level is not followed so.
    """

    number: Stream
    places: Stream | None = None


def turned_levels(cascade: Cascade, letter: Stream, letters: int, counts: bool = False) -> list[Followed]:
    """c_i of each level behind the present letter. letter: which it is, 0 … letters − 1.

    counts: whether levels that permutations move are counted, for mixers whose state cannot turn.
    """
    return _Levels(cascade, letter, letters, counts).found


def turned_output(cascade: Cascade, levels: Sequence[Followed], entries: Mapping[Hashable, int]) -> Stream:
    """The number that `entries` gives the cascade's output behind the present letter."""
    code, number = _of_levels(cascade, levels)
    return number.lookup(_filled([None if value is None else entries[value] for value in _listed(code)]))


def matches(cascade: Cascade, levels: Sequence[Followed]) -> bool:
    """Whether an output is told by the lanes of levels, not by one number."""
    if not cascade.reads or len(cascade.outputs) > MOST_MATCHED:
        return False
    return all(levels[j].places is not None for j in cascade.reads)


def turned_scores(cascade: Cascade, levels: Sequence[Followed], outputs: Sequence[Hashable]) -> Stream:
    """A lane for each of these outputs; that of the cascade's, behind the present letter, leads by at least 1."""
    places = [levels[j].places for j in cascade.reads]
    if not matches(cascade, levels):
        code, number = _of_levels(cascade, levels)
        return _one_hot(
            number, code.size, {key: outputs.index(output) for key, output in code.entries.items()}, len(outputs)
        )
    shown = [stream for stream in places if stream is not None]
    starts = np.cumsum([0, *(stream.width for stream in shown)])
    matched = np.zeros((len(cascade.outputs), starts[-1]))
    for row, key in zip(matched, cascade.outputs, strict=True):
        row[[start + value for start, value in zip(starts, key, strict=False)]] = 1
    agree = matched @ concatenate(*shown)  # how many levels have the value of each combination
    of = np.array([[outputs.index(output) == i for output in cascade.outputs.values()] for i in range(len(outputs))])
    return of.astype(float) @ (agree if len(outputs) == len(cascade.outputs) else agree >= len(shown))


def _of_levels(cascade: Cascade, levels: Sequence[Followed]) -> tuple[Code, Stream]:
    by = {(*_numbered(cascade, cascade.reads, key), 0): value for key, value in cascade.outputs.items()}
    code = code_of(by, [cascade.levels[j].size for j in cascade.reads], 1)
    return code, _total(code, [levels[j].number for j in cascade.reads])


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
    return _looked_up(number, which, OneHot(lanes))


def _looked_up(number: Stream, which: np.ndarray, type: Type) -> Stream:
    """which @ number.one_hot(…). Lanes that one token decides are looked up, so that the embedding holds them alone."""
    if number.operation.source is Source.TOKEN:
        return concatenate(*(number.lookup(row) for row in which.astype(int).tolist())).retyped(type)
    return (which @ number.one_hot(which.shape[1])).retyped(type)


_Entry = tuple[tuple[Swap | None, ...], int | None]
"""The factors of what moves a level, and the value that is set or None."""


@dataclass
class _Levels:
    """The streams of a cascade's levels, from the top."""

    cascade: Cascade
    letter: Stream
    letters: int
    counts: bool
    found: list[Followed] = field(default_factory=list)

    def __post_init__(self) -> None:
        own = {i: turning for turning in turnings(self.cascade) for i in turning.members}
        built: dict[int, dict[int, Followed]] = {}
        for i in range(len(self.cascade.levels)):
            if i not in own:
                self.found.append(Followed(self._latch(i)))
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
        return code, self.letter + _total(code, [self.found[j].number for j in reads], self.letters).shift(1)

    def _latch(self, i: int) -> Stream:
        level = self.cascade.levels[i]
        actions = {key: action for key, action in level.sets.items() if isinstance(action, int)}  # nothing moves it
        sets = {key: HOLD if action == HOLD else _number(action, level.start) for key, action in actions.items()}
        code, number = self._table(level.reads, sets)
        what = number.lookup(_filled([None if value == HOLD else value for value in _listed(code)]))
        whether = number.lookup(_filled([None if value is None else int(value != HOLD) for value in _listed(code)]))
        when = whether.retyped(Bool()).named(f"sets[{i}]")
        return latch(what.named(f"set[{i}]"), when).named(f"level[{i}]")

    def _turned(self, turning: Turning) -> dict[int, Followed]:
        starts = {i: self.cascade.levels[i].start for i in turning.members}
        name = f"level[{turning.members[0]}]"
        if self.counts:
            code, number = self._table(turning.reads, self.cascade.levels[turning.members[0]].sets)
            actions: dict[int, Any] = dict(code.entries)
            numbers = counted(turning.size, actions, code.size, number, starts, name)
            return {i: Followed(stream) for i, stream in numbers.items()}
        by = {key: (factors, turning.resets.get(key)) for key, factors in turning.factors.items()}
        code, number = self._table(turning.reads, by)
        entries: dict[int, Any] = dict(code.entries)
        places = _Columns(turning, entries, code.size, number, name).followed(starts)
        named = lambda i, weights: (np.array([weights]) @ places[i]).named(f"level[{i}]")
        weights = {i: [_number(value, start) for value in range(turning.size)] for i, start in starts.items()}
        return {i: Followed(named(i, weights[i]), places[i]) for i in starts}


@dataclass
class _Columns:
    """The columns of a turning. entries: of the table that chooses what is done, by its number, less than `size`."""

    turning: Turning
    entries: Mapping[int, _Entry]
    size: int
    number: Stream
    name: str
    columns: list[list[Stream]] = field(default_factory=list)  # C_j at each place, but for the last

    def followed(self, starts: Mapping[int, int]) -> dict[int, Stream]:
        """For each level, by its start, a lane for each place: 1 at the level's behind the letter."""
        last = self.turning.columns - 1
        for j in range(last):
            swaps = self._swaps(j)
            self.columns.append([self._column(j, p, swaps) for p in range(self.turning.size)])
        swaps, reset = self._swaps(last), self._reset()
        held = {i: permute(start, swaps, self.turning.pairs[last], reset) for i, start in starts.items()}
        named = {i: held[i].named(f"{self.name}.c{last + 1}[{start}]") for i, start in starts.items()}
        if not self.columns:
            return named
        product = self._product()
        return {i: _through(stream, product).stream for i, stream in named.items()}

    def _column(self, j: int, place: int, swaps: Stream) -> Stream:
        return permute(place, swaps, self.turning.pairs[j]).named(f"{self.name}.c{j + 1}[{place}]")

    def _product(self) -> list[_Lanes]:
        """D at each place, of all columns that there are."""
        product = [_Lanes(place) for place in self.columns[0]]
        for column in self.columns[1:]:
            product = [_through(place, product) for place in column]
        return product

    def _where(self, of: Callable[[_Entry], int | None], lanes: int) -> Stream:
        """OneHot of the lane that each entry of the table names."""
        lane = {key: at for key, entry in self.entries.items() if (at := of(entry)) is not None}
        return _one_hot(self.number, self.size, lane, lanes)

    def _swaps(self, j: int) -> Stream:
        """Which pair of places moves column j: OneHot over the pairs."""
        pairs, n = self.turning.pairs[j], self.turning.size
        if not j:
            return self._where(lambda entry: None if entry[0][0] is None else pairs.index(entry[0][0]), len(pairs))

        swapped_by = np.zeros((n, self.size))
        for key, (factors, _) in self.entries.items():
            swapped_by[list(factors[j] or ()), key] = 1
        ends = self._seen(_looked_up(self.number, swapped_by, Bool(n)))
        met = ends[[p for p, _ in pairs]] + ends[[q for _, q in pairs]] >= 2
        none = len(pairs) // 2  # the number of no pair: numbers on both sides of it keep the sum of all flags small
        numbers = [k if k < none else k + 1 for k in range(len(pairs))]
        which = (np.array([numbers]) - none) @ met + none
        lane = {number: k for k, number in enumerate(numbers)}
        return _one_hot(which.named(f"{self.name}.ends{j + 1}"), len(pairs) + 1, lane, len(pairs)).named(
            f"{self.name}.swap{j + 1}"
        )

    def _reset(self) -> Stream | None:
        """Where the last column is put; None where nothing is ever set."""
        if not self.turning.resets:
            return None
        place = self._where(lambda entry: entry[1], self.turning.size)
        if not self.columns:
            return place
        n = self.turning.size
        return _one_hot(np.array([range(1, n + 1)]) @ self._seen(place), n + 1, {p + 1: p for p in range(n)}, n)

    def _seen(self, places: Stream) -> Stream:
        """The places that the product of the columns so far takes to these: a lane for each, 1 where it is one.

        D(p) = D'(C(p)), C the last column: so what D' takes there is looked for in C, and D' is gone back first.
        """
        n = self.turning.size
        found = _Lanes(places)
        for column in self.columns:
            found = found.picked(n * list(range(n))).beside(concatenate(*column), np.kron(np.eye(n), np.ones((1, n))))
        return found.stream


@dataclass(frozen=True, eq=False)
class _Lanes:
    """Lanes that are 0 or 1. most: what is shown of each, for a sum of flags that exclude each other is shown no more
    than how many they are.
    """

    stream: Stream
    most: int = 1

    def beside(self, column: Stream, added: np.ndarray) -> _Lanes:
        """Sums of flags: where a lane of the column is 1 beside a lane of these. One ramp tells that of lanes which are
        shown to be small; two cut it to 0 or 1, so that the sums stay small.
        """
        both = column + self.stream - 1
        small = self.most <= MOST_SHOWN
        flags = both.relu() if small else both >= 1
        return _Lanes(added @ flags, (self.most if small else 1) * int(added.sum(axis=1).max()))

    def picked(self, lanes: Sequence[int]) -> _Lanes:
        return _Lanes(self.stream[list(lanes)], self.most)


def _through(held: Stream, product: Sequence[_Lanes]) -> _Lanes:
    """The place to which a permutation, given at each place, takes the one that is held: a lane for each."""
    n = len(product)
    every = _Lanes(concatenate(*(place.stream for place in product)), max(place.most for place in product))
    return every.beside(held[np.repeat(range(n), n)], np.kron(np.ones((1, n)), np.eye(n)))
