"""Bends of numbers that are equal though their normal forms differ (lemma P″)."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING

from verify.checker.tables import ramp_sum
from verify.checker.values import ZERO, Value, combine, of_root
from verify.checker.windows import is_window_root

if TYPE_CHECKING:
    from verify.checker.meaning import Meaning

ONE = Fraction(1)


def with_equal_numbers(meaning: Meaning, value: Value) -> Value | None:
    """The value with a bent function of one number as that of another, ± which and a constant it is shown to be; None
    where there are no two such numbers whose bends cancel.
    """
    roots = meaning.world.roots
    states = {place: f for place, f in value.ramps.items() if not is_window_root(meaning.world, roots[place[0]])}
    bent = {place: f for place, f in states.items() if not f.linear}
    for (a, lag), (b, at) in combinations(bent, 2):
        (sign, shift, key), (other, off, known) = meaning.axis(roots[a]), meaning.axis(roots[b])
        for s in (sign * other, -sign * other) if lag == at and key != known else ():
            c = shift - s * off
            if c.denominator > 1:
                continue
            moved = bent[a, lag].over_line(s, c, roots[b].lo, roots[b].hi)
            away = combine([(ONE, of_root(roots[a], ONE)), (Fraction(-s), of_root(roots[b], ONE))], -c)
            if ramp_sum([(ONE, moved), (ONE, bent[b, lag])]).linear and meaning.zero(away):
                old, new = Value(ZERO, {(a, lag): bent[a, lag]}), Value(ZERO, {(b, lag): moved})
                return combine([(ONE, value), (-ONE, old), (ONE, new)])
    return None
