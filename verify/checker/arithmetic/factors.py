"""What a scan multiplies first, whoever reads it: 0 · ∞ is NaN (lemma of every entry)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from verify.checker.arithmetic.sums import check_range, in_range
from verify.checker.formats import Format
from verify.checker.values.bounds import largest
from verify.checker.values.values import ZERO, Value, World


@dataclass(frozen=True)
class Extent:
    """Of some values: all are multiples of 2^unit and at most `top` in size."""

    top: Fraction
    unit: int

    @classmethod
    def of(cls, world: World, values: Iterable[Value]) -> Extent:
        live = [value for value in values if not value.zero]
        return cls(max((largest(world, v) for v in live), default=ZERO), min((v.unit for v in live), default=0))


def check_factors(form: Format, world: World, step: Value, x: Value, writes: Extent, what: str) -> None:
    """A scan multiplies Δ, B and x̂ in `form`, two of them first; no pair may overflow or underflow, though the third
    be 0.
    """
    factors = (("Δ", Extent.of(world, [step])), ("B", writes), ("x̂", Extent.of(world, [x])))
    for (a, of_a), (b, of_b) in combinations(factors, 2):
        if of_a.top and of_b.top:
            in_range(form, of_a.top * of_b.top, of_a.unit + of_b.unit, f"{what}: {a}·{b}")


def check_scores_range(world: World, step: Value, reach: Fraction, what: str) -> None:
    """The chunked scan forms Σ_n C_n B_n and Δ times that in the dtype, for every channel."""
    least = world.format.least
    check_range(world, reach * max(Fraction(1), largest(world, step)), least, f"{what}: Δ·Σ C·B")
