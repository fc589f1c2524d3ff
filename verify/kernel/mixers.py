"""What the modules compute, operation by operation, each proved to give the exact value.

A `Number` is what float32 holds of a polynomial: its exact value at every position, or (`upto`) a count that outgrows
the format: exact while the count is at most `upto`, and beyond at least as large, and at most 9/8 of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from verify.kernel import rules
from verify.kernel.claims import Ledger, entries, natural
from verify.kernel.floats import (
    ERASED,
    KEPT,
    LEAST,
    LOOSE,
    OFF,
    ON,
    UNITS,
    Unproved,
    dyadic,
    exact,
    exponent,
    in_range,
    is_power,
)
from verify.kernel.terms import ZERO, Poly, Terms, constant

ONE = Fraction(1)


@dataclass(frozen=True, eq=False)
class Number:
    poly: Poly
    count: int | None = None  # the atom that outgrows float32
    upto: int = 0
    loose: bool = False  # of Δ: what is huge may be rounded, by a part of 2^-7

    @property
    def zero(self) -> bool:
        return not self.poly.terms


NOTHING = Number(ZERO)
Terms_ = Sequence[tuple[Fraction, Number]]


class Floats:
    """The float operations that all modules share."""

    def __init__(self, ledger: Ledger):
        self.ledger = ledger
        self.terms: Terms = ledger.terms

    def size(self, x: Number) -> Fraction:
        lo, hi = self.terms.range(x.poly)
        return max(abs(lo), abs(hi)) * (LOOSE if x.count is not None or x.loose else 1)

    def sum(self, place: str, parts: Terms_) -> Number:
        """Σ weight · number in any order (lemma of sums; Sums.sums_in_any_order): all terms are multiples of 2^e, the
        positive ones and the negative ones each at most 2^24 · 2^e in sum, at every position.
        """
        live = [(w, x) for w, x in parts if w and not x.zero]
        if not live:
            return NOTHING
        if any(x.count is not None for _, x in live):
            return self._counted_sum(place, live)
        whole = self.terms.add([(w, x.poly) for w, x in live])
        unit = min(exponent(w) + x.poly.unit for w, x in live)
        self.ledger.until(
            place, [whole, *(x.poly for _, x in live)], lambda: exact(self._partial(live, whole), unit, place)
        )
        return Number(whole)

    def _partial(self, live: Terms_, whole: Poly) -> Fraction:
        """A bound on every sum of some of the terms. Where none is negative, that is what bounds them all."""
        ends = [sorted(w * end for end in self.terms.range(x.poly)) for w, x in live]
        if all(lo >= 0 for lo, _ in ends):
            return min(self.terms.range(whole)[1], sum((hi for _, hi in ends), Fraction(0)))
        up = sum((max(hi, Fraction(0)) for _, hi in ends), Fraction(0))
        return max(up, sum((max(-lo, Fraction(0)) for lo, _ in ends), Fraction(0)))

    def product(self, place: str, a: Number, b: Number) -> Number:
        """a · b (lemma of sums; Sums.products)."""
        if a.poly.constant or b.poly.constant:
            return self.sum(place, [(b.poly.const, a) if b.poly.constant else (a.poly.const, b)])
        if a.count is not None or b.count is not None:
            raise Unproved(f"{place} multiplies a count that outgrows float32")
        unit = a.poly.unit + b.poly.unit
        self.ledger.until(place, [a.poly, b.poly], lambda: exact(self.size(a) * self.size(b), unit, place))
        return Number(self.terms.times(a.poly, b.poly))

    def activation(self, place: str, x: Number, zero: bool) -> Number:
        """silu (zero: 0 is safe) or softplus: max(x, 0), where every value is safe (lemma of activations;
        Activations.silu_is_relu, Activations.softplus_is_relu).
        """
        if x.count is not None:
            return self._counted_activation(place, x, zero)
        self.ledger.until(place, [x.poly], lambda: self._check_safe(place, x.poly, zero))
        return Number(self.terms.relu(x.poly))

    def step(self, place: str, x: Number, bias: Fraction) -> Number:
        """softplus(x + bias), of what has finitely many values. Values of less than 2^16 are exact; huge ones may be
        rounded (lemma of decay).
        """
        total = self.terms.add([(ONE, x.poly), (bias, constant(1))])
        if x.count is not None:
            raise Unproved(f"{place} reads a count that outgrows float32")
        values = self.ledger.until(place, [total], lambda: self.values(place, total))
        unit = min((p.unit for p in (x.poly, constant(bias)) if p.terms), default=0)
        for v in values:
            in_range(abs(v), max(unit, LEAST), place)
            if OFF < v <= ON or abs(v) < 1 << 16 and abs(v) > UNITS * Fraction(2) ** unit:
                raise Unproved(f"{place} can be {float(v):g}, in units of 2^{unit}")
        loose = any(abs(v) > UNITS * Fraction(2) ** unit for v in values)
        in_range(Fraction(0), unit, place)
        return Number(self.terms.relu(total), loose=loose)

    def values(self, place: str, p: Poly) -> list[Fraction]:
        """All that p can be, where these are finitely many numbers that are known."""
        c, cells = self.terms.cells(p)
        if any(cell.lo != cell.hi for cell in cells):
            raise Unproved(f"{place} is not one of finitely many numbers")
        return sorted({c * cell.lo for cell in cells})

    def _check_safe(self, place: str, p: Poly, zero: bool) -> None:
        """Of each cell the numbers between OFF and ON: none but 0, and that only where it is safe."""
        c, cells = self.terms.cells(p)
        for lo, hi, rest, step in cells:
            low, high = sorted((c * lo, c * hi))
            start, size, above = c * rest, abs(c * step), max(low, Fraction(OFF))
            if not step:
                found = [start]
            else:
                first = start + -((start - above) // size) * size
                found = [y for y in (first, first + size, first + 2 * size) if y <= high]
            for y in found:
                if OFF < y <= ON and not (zero and y == 0):
                    raise Unproved(f"{place} can be {float(y):g}: it must be {'0, ' * zero}above {ON} or at most {OFF}")

    # counts that outgrow the format -----------------------------------------------------------------

    def _counted_sum(self, place: str, live: Terms_) -> Number:
        """One count, times a power of two, and exact numbers (lemma of counts that outgrow the format; Counts.counts,
        Counts.falling_lines): exact while count · slope and the rest have at most 2^24 units.
        """
        ((weight, x), *others) = [(w, x) for w, x in live if x.count is not None]
        slope, line = self._line(x)
        rest = [(w, y) for w, y in live if y is not x] + [(weight, Number(line))]
        held = {a for _, y in rest for m in y.poly.terms for a, _ in m}
        slope *= weight
        if others or not is_power(weight) or not is_power(slope) or x.count in held:
            raise Unproved(f"{place} reads a count that outgrows float32 in another way than by one line")
        unit = min([exponent(slope), *(exponent(w) + y.poly.unit for w, y in rest if not y.zero)])
        reach = sum((abs(w) * self.size(y) for w, y in rest), Fraction(0))
        in_range(reach + abs(weight) * self.size(x), unit, place)
        upto = min(x.upto, int((UNITS * Fraction(2) ** unit - reach) // abs(slope)))
        return Number(self.terms.add([(w, y.poly) for w, y in live]), x.count, upto)

    def _line(self, x: Number) -> tuple[Fraction, Poly]:
        """How much a count adds for each step, and what is left without it."""
        mine = lambda m: m == ((x.count, 0),)
        slope = sum((c for m, c in x.poly.terms.items() if mine(m)), Fraction(0))
        return slope, Poly({m: c for m, c in x.poly.terms.items() if not mine(m)})

    def _counted_activation(self, place: str, x: Number, zero: bool) -> Number:
        """A falling line: at most OFF at the last count where it is exact, so beyond too, as rounding is monotone."""
        slope, rest = self._line(x)
        most = self.terms.range(rest)[1] + slope * x.upto
        if slope >= 0 or x.upto < 0 or most > OFF:
            raise Unproved(f"{place} reads a count past {x.upto}, up to which it is exact, before it is at most {OFF}")
        return self.activation(place, Number(x.poly), zero)

    # norms ------------------------------------------------------------------------------------------

    def norm(self, place: str, lanes: Sequence[Number], weights: np.ndarray, epsilon: float) -> list[Number]:
        """weight · x / K of every lane (`rules.ballast`)."""
        found: list[Any] = []

        def make(number: int, claim: Any) -> rules.Absorbed:
            kind, chosen = entries(claim, 2)
            if kind != "ballast":
                raise Unproved(f"{kind!r:.40} is no rule that a norm needs")
            sizes = [self.size(x) for x in lanes]
            chosen = [natural(i) for i in entries(chosen)]
            found.append(rules.ballast(number, [x.poly for x in lanes], chosen, sizes, epsilon, place))
            return found[-1]

        def check() -> Fraction:
            if len(found) != 1:
                raise Unproved(f"{place}: {'no' if not found else 'more than one'} ballast is named")
            found[0].used = True
            return found[0].level

        level = self.ledger.until(place, [x.poly for x in lanes], check, make)
        result = []
        for i, (lane, weight) in enumerate(zip(lanes, weights.tolist(), strict=True)):
            if not lane.zero:
                where = f"{place}, lane {i}"
                in_range(self.size(lane) / level, lane.poly.unit - exponent(level), where)
                lane = self.sum(where, [(dyadic(weight) / level, lane)])
            result.append(lane)
        return result

    # states -----------------------------------------------------------------------------------------

    def state(self, place: str, step: Number, drive: Number, rate: tuple[Fraction, Fraction]) -> Number:
        """h ← exp(−Δ·rate) h + Δ·drive of one column (lemma of decay; Activations.keeps_exactly,
        Activations.erases_exactly, States.kept_is_running_sum, States.erased_is_last_write).
        """
        if drive.count is not None or step.count is not None:
            raise Unproved(f"{place}: the state stores a count that outgrows float32")
        values = self.ledger.until(place, [step.poly], lambda: self.values(place, step.poly))
        if values[-1] * rate[1] <= KEPT and not step.loose:
            return self.running_sum(place, self.product(f"{place}: Δ·B·x̂", step, drive))
        if len(values) == 1 and values[0] * rate[0] >= ERASED and not step.loose:
            return self.product(f"{place}: Δ·B·x̂", step, drive)
        if len(values) != 2:
            raise Unproved(f"{place}: its state fades, or has steps of several sizes")
        low, high = values
        written = self.sum(f"{place}: Δ·B·x̂", [(low or high, drive)])
        flag = self.terms.add([(1 / (high - low), step.poly), (-low / (high - low), constant(1))])
        if not low and high * rate[0] >= ERASED and not step.loose:
            return Number(self.terms.latch(written.poly, flag))
        if not 0 < low * rate[1] <= KEPT or high * rate[0] * (1 - Fraction(1, 1 << 7)) < ERASED:
            raise Unproved(f"{place}: its state fades, with Δ of {float(low):g} and {float(high):g}")
        return self._counted(place, written, flag)

    def _counted(self, place: str, written: Number, flag: Poly) -> Number:
        """A state that is lost where the flag is 1, where nothing is written (States.counted_since_reset)."""
        lost = self.terms.times(written.poly, flag)

        def check() -> None:
            if any(self.terms.range(lost)):
                raise Unproved(f"{place}: something is written where its state is lost")

        self.ledger.until(place, [lost], check)
        total = self.terms.count(written.poly, flag)
        self.ledger.until(place, [total], lambda: exact(self._mass(total), written.poly.unit, place))
        return Number(total)

    def running_sum(self, place: str, p: Number) -> Number:
        """Σ p over time (lemma of running sums; States.running_sums_hold): |terms| add up to at most 2^24 units. A
        count by one unit may outgrow the format.
        """
        if p.zero:
            return p
        total = self.terms.sum(p.poly)
        unit = p.poly.unit
        count = self._count(total)
        if count is not None and self.terms.range(total)[1] > UNITS * Fraction(2) ** unit:
            in_range(self.terms.range(total)[1] * LOOSE, unit, place)
            return Number(total, count, UNITS)
        self.ledger.until(place, [total], lambda: exact(self._mass(total), unit, place))
        return Number(total)

    def _count(self, total: Poly) -> int | None:
        """The only sum, where it grows by 0 or 1 and is multiplied by a power of two."""
        ((mono, c), *others) = total.terms.items()
        if others or len(mono) != 1 or mono[0][1] or c < 0 or not is_power(c):
            return None
        lo, hi = self.terms.range(self.terms.atoms[mono[0][0]].of)
        return mono[0][0] if lo >= 0 and hi <= 1 else None

    def _mass(self, total: Poly) -> Fraction:
        """A bound on Σ_t |term| of a polynomial of running sums: the range of each was made of such a bound."""
        return sum(
            (abs(c) * max(map(abs, self.terms.range(Poly({m: ONE})))) for m, c in total.terms.items()), Fraction(0)
        )
