"""What the modules compute, operation by operation, each proved to give the exact value.

A `Number` is what a float holds of a polynomial: its exact value at every position, or a line over a sum that outgrows
the format. That is exact while the sum is at most `exact_to`; beyond, the sum is taken for a number of at least
`exact_to`, which `Format.excess` bounds, and the line is rounded `rounds` times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from verify.kernel import floats, rules
from verify.kernel.claims import Ledger, entries, natural
from verify.kernel.facts import Known
from verify.kernel.floats import FLOAT32, Format, Unproved, exponent, is_power
from verify.kernel.terms import ZERO, Poly, Terms, constant

ONE = Fraction(1)


@dataclass(frozen=True, eq=False)
class Number:
    poly: Poly
    outgrown: int | None = (
        None  # the running sum of zeros and ones that outgrows the format (an atom); -1: nothing may read it
    )
    exact_to: int = 0
    rounds: int = 0
    rounded: bool = False  # of Δ: values of 2^16 and more may be rounded, by a part of 2^-7

    @property
    def zero(self) -> bool:
        return not self.poly.terms


NOTHING = Number(ZERO)
Terms_ = Sequence[tuple[Fraction, Number]]


class Floats:
    """The float operations that all modules share, in the format `form` of the config; scans and norms are computed in
    float32, and what they give is shown to be of the format."""

    def __init__(self, ledger: Ledger, form: Format = FLOAT32):
        self.ledger, self.form = ledger, form
        self.terms: Terms = ledger.terms

    def size(self, x: Number) -> Fraction:
        """The largest |number| that a float may hold: what a scan may compute too much is added, however it cancels."""
        lo, hi = self.terms.range(x.poly)
        most = max(abs(lo), abs(hi)) * (1 + self.form.excess if x.rounded else 1)
        if x.outgrown is None:
            return most
        if x.outgrown < 0:
            raise Unproved(f"a count that outgrows {self.form.name} is read at an earlier position")
        if 2 * x.rounds > self.form.units:
            raise Unproved(f"a count that outgrows {self.form.name} is rounded {x.rounds} times")
        most += abs(self._line(x)[0]) * self._excess(self.terms.atom_range(x.outgrown)[1])
        return most / (1 - Fraction(x.rounds, self.form.units))  # (1 + u)^n <= 1 / (1 - n u)

    def _excess(self, count: int) -> Fraction:
        """How much more than its bound a count can be held as: a part of it, or as if every position counted
        (Counts.single_positions_at_most, Counts.narrow_positions_at_most).
        """
        positions = max(Fraction(self.form.units), Fraction(9, 8) * self.terms.language.length)
        return max(Fraction(0), min(self.form.excess * count, positions - count))

    def sum(self, place: str, parts: Terms_) -> Number:
        """Σ weight · number in any order (lemma of sums; Sums.sums_in_any_order): all terms are multiples of 2^e, the
        positive ones and the negative ones each at most `units` · 2^e in sum, at every position.
        """
        live = [(w, x) for w, x in parts if w and not x.zero]
        if not live:
            return NOTHING
        if any(x.outgrown is not None for _, x in live):
            return self._outgrown_sum(place, live)
        added = self.terms.add([(w, x.poly) for w, x in live])
        unit = min(exponent(w) + x.poly.unit for w, x in live)
        check = lambda: self.form.exact(self._partial(live, added), unit, place)
        self.ledger.until(place, [added, *(x.poly for _, x in live)], check)
        return Number(added)

    def _partial(self, live: Terms_, added: Poly) -> Fraction:
        """A bound on the size of every sum of some of the terms: where no term is negative, that of all of them."""
        ends = [sorted(w * end for end in self.terms.range(x.poly)) for w, x in live]
        if all(lo >= 0 for lo, _ in ends):
            return min(self.terms.range(added)[1], sum((hi for _, hi in ends), Fraction(0)))
        up = sum((max(hi, Fraction(0)) for _, hi in ends), Fraction(0))
        return max(up, sum((max(-lo, Fraction(0)) for lo, _ in ends), Fraction(0)))

    def product(self, place: str, a: Number, b: Number) -> Number:
        """a · b (lemma of sums; Sums.products)."""
        if a.poly.constant or b.poly.constant:
            return self.sum(place, [(b.poly.const, a) if b.poly.constant else (a.poly.const, b)])
        if a.outgrown is not None or b.outgrown is not None:
            raise Unproved(f"{place} multiplies a count that outgrows {self.form.name}")
        unit = a.poly.unit + b.poly.unit
        self.ledger.until(place, [a.poly, b.poly], lambda: self.form.exact(self.size(a) * self.size(b), unit, place))
        return Number(self.terms.product(a.poly, b.poly))

    def activation(self, place: str, x: Number) -> Number:
        """silu: max(x, 0), where every value is safe: 0 is, and others are not between OFF and ON (lemma of
        activations; Activations.silu_is_relu).
        """
        if x.outgrown is not None:
            return self._outgrown_activation(place, x)
        self.ledger.until(place, [x.poly], lambda: self._check_safe(place, x.poly))
        return Number(self.terms.relu(x.poly))

    def step(self, place: str, x: Number, bias: Fraction) -> Number:
        """softplus(x + bias), of what has finitely many values. Values of less than 2^16 are exact; huge ones may be
        rounded (lemma of decay; Activations.softplus_is_relu).
        """
        total = self.terms.add([(ONE, x.poly), (bias, constant(1))])
        if x.outgrown is not None:
            raise Unproved(f"{place} reads a count that outgrows {self.form.name}")
        values = self.ledger.until(place, [total], lambda: self.values(place, total))
        unit = min((p.unit for p in (x.poly, constant(bias)) if p.terms), default=0)
        for v in values:
            self.form.in_range(abs(v), self.form.least, place)
            if floats.OFF < v <= floats.ON or abs(v) < 1 << 16 and abs(v) > self.form.units * Fraction(2) ** unit:
                raise Unproved(f"{place} can be {float(v):g}, in units of 2^{unit}")
        rounded = any(abs(v) > self.form.units * Fraction(2) ** unit for v in values)
        return Number(self.terms.relu(total), rounded=rounded)

    def pad_step(self, place: str, bias: Fraction) -> Fraction:
        """softplus(bias): Δ where a text is padded (lemma of pads)."""
        if floats.OFF < bias <= floats.ON:
            raise Unproved(f"{place} is softplus of {float(bias):g} where a text is padded, which is rounded")
        return max(bias, Fraction(0))

    def values(self, place: str, p: Poly) -> list[Fraction]:
        """All that p can be, where these are finitely many numbers that are known."""
        c, cells = self.terms.cells(p)
        if any(cell.lo != cell.hi for cell in cells):
            raise Unproved(f"{place} is not one of finitely many numbers")
        return sorted({c * cell.lo for cell in cells})

    def _check_safe(self, place: str, p: Poly) -> None:
        """Of each cell the numbers between OFF and ON: none but 0."""
        c, cells = self.terms.cells(p)
        for lo, hi, rest, step in cells:
            low, high = sorted((c * lo, c * hi))
            start, size, above = c * rest, abs(c * step), max(low, Fraction(floats.OFF))
            first = start + -((start - above) // size) * size if step else start
            for y in (first, first + size, first + 2 * size):
                if floats.OFF < y <= min(Fraction(floats.ON), high) and y:
                    safe = f"0, above {floats.ON} or at most {floats.OFF}"
                    raise Unproved(f"{place} can be {float(y):g}: it must be {safe}")

    # counts that outgrow the format -----------------------------------------------------------------

    def _outgrown_sum(self, place: str, live: Terms_) -> Number:
        """One number that outgrows the format, times a power of two, and exact ones: exact while |slope| · its sum and
        the rest have at most `units` units (lemma of counts that outgrow the format; Counts.counts,
        Counts.falling_lines).
        """
        ((weight, x), *others) = [(w, x) for w, x in live if x.outgrown is not None]
        slope, line = self._line(x)
        rest = [(w, y) for w, y in live if y is not x] + [(weight, Number(line))]
        held = {a for _, y in rest for m in y.poly.terms for a, _ in m}
        slope *= weight
        if others or not is_power(weight) or not is_power(slope) or x.outgrown in held:
            raise Unproved(f"{place} reads a count that outgrows {self.form.name} in another way than by one line")
        unit = min([exponent(slope), *(exponent(w) + y.poly.unit for w, y in rest if not y.zero)])
        reach = sum((abs(w) * self.size(y) for w, y in rest), Fraction(0))
        exact_to = min(x.exact_to, int((self.form.units * Fraction(2) ** unit - reach) // abs(slope)))
        rounds = x.rounds + (len(live) if len(live) > 1 else 0)  # a power of two times the count is not rounded
        total = Number(self.terms.add([(w, y.poly) for w, y in live]), x.outgrown, exact_to, rounds)
        self.form.in_range(reach + self.size(total), unit, place)
        return total

    def _line(self, x: Number) -> tuple[Fraction, Poly]:
        """(slope, rest): x is slope · the sum that outgrows float32, plus rest."""
        mine = lambda m: m == ((x.outgrown, 0),)
        slope = sum((c for m, c in x.poly.terms.items() if mine(m)), Fraction(0))
        return slope, Poly({m: c for m, c in x.poly.terms.items() if not mine(m)})

    def _outgrown_activation(self, place: str, x: Number) -> Number:
        """A falling line that is at most OFF where its sum is `exact_to`: so it is beyond, as rounding is monotone."""
        slope, rest = self._line(x)
        most = self.terms.range(rest)[1] + slope * x.exact_to
        if slope >= 0 or x.exact_to < 0 or most > floats.OFF:
            raise Unproved(f"{place} reads a sum that is exact up to {x.exact_to}, where it is more than {floats.OFF}")
        return self.activation(place, Number(x.poly))

    # norms ------------------------------------------------------------------------------------------

    def norm(self, place: str, lanes: Sequence[Number], weights: np.ndarray, epsilon: float) -> list[Number]:
        """weight · x / K of every lane (`rules.ballast`)."""
        polys = [x.poly for x in lanes]

        def make(number: int, chosen: Any) -> Known:
            sizes, named = [self.size(x) for x in lanes], [natural(i) for i in entries(chosen)]
            return rules.ballast(number, polys, named, sizes, epsilon, self.form)

        divisor = self.ledger.single(place, polys, "ballast", 1, make)
        result = []
        for i, (lane, weight) in enumerate(zip(lanes, weights.tolist(), strict=True)):
            if not lane.zero:
                where = f"{place}, lane {i}"
                self.form.in_range(self.size(lane) / divisor, lane.poly.unit - exponent(divisor), where)
                lane = self.sum(where, [(Fraction(weight) / divisor, lane)])
            result.append(lane)
        return result

    # states -----------------------------------------------------------------------------------------

    def state(self, place: str, step: Number, drive: Number, rate: tuple[Fraction, Fraction]) -> Number:
        """h ← exp(−Δ·rate) h + Δ·drive of one column (lemma of decay; Activations.keeps_exactly,
        Activations.erases_exactly, States.kept_is_running_sum, States.erased_is_last_write).

        Of two steps above 0 only the high one may be rounded, which the part of 2^-7 is for, and nothing is written
        there (`_since_reset`). The low one is a float where something is written, since `written`, low times a number,
        is one: so it was no rounded sum.
        """
        if drive.outgrown is not None or step.outgrown is not None:
            raise Unproved(f"{place}: the state stores a count that outgrows {self.form.name}")
        values = self.ledger.until(place, [step.poly], lambda: self.values(place, step.poly))
        if values[-1] * rate[1] <= floats.KEPT and not step.rounded:
            return self.running_sum(place, self.product(f"{place}: Δ·B·x̂", step, drive))
        if len(values) == 1 and values[0] * rate[0] >= floats.ERASED and not step.rounded:
            return self.product(f"{place}: Δ·B·x̂", step, drive)
        if len(values) != 2:
            raise Unproved(f"{place}: its state fades, or has steps of several sizes")
        low, high = values
        written = self.sum(f"{place}: Δ·B·x̂", [(low or high, drive)])
        flag = self.terms.add([(1 / (high - low), step.poly), (-low / (high - low), constant(1))])
        if not low and high * rate[0] >= floats.ERASED and not step.rounded:
            return Number(self.terms.latch(written.poly, flag))
        if not 0 < low * rate[1] <= floats.KEPT or high * rate[0] * (1 - Fraction(1, 1 << 7)) < floats.ERASED:
            raise Unproved(f"{place}: its state fades, with Δ of {float(low):g} and {float(high):g}")
        return self._since_reset(place, written, flag)

    def _since_reset(self, place: str, written: Number, flag: Poly) -> Number:
        """A state that is lost where the flag is 1, where nothing is written (States.counted_since_reset)."""
        lost = self.terms.product(written.poly, flag)

        def check() -> None:
            if any(self.terms.range(lost)):
                raise Unproved(f"{place}: something is written where its state is lost")

        self.ledger.until(place, [lost], check)
        total = self.terms.count(written.poly, flag)
        self.ledger.until(place, [total], lambda: self._check_held(place, total, written.poly.unit))
        return Number(total)

    def running_sum(self, place: str, p: Number) -> Number:
        """Σ p over time (lemma of running sums). A count by one unit may outgrow the format."""
        if p.zero:
            return p
        total, unit = self.terms.sum(p.poly), p.poly.unit
        count, most = self._outgrowing(total), self.form.units * Fraction(2) ** unit
        fits = lambda: self.terms.range(total)[1] <= most
        if count is not None and self.ledger.outgrows(f"{place}: a count", total, fits):
            if self.terms.language.length > floats.MOST_STEPS:
                raise Unproved(f"{place}: a count that outgrows {self.form.name}, of more than 2^40 steps")
            held = Number(total, count, self.form.units)
            self.form.in_range(self.size(held), unit, place)
            return held
        self.ledger.until(place, [total], lambda: self._check_held(place, total, unit))
        return Number(total)

    def _check_held(self, place: str, total: Poly, unit: int) -> None:
        """A scan adds in float32, in any order, so |terms| add up to what float32 adds exactly. What it holds behind
        each position is cast to the format, so that is of the format (States.running_sums_hold)."""
        FLOAT32.exact(self._mass(total), unit, place)
        self.form.exact(max(map(abs, self.terms.range(total))), unit, place)

    def _outgrowing(self, total: Poly) -> int | None:
        """The only sum, where it grows by 0 or 1 and is multiplied by a power of two."""
        ((mono, c), *others) = total.terms.items()
        if others or len(mono) != 1 or mono[0][1] or c < 0 or not is_power(c):
            return None
        lo, hi = self.terms.range(self.terms.atoms[mono[0][0]].of)
        return mono[0][0] if lo >= 0 and hi <= 1 else None

    def _mass(self, total: Poly) -> Fraction:
        """A bound on Σ_t |term| of a running sum or a count, times a number."""
        return sum((abs(c) * self.terms.total(a) for ((a, _),), c in total.terms.items()), Fraction(0))
