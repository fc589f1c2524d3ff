"""What the checker's values are on one sequence: the definition of each kind of root, in plain Python."""

from __future__ import annotations

from fractions import Fraction

from verify.checker.values.tables import Table
from verify.checker.values.values import TOKEN, Value, World


class Sequence:
    """The values of one world on one sequence of letters; positions count from 1."""

    def __init__(self, world: World, letters: list[int]):
        self.world, self.letters = world, letters
        self._roots: dict[tuple[int, int], Fraction] = {}
        self._values: dict[tuple[str, int], Fraction] = {}

    def value(self, value: Value, t: int) -> Fraction:
        if (value.key, t) not in self._values:
            self._values[value.key, t] = self._value(value, t)
        return self._values[value.key, t]

    def _value(self, value: Value, t: int) -> Fraction:
        total = value.const
        for (root, lag), component in value.terms.items():
            if t - lag < 1:
                total += component.start[lag - t]
            elif isinstance(component, Table):
                total += Fraction(float(component.dense()[self.letters[t - lag - 1]]))
            else:
                total += component.at(self.root(root, t - lag))
        return total

    def root(self, number: int, t: int) -> Fraction:
        if number == TOKEN:
            raise ValueError("a letter is no number")
        if (number, t) not in self._roots:
            self._roots[number, t] = self._root(number, t)
        return self._roots[number, t]

    def _root(self, number: int, t: int) -> Fraction:
        root = self.world.roots[number]
        past = range(1, t + 1)
        if root.kind == "form":
            return self.value(root.parts[0], t)
        if root.kind == "product":
            scale, a, b = root.parts
            return scale * self.value(a, t) * self.value(b, t)
        if root.kind == "sum":
            unit, drive = root.parts
            return sum((self.value(drive, s) for s in past), Fraction(0)) / unit
        if root.kind == "moved":
            moves, flags = root.parts
            state = 0
            for s in past:
                on = [move for (when,), move in zip(flags, moves.each, strict=True) if self.value(when, s) == 1]
                state = on[0][state] if on else state
            return Fraction(state)
        if root.kind == "memory":
            unit, drive, columns = root.parts
            found = Fraction(0)
            for write, query in columns:
                gate = self.value(query, t)
                if gate:
                    found += gate * sum((self.value(write, s) * self.value(drive, s) for s in past), Fraction(0))
            return found / unit
        unit, stored, flag = root.parts
        last = max((s for s in past if self.value(flag, s) == 1), default=0)
        if root.kind == "latch":
            return self.value(stored, last) / unit if last else Fraction(0)
        assert root.kind == "count"
        return sum((self.value(stored, s) for s in range(last + 1, t + 1)), Fraction(0)) / unit
