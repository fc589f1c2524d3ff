"""A state that stands on one of n places and is moved by swaps of two places."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.wording import needs
from compiler.language.types import Bool, Int, OneHot, Type
from compiler.lattice.domain import Domain

_ONE = Fraction(1)


@dataclass(frozen=True)
class Permute(Operation):
    """Which of n places the state stands on, after the swap of the present position.

    inputs: swaps (a lane for each pair; none holds: the state stays) and, optionally, reset (n lanes).
    pairs: the two places that each lane of `swaps` swaps.
    start: the place before the first position; None: the state is absent (zeros) until a reset.
    A reset puts the state on its place, whatever is swapped at the same position.
    """

    n: int
    pairs: tuple[tuple[int, ...], ...]
    start: int | None = None

    def written(self, swaps: str, *reset: str) -> str:
        return f"permute({self.start}, {swaps}{''.join(f', reset={r}' for r in reset)})"

    def result_type(self, swaps: Type, *reset: Type) -> Type:
        return OneHot(self.n)

    def problems(self, swaps: Type, *reset: Type) -> list[str]:
        found = needs(OneHot, "a OneHot of swaps", swaps=swaps)
        if swaps.width != len(self.pairs):
            found.append(f"its swaps have {swaps.width} lanes for {len(self.pairs)} pairs of places")
        wrong = [pair for pair in self.pairs if len(set(pair)) != 2 or not all(0 <= place < self.n for place in pair)]
        if wrong:
            found.append(f"its pair {wrong[0]} must name two different places of 0 … {self.n - 1}")
        if self.start is not None and not 0 <= self.start < self.n:
            found.append(f"its start is {self.start}, and it must be a place of 0 … {self.n - 1}")
        for places in reset:
            found += needs(OneHot, "a OneHot reset", reset=places)
            if places.width != self.n:
                found.append(f"its reset has {places.width} lanes for {self.n} places")
        return found

    def unmet(self, swaps: Domain, *reset: Domain) -> str | None:
        for what, domain in (("swaps", swaps), *(("reset", places) for places in reset)):
            if not domain.is_flag or domain.l1 > 1:
                return f"its {what} must be shown to be one-hot, and Σ over lanes may reach {domain.l1}"
        return None

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.lanes(np.ones(self.n), np.zeros(self.n), np.ones(self.n), _ONE)

    def evaluate(self, swaps: Array, *reset: Array) -> Array:
        batch, length, _ = swaps.shape
        state = np.zeros((batch, self.n), dtype=swaps.dtype)
        if self.start is not None:
            state[:, self.start] = 1
        out = np.empty((batch, length, self.n), dtype=swaps.dtype)
        for t in range(length):
            for lane, (i, j) in enumerate(self.pairs):
                here = swaps[:, t, lane] != 0
                state[:, [i, j]] = np.where(here[:, None], state[:, [j, i]], state[:, [i, j]])
            for places in reset:
                state = np.where((places[:, t] != 0).any(axis=-1, keepdims=True), places[:, t], state)
            out[:, t] = state
        return out


@dataclass(frozen=True)
class Moved(Operation):
    """Core of `Permute`: where its state stands, a lane for each place but the start, up to a sign.

    inputs: touched (n lanes: the two places that are swapped, or none), restart (a flag: the state is put back on its
    start before the swap). A state that is moved by a swap of two places of one colour changes its sign; where the
    pairs have no such swap, every lane is a flag.
    """

    core = True

    n: int
    pairs: tuple[tuple[int, ...], ...]
    start: int

    @property
    def symbol(self) -> str:
        return "permute"

    @property
    def others(self) -> list[int]:
        """The places that have a lane."""
        return [place for place in range(self.n) if place != self.start]

    @cached_property
    def colours(self) -> tuple[int, ...]:
        """1 or −1 for each place, the start's 1: different for the places of a pair wherever that is possible."""
        found: dict[int, int] = {}
        for first in (self.start, *range(self.n)):
            found.setdefault(first, 1)
            pending = [first]
            while pending:
                place = pending.pop()
                for pair in self.pairs:
                    other = sum(pair) - place if place in pair else place
                    if other not in found:
                        found[other] = -found[place]
                        pending.append(other)
        return tuple(found[place] for place in range(self.n))

    @property
    def odd(self) -> list[tuple[int, ...]]:
        """The pairs of one colour."""
        return [(i, j) for i, j in self.pairs if self.colours[i] == self.colours[j]]

    def result_type(self, touched: Type, restart: Type) -> Type:
        return Bool(self.n - 1) if not self.odd else Int(-1, 1, self.n - 1)

    def domain(self, stream: Operand, known: Known) -> Domain:
        ones = np.ones(self.n - 1)
        return known.lanes(ones, -ones if self.odd else 0 * ones, ones, _ONE)

    def evaluate(self, touched: Array, restart: Array) -> Array:
        batch, length, _ = touched.shape
        begin = np.zeros((batch, self.n), dtype=touched.dtype)
        begin[:, self.start] = 1
        state, out = begin, np.empty((batch, length, self.n), dtype=touched.dtype)
        odd = set(self.odd)
        for t in range(length):
            state = np.where(restart[:, t] != 0, begin, state)
            for i, j in dict.fromkeys((min(pair), max(pair)) for pair in self.pairs):
                here = (touched[:, t, i] != 0) & (touched[:, t, j] != 0)
                sign = -1 if (i, j) in odd or (j, i) in odd else 1
                state[:, [i, j]] = np.where(here[:, None], sign * state[:, [j, i]], state[:, [i, j]])
            out[:, t] = state
        return out[..., self.others]
