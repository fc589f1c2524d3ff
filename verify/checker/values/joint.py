"""What states are together, as one machine that the letters move (lemma of states together)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from verify.checker.values.language import Language
from verify.checker.values.windows import Letters, TooLarge, alike, numbered

STATE, LETTER = (0, 0), (1, 0)  # the axes of functions of a moment: the state behind it, and its letter
_MOST = 1 << 23  # states times letters


@dataclass(frozen=True, eq=False)
class Joint:
    """following: (states, kinds of letters) the next state, −1 where no path of the language leads on. State 0 stands
    before the first letter. All states but this one are reached by some path.
    """

    following: np.ndarray

    @classmethod
    def of_paths(cls, language: Language, kinds: np.ndarray) -> Joint:
        """The states of the language. kinds: a letter of each kind."""
        graph = language.graph
        following = np.full((graph.states, len(kinds)), -1, dtype=np.int64)
        for (source, target), edge in zip(graph.ends.tolist(), language.edges, strict=True):
            taken = edge.letters[kinds]
            if (following[source, taken] >= 0).any() and (following[source, taken] != target).any():
                raise TooLarge("a letter leads on to several states of the input language")
            following[source, taken] = target
        order = np.argsort(np.arange(graph.states) != graph.start, kind="stable")
        place = np.append(np.argsort(order), -1)  # −1 stays −1
        return cls(place[following[order]])

    @cached_property
    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """(the states, the letters) of all moments: a state behind a letter that leads there."""
        seen = np.zeros(self.following.shape, dtype=bool)
        before, letter = np.nonzero(self.following >= 0)
        seen[self.following[before, letter], letter] = True
        states, letters = np.nonzero(seen)
        return states, letters

    def beside(self, codes: np.ndarray, moves: np.ndarray, start: int) -> tuple[Joint, np.ndarray, np.ndarray]:
        """(both machines, for each of their states the state here, and that of the other machine).

        codes: (states, kinds), which of `moves` the other machine takes from a state here by a letter; moves: (moves,
        its states).
        """
        width = moves.shape[1]
        number = np.full(len(self.following) * width, -1, dtype=np.int64)
        number[start], count = 0, 1
        fresh, found, led = np.array([start]), [], []
        while len(fresh):
            own, other = np.divmod(fresh, width)
            ahead = self.following[own]
            after = np.where(ahead < 0, -1, ahead * width + moves[codes[own], other[:, None]])
            found.append(fresh)
            led.append(after)
            met = np.zeros(len(number), dtype=bool)
            met[after[after >= 0]] = True
            fresh = np.flatnonzero(met & (number < 0))
            number[fresh] = np.arange(count, count + len(fresh))
            count += len(fresh)
            if count * self.following.shape[1] > _MOST:
                raise TooLarge(f"states that are together are more than {_MOST // self.following.shape[1]}")
        own, other = np.divmod(np.concatenate(found), width)
        return Joint(np.append(number, -1)[np.concatenate(led)]), own, other

    def least(self, told: Sequence[Letters]) -> tuple[Joint, np.ndarray]:
        """(the machine whose states are those that these functions tell apart, after any letters; of each of its states
        one here).
        """
        which = np.zeros(len(self.following), dtype=np.int64)
        for function in told:
            if STATE in function.axes:
                which = _finer(which, _rows(function)[function.axes[STATE]])
        while True:
            ahead = np.append(which, -1)[self.following] + 1
            finer = which
            for column in ahead.T:
                finer = _finer(finer, column)
            if finer.max() == which.max():
                break
            which = finer
        first = np.unique(which, return_index=True)[1]
        order = np.argsort(first, kind="stable")  # state 0 stays the first
        place = np.append(np.argsort(order)[which], -1)
        return Joint(place[self.following[first[order]]]), first[order]

    def attained(self, functions: Sequence[Letters]) -> np.ndarray:
        """(moments, functions): the distinct rows of numbers that they are at once."""
        states, letters = self.moments
        which = np.zeros(len(states), dtype=np.int64)
        found = []
        for function in functions:
            labels = np.zeros(len(states), dtype=np.int64)
            for axis, size in zip(sorted(function.axes), function.table.shape, strict=True):
                labels = labels * size + function.axes[axis][states if axis == STATE else letters]
            found.append(function.table.reshape(-1)[labels])
            which = _finer(which, labels)
        some = np.unique(which, return_index=True)[1]
        return np.unique(np.stack([row[some] for row in found], axis=1), axis=0)

    def everywhere(self, function: Letters) -> np.ndarray:
        """(states, kinds): the function, spread out; what stands where no moment is means nothing."""
        full = function.table
        for at, axis in enumerate((STATE, LETTER)):
            held = function.axes.get(axis)
            full = np.expand_dims(full, at) if held is None else full.take(held, axis=at)
        return np.broadcast_to(full, self.following.shape)


def _rows(function: Letters) -> np.ndarray:
    """A number for each class of states, the same where the function is the same for every letter."""
    rows = np.moveaxis(function.table, sorted(function.axes).index(STATE), 0)
    return alike(rows)


def _finer(which: np.ndarray, more: np.ndarray) -> np.ndarray:
    return numbered(which * (int(more.max(initial=0)) + 1) + more)[1]
