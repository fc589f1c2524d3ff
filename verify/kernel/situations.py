"""Situations: what may stand at a position together, found by going along the edges of the input language.

A *situation* is the state of the language, what tables read of the last letters, and the numbers of the states that are
*followed*, as far back as any is read. Of *bounded* states it holds an interval, the hull of all that may stand there.
From the start, where all is 0, each letter of each edge leads on. An end of an interval that still grows after so many
letters (`_EXACT_ROUNDS`) is that of the state's range, which holds at every position. Sequences of at most `length`
letters take as many steps, so where nothing is new any more, or after `length` rounds, every position of every sequence
is at one of the situations that were reached (by induction over positions; lemmas of edges and of known letters). That
edges are `distinct` only takes sequences away.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from verify.kernel.cases import Array, Cases, Place, places_in
from verify.kernel.exact import add, integers
from verify.kernel.floats import Unproved
from verify.kernel.language import Language
from verify.kernel.letters import letter_classes
from verify.kernel.terms import Poly, Terms

MOST_SITUATIONS, _MOST_ROUNDS, _STEPS_EACH = 1 << 16, 1 << 12, 16
_EXACT_ROUNDS, _AT_ONCE = 1 << 8, 1 << 8  # letters; situations that lead on together
_OF_A_ROW = 64  # numbers formed in the time of looking up a situation
_MOST_PLACES, _MOST_NUMBERS = 1 << 10, 1 << 26  # of a situation, in sum of all tables and states; of one step
Ends = tuple[Array, Array]


class _At(Cases):
    """Cases in a row, of which `ends` says also, at (0, lag), whether a position stands so far back."""

    def begun(self, back: int) -> Array:
        return self.ends[0, back][0]


class Situations(_At):
    """The situations that are reached, as cases of some polynomials. Unproved where these are too many."""

    def __init__(
        self,
        terms: Terms,
        polys: Sequence[Poly],
        followed: Collection[int],
        bounded: Collection[int],
        most: int = MOST_SITUATIONS,
        language: Language | None = None,
    ):
        super().__init__(terms, 1)
        self._language = language or terms.language
        self._states, self._bounded, self._most = sorted({*followed, *bounded}), set(bounded), most
        if any(terms.atoms[a].kind not in ("sum", "count", "latch") for a in self._states):
            raise Unproved("what is followed is no state")
        depth = _depths(terms, polys, self._states)
        if len(self._states) < len(followed) + len(bounded) or not depth.keys() >= set(self._states):
            raise Unproved("a state is followed twice, or is none that is read")
        if sum(depth.values()) > _MOST_PLACES:
            raise Unproved(f"what is followed is read {sum(depth.values())} positions back, more than {_MOST_PLACES}")
        places = [(a, k) for a in sorted(depth) for k in range(depth[a] + 1)]
        self._exact = [place for place in places if place[0] not in self._bounded]
        self._held = [place for place in places if place[0] in self._bounded]
        self._tables = [a for a in sorted(depth) if terms.atoms[a].kind == "table"]
        self._ranges = integers([x for place in self._held for x in terms.atom_range(*place)]).reshape(-1, 2).T
        # of each situation: the state of the language and the numbers at self._exact; the ends at self._held
        self._rows = [np.zeros(1 + len(self._exact), np.int64)]
        self._ends = [np.zeros((2, len(self._held)), np.int64)]
        self._index = {self._rows[0].tobytes(): 0}
        self._ways: dict[int, Array] = {}
        key = *sorted(depth.items()), *self._states, frozenset(self._bounded)
        if language is not None or key not in terms.walks:
            self._walk()
            if len(self._rows) == 1:
                raise Unproved("no sequence has a position")
            found = np.stack(self._rows[1:]), np.stack(self._ends[1:])  # the start is no position
            if language is None:  # true whenever it was made: the key says all but ranges and equal atoms
                terms.walks[key] = found
        else:
            found = terms.walks[key]
        self.ends, self.state = self._columns(*found), found[0][:, 0]

    def _columns(self, rows: Array, ends: Array) -> dict[Place, Ends]:
        exact = {place: (rows[:, 1 + i],) * 2 for i, place in enumerate(self._exact)}
        return {**exact, **{place: (ends[:, 0, i], ends[:, 1, i]) for i, place in enumerate(self._held)}}

    def _walk(self) -> None:
        """Induction over positions: after round t every position up to the t-th of every sequence is at a situation
        that was entered, for its letter leads there from one that was (the start, at first), with each followed number
        and with each bounded one within its interval. A situation is taken on by every letter when it is entered, and
        again whenever an interval of it grows, since less was known before of where it leads. With nothing new or
        grown, one more letter leads to what is there, so all positions are there, whatever the length.
        """
        newest, steps = [0] if 0 in self._language.leaving else [], 0
        for t in range(min(self._language.length, _MOST_ROUNDS)):
            found: set[int] = set()
            for at in range(0, len(newest), _AT_ONCE):
                here = newest[at : at + _AT_ONCE]
                moves = [self._moves(int(self._rows[i][0])) for i in here]
                steps += (each := sum(m.shape[1] for m in moves))
                self.terms.spend(_OF_A_ROW * each)
                many = len(self._rows) > self._most or steps > _STEPS_EACH * self._most
                if many or each * len(self._rows[0]) > _MOST_NUMBERS:
                    raise Unproved(f"{len(self._rows)} situations and more, in {steps} steps")
                found |= self._enter(*self._step(here, moves), t >= _EXACT_ROUNDS)
            newest = [i for i in sorted(found) if int(self._rows[i][0]) in self._language.leaving]
            if not newest:
                return
        if self._language.length > _MOST_ROUNDS:
            raise Unproved(f"there are new situations still after {_MOST_ROUNDS} letters")

    def _enter(self, rows: Array, ends: Array, wide: bool) -> set[int]:
        """The numbers of situations that are new, or whose intervals change. wide: an end that grows is that of the
        state's range from then on, which holds at every position.
        """
        at = [self._index.setdefault(row.tobytes(), len(self._index)) for row in rows]
        found = set(range(len(self._rows), len(self._index)))
        for i, row, held in zip(at, rows, ends, strict=True):
            if i == len(self._rows):
                self._rows.append(row)
                self._ends.append(held)
        if self._held:
            order = np.argsort(at, kind="stable")
            entered, first = np.unique(np.array(at)[order], return_index=True)
            lows, highs = np.minimum.reduceat(ends[order, 0], first), np.maximum.reduceat(ends[order, 1], first)
            for i, lo, hi in zip(entered.tolist(), lows, highs, strict=True):
                grown = np.stack([np.minimum(lo, self._ends[i][0]), np.maximum(hi, self._ends[i][1])])
                grown = np.where(grown != self._ends[i], self._ranges, grown) if wide else grown
                if (grown != self._ends[i]).any():
                    self._ends[i] = grown
                    found.add(i)
        return found

    def _moves(self, state: int) -> Array:
        """Where a state of the language leads, and what tables read of the letters: a column for each, found once."""
        if state not in self._ways:
            found = [(letter_classes(self.terms, self._tables, e.letters), e) for e in self._language.leaving[state]]
            each = [np.concatenate([np.full((1, letters.shape[1]), e.target), letters]) for letters, e in found]
            self._ways[state] = np.concatenate(each, axis=1)
        return self._ways[state]

    def _step(self, here: list[int], moves: list[Array]) -> tuple[Array, Array]:
        """Where each letter leads from each of these situations."""
        each = np.repeat(here, [m.shape[1] for m in moves])
        target, *letters = np.concatenate(moves, axis=1)
        before = self._columns(np.stack([self._rows[i] for i in each]), np.stack([self._ends[i] for i in each]))
        now = _At(self.terms, 1)
        now.ends |= {(a, lag): before[a, lag - 1] for a, lag in (*self._exact, *self._held) if lag}
        now.ends |= {(a, 0): (numbers,) * 2 for a, numbers in zip(self._tables, letters, strict=True)}
        for a in self._states:  # what a state stores was built before it, so it stands before it in this order
            now.ends[a, 0] = self._moved(now, a, before[a, 0])
        rows = np.stack([target, *(now.ends[place][0] for place in self._exact)], axis=1)
        held = [np.stack([now.ends[place][end] for place in self._held], axis=1) for end in (0, 1) if self._held]
        return rows, np.stack(held, axis=1) if held else np.zeros((len(each), 2, 0), np.int64)

    def _moved(self, now: Cases, a: int, before: Ends) -> Ends:
        """The number of a state after one more position, from what it stores and whether its flag is 1."""
        atom = self.terms.atoms[a]
        stored, flag = now.spread(atom.of), now.spread(atom.flag)
        if a not in self._bounded and {*stored, *flag} - {()}:
            raise Unproved("a state is followed that moves by what is not")
        of, (closed, opened) = now.range(stored), now.range(flag)
        found = []
        for end, choose in ((0, np.minimum), (1, np.maximum)):
            stays = before[end] if atom.kind == "latch" else add(before[end], of[end])
            moves = of[end] if atom.kind == "latch" else 0 * of[end]
            both = choose(stays, moves)
            found.append(np.where(opened <= 0, stays, np.where(closed >= 1, moves, both)))
        if a not in self._bounded and any(numbers.dtype == object for numbers in found):
            raise Unproved("a state has numbers of more than 62 bits")
        return found[0], found[1]


def _depths(terms: Terms, polys: Sequence[Poly], states: Sequence[int]) -> dict[int, int]:
    """How far back each table and each of these states is read, by the polynomials and by what moves the states."""
    seen: set[Place] = set()
    for p in polys:
        places_in(terms, p, 0, seen)
    todo = list(states)
    while moved := [a for a in todo if any(b == a for b, _ in seen)]:
        todo = [a for a in todo if a not in moved]
        for a in moved:
            for p in (terms.atoms[a].of, terms.atoms[a].flag):
                places_in(terms, p, 0, seen)
    found = {0: max((lag for _, lag in seen), default=0)}
    for a, lag in seen:
        if a and (terms.atoms[a].kind == "table" or a in states):
            found[a] = max(found.get(a, 0), lag)
    return found
