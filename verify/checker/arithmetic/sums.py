"""The float operations: when a sum, a product or an activation gives the exact value (lemmas of sums, of activations
and of counts that outgrow the format).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from verify.checker.formats import OFF, ON, Format, Rejected, exponent, is_power
from verify.checker.values.bent import product, relu, single
from verify.checker.values.bounds import bounds, largest
from verify.checker.values.tables import Ramp, Table
from verify.checker.values.values import ZERO, Component, Key, Value, World, combine

Terms = list[tuple[Fraction, Value]]


def exact_sum(world: World, terms: Iterable[tuple[Fraction, Value]], what: str) -> Value:
    """The sum of weight · value, proved to be computed exactly in any order (lemma of sums)."""
    live = [(w, v) for w, v in terms if w and (v.const or v.terms)]
    if not live:
        return combine([])
    rounded = [(w, v) for w, v in live if v.upto is not None]
    if rounded:
        return _falling_sum(world, rounded, [t for t in live if t[1].upto is None], what)
    unit = min(exponent(w) + v.unit for w, v in live)
    reach = _partial_sums(world, live)
    try:
        _check_reach(world, reach, unit, what)
    except Rejected as reason:
        raise reason.of(world, *(v for _, v in live)) from None
    return combine(live)


def _check_reach(world: World, reach: Fraction, unit: int, what: str) -> None:
    form = world.format
    if reach > form.units * Fraction(2) ** unit:
        units = reach / Fraction(2) ** unit
        raise Rejected(
            f"{what} can reach {float(units):.0f} units of 2^{unit}, and {form.name} adds exactly up to {form.units}"
        )
    check_range(world, reach, unit, what)


def check_range(world: World, reach: Fraction, unit: int, what: str) -> None:
    """Multiples of 2^unit up to `reach` neither overflow nor underflow."""
    in_range(world.format, reach, unit, what)


def in_range(form: Format, reach: Fraction, unit: int, what: str) -> None:
    if reach > form.largest:
        raise Rejected(f"{what} can reach {float(reach):.3g}, and {form.name} ends at {float(form.largest):.3g}")
    if unit < form.least:
        raise Rejected(f"{what} needs multiples of 2^{unit}, and {form.name} keeps those of 2^{form.least}")


def exact_product(world: World, a: Value, b: Value, what: str) -> Value:
    """a · b, proved to be computed exactly."""
    if a.constant or b.constant:
        return exact_sum(world, [(b.const, a) if b.constant else (a.const, b)], what)
    if a.upto is not None or b.upto is not None:
        raise Rejected(f"{what} multiplies a count that outgrows {world.format.name}")
    reach = largest(world, a) * largest(world, b)
    try:
        representable(world, reach, a.unit + b.unit, what)
    except Rejected as reason:
        raise reason.of(world, a, b) from None
    return product(world, a, b)


def representable(world: World, reach: Fraction, unit: int, what: str) -> None:
    if reach > world.format.units * Fraction(2) ** unit:
        raise Rejected(
            f"{what} can reach {float(reach):.6g} in units of 2^{unit}, beyond what {world.format.name} holds exactly"
        )
    check_range(world, reach, unit, what)


def _partial_sums(world: World, terms: Terms) -> Fraction:
    """A bound on |every sum of some of the terms|: it lies between the sum of those below 0 and that of those above."""
    ends = [[weight * end for end in bounds(world, value)] for weight, value in terms]
    return max(sum((max(ZERO, -min(e)) for e in ends), ZERO), sum((max(ZERO, *e) for e in ends), ZERO))


def _falling_sum(world: World, rounded: Terms, others: Terms, what: str) -> Value:
    """A number that is exact up to some x only, times a power of two, plus exact numbers (lemma of counts that
    outgrow the format).
    """
    if len(rounded) > 1:
        raise Rejected(f"{what} adds counts that outgrow {world.format.name}")
    ((weight, value),) = rounded
    key, ramp = _inexact(world, value)
    slope = weight * ramp.slopes[0]
    if not (is_power(weight) and is_power(slope)):
        raise Rejected(f"{what} multiplies a count that outgrows {world.format.name} by {weight}, no power of two")
    rest = _partial_sums(
        world, [*others, (weight, combine([(Fraction(1), value), (Fraction(-1), Value(ZERO, {key: ramp}))]))]
    )
    unit = min([exponent(slope), *(exponent(w) + v.unit for w, v in [*others, (weight, value)])])
    check_range(world, rest + abs(weight) * largest(world, value), unit, what)
    room = world.format.units * Fraction(2) ** unit - rest
    total = combine([*others, (weight, value)])
    total.upto = min(value.upto or 0, int(room // abs(slope)))
    return total


def _inexact(world: World, value: Value) -> tuple[Key, Ramp]:
    """The one component whose root is known up to a bound only; it must be linear."""
    found = [(k, c) for k, c in value.ramps.items() if world.roots[k[0]].exact is not None]
    if len(found) != 1 or not found[0][1].linear or found[0][1].xs[0] != 0:
        raise Rejected("a count that outgrows its format is read in another way than by one falling line")
    return found[0]


def activation(world: World, value: Value, zero: bool, what: str) -> Value:
    """silu (zero allowed) or softplus (not) of the value: max(value, 0), where every value is safe (lemma of
    activations).
    """
    if value.upto is not None:
        _, ramp = _inexact(world, value)
        others = bounds(world, value)[1] - ramp.hi
        if not (ramp.slopes[0] < 0 and value.upto >= 0 and ramp.at(value.upto) + others <= OFF):
            raise Rejected(
                f"{what} reads a count past {value.upto}, up to which it is exact, before it is at most -104"
            )
        value = Value(value.const, value.terms)
    key, component = single(world, value)
    worst = _unsafe(world, key, component, zero)
    if worst is not None:
        allowed = f"it must be {'0, ' if zero else ''}above 20 or at most -104"
        raise Rejected(f"{what} can be {float(worst):g}; {allowed}").of(world, value)
    return relu(world, value, (key, component))


def _unsafe(world: World, key: Key, component: Component, zero: bool) -> Fraction | None:
    """A value at which the activation is not max(x, 0), or None."""
    bad = lambda x: OFF < x <= ON and not (zero and x == 0)
    if isinstance(component, Table):
        letters = component.letter_values
        found = letters[(letters > float(OFF)) & (letters <= float(ON)) & ~((letters == 0) & zero)]
        return Fraction(float(found[0])) if len(found) else next((s for s in component.start if bad(s)), None)
    root = world.roots[key[0]]
    points = [*component.start]
    if root.values is not None:
        points += [component.at(x) for x in root.values]
        return next((y for y in points if bad(y)), None)
    for x0, y0, x1, y1 in component.segments():
        slope = (y1 - y0) / (x1 - x0) if x1 > x0 else ZERO
        if not slope:
            points.append(y0)
            continue
        first, last = sorted([(OFF - y0) / slope, (ON - y0) / slope])
        low, high = (
            max(0, int(first // 1)),
            min(x1 - x0, int(last // 1) + 1),
        )  # all with values in [OFF, ON], and two more
        near = range(low, min(high, low + 4) + 1) if low <= high else ()
        points += [y0 + slope * i for i in near]
        if high - low > 4:
            return next((y0 + slope * i for i in near if bad(y0 + slope * i)), y0 + slope * (low + 4))
    return next((y for y in points if bad(y)), None)
