"""The transition monoid: all maps of states that words make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm

import numpy as np

from compiler.automata.table import Table

MOST_ELEMENTS = 1 << 16
MOST_NUMBERS = 1 << 23  # elements × states
_ROW = ">u2"  # whose bytes sort as its numbers do


@dataclass(frozen=True, eq=False)
class Monoid:
    """elements: (count, states), row w the state behind the word from each state; the empty word first, short words
    before long ones.

    whole: whether these are all; False where the cap was met.
    """

    elements: np.ndarray
    whole: bool

    @property
    def size(self) -> int:
        return len(self.elements)

    @cached_property
    def aperiodic(self) -> bool:
        """Whether no element permutes some of its states around a circle: then the monoid holds no group but {1}."""
        return not self._turning.any()

    @property
    def period(self) -> int:
        """The order of the cyclic group that the first element with a circle makes; there must be one."""
        first = int(np.flatnonzero(self._turning)[0])
        element, periods = self.elements[first].tolist(), []
        for state in set(self._circles[first].tolist()):
            at, steps = element[state], 1
            while at != state:
                at, steps = element[at], steps + 1
            periods.append(steps)
        return lcm(*periods)

    @cached_property
    def _circles(self) -> np.ndarray:
        """(count, states): a power of each element that leaves only states on its circles."""
        power, states = self.elements, self.elements.shape[1]
        for _ in range(states.bit_length()):  # e^(2^k) with 2^k ≥ states
            power = np.take_along_axis(power, power, axis=1)
        return power

    @cached_property
    def _turning(self) -> np.ndarray:
        """(count,): whether an element moves a state of its circles."""
        return (np.take_along_axis(self.elements, self._circles, axis=1) != self._circles).any(axis=1)


def transition_monoid(table: Table, most: int = MOST_ELEMENTS) -> Monoid:
    """The monoid of the words of a table, or as much of it as the cap allows."""
    most = min(most, max(1, MOST_NUMBERS // table.states))
    letters = np.array(table.following, dtype=np.uint16).T
    layer = np.arange(table.states, dtype=np.uint16)[None]
    found, layers = {row.tobytes() for row in layer.astype(_ROW)}, [layer]
    while len(layer) and len(found) <= most:
        longer: set[bytes] = set()
        together = max(1, most // len(layer))  # letters, so that no more rows than the cap are made at once
        for first in range(0, len(letters), together):
            rows = np.concatenate([by[layer] for by in letters[first : first + together]])
            longer |= {row.tobytes() for row in rows.astype(_ROW)} - found
            if len(found) + len(longer) > most:
                break
        found |= longer
        layer = np.frombuffer(b"".join(sorted(longer)), dtype=_ROW).reshape(-1, table.states).astype(np.uint16)
        layers.append(layer)
    elements = np.concatenate(layers)
    return Monoid(elements[:most], len(elements) <= most)
