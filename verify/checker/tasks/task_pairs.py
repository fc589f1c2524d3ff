"""Numbers as functions of two neighbouring letters, looked at set by set: nothing grows with the number of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.values.exact import above, sum_sides
from verify.checker.values.language import Language
from verify.checker.values.values import Value, World
from verify.checker.values.windows import Letters, is_window, letters_of, reach


@dataclass(frozen=True, eq=False)
class Sets:
    """The keys and the values among the letters of a language, as ids."""

    language: Language
    keys: np.ndarray
    values: np.ndarray

    @property
    def size(self) -> int:
        return self.language.tokens

    @property
    def apart(self) -> bool:
        """Whether no letter is both a key and a value."""
        return not np.intersect1d(self.keys, self.values).size

    @property
    def another(self) -> int:
        """A letter, no key if there is one."""
        return int(np.argmin(self.mask(self.keys)))

    def mask(self, ids: np.ndarray) -> np.ndarray:
        held = np.zeros(self.size, dtype=bool)
        held[ids] = True
        return held

    @cached_property
    def kinds(self) -> list[tuple[bool, bool, np.ndarray]]:
        """(are they keys, are they values, which letters) for each of the at most four kinds that sequences hold."""
        key, value = self.mask(self.keys), self.mask(self.values)
        found = [
            (k, v, (key == k) & (value == v) & self.mask(self.language.used))
            for k in (False, True)
            for v in (False, True)
        ]
        return [kind for kind in found if kind[2].any()]

    def most_pairs(self) -> tuple[np.ndarray, np.ndarray, float]:
        """How often a value can stand right after each key, at most: (keys,); the same before a position that the key
        stands right before, without a value between; and after any key.
        """
        language, value, found = self.language, self.mask(self.values), np.zeros(self.size)
        before_values = {e.source for e in language.edges if (e.letters & value).any()}
        for edge in language.edges:
            if edge.target in before_values:
                found[edge.letters] += 1.0 if edge.distinct or not edge.repeats else above(language.length)
        most = np.minimum(found[self.keys], above(language.length))
        others = np.maximum(sum_sides(language.counts[self.keys], np.array(-1.0))[1], 0)
        fewer = np.minimum(most, others) if self.apart else most
        return most, fewer, above(language.length // 2 if self.apart else language.length)


class Pair:
    """A number as a function of the letter before (axis 1) and the present one (axis 0)."""

    def __init__(self, world: World, value: Value):
        if not is_window(world, value) or reach(world, value) > 1:
            raise Rejected("an operand of the memory is no function of the present letter and the one before")
        self.far, self.first = letters_of(world, value, None), letters_of(world, value, 1)
        self.table = self._table(self.far)

    @staticmethod
    def _table(part: Letters) -> np.ndarray:
        if len(part.axes) == 2:
            return part.table
        return part.table.reshape((-1, 1) if 0 in part.axes else (1, -1))

    def varies(self, lag: int) -> bool:
        return lag in self.far.axes

    def classes(self, lag: int, letters: np.ndarray) -> np.ndarray:
        """The place in the table of each of these letters at a lag."""
        return self.far.axes[lag][letters] if self.varies(lag) else np.zeros(len(letters), dtype=np.int64)

    def on(self, before: np.ndarray | None, now: np.ndarray) -> np.ndarray:
        """All its values over two sets of letters; before: None for the first position."""
        part, table = (self.first, self._table(self.first)) if before is None else (self.far, self.table)
        for lag, held in ((0, now), (1, before)):
            if lag in part.axes and held is not None:
                present = np.zeros(table.shape[lag], dtype=bool)
                present[part.axes[lag][held]] = True
                table = table.compress(present, axis=lag)
        return table

    def alone(self, lag: int, ids: np.ndarray, others: np.ndarray) -> np.ndarray:
        """As a function of the letter at one lag, whichever of `others` stands at the other lag: (ids,)."""
        present = np.zeros(self.table.shape[1 - lag], dtype=bool)
        present[self.classes(1 - lag, others)] = True
        table = np.moveaxis(self.table.compress(present, axis=1 - lag), lag, 0)
        chosen = table[self.classes(lag, ids)]
        if (chosen != chosen[:, :1]).any():
            raise Rejected("what a pair stores is not a function of its key times one of its value")
        return chosen[:, 0]
