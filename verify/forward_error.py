"""Forward error bounds for networks of sums and products, by running the network itself on bounds.

A computed sum of products differs from the exact one only by factors (1 + δ), |δ| ≤ u, one
for each rounding on the way of a term. So |computed − exact| ≤ ((1 + u)^n − 1) · m ≤ nu/(1 − nu) · m,
where n is the largest number of roundings on any way and m the value of the same network on
absolute values. `Majorant` carries (m, n): put majorants where the inputs stand and run. The bound holds
for any order of summation and for fused operations, as long as nothing over- or underflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}


def gamma(roundings: int, dtype: str) -> float:
    """γ_n = nu/(1 − nu): the most that n roundings change a product, relatively."""
    return roundings * UNIT_ROUNDOFF[dtype] / (1 - roundings * UNIT_ROUNDOFF[dtype])


@dataclass(frozen=True)
class Majorant:
    """A sum of `terms` products, each after at most `depth` roundings; `bound` is at least Σ |product|."""

    bound: Fraction
    depth: int = 0
    terms: int = 1

    @property
    def roundings(self) -> int:
        """Roundings on the longest way, whatever the order in which the terms are added."""
        return self.depth + self.terms - 1

    def error(self, dtype: str) -> float:
        """A bound on |computed − exact| in this arithmetic."""
        share = Fraction(UNIT_ROUNDOFF[dtype]) * self.roundings
        return float(self.bound * share / (1 - share)) * (1 + 2.0**-40)

    def __add__(self, other: Majorant | Rational) -> Majorant:
        if not isinstance(other, Majorant):
            return self if not other else self + Majorant(abs(Fraction(other)), _representing(other))
        return Majorant(self.bound + other.bound, max(self.depth, other.depth), self.terms + other.terms)

    def __mul__(self, other: Majorant | Rational) -> Majorant | int:
        if not isinstance(other, Majorant):
            if not other:
                return 0
            factor = Majorant(abs(Fraction(other)), _representing(other))
            scaled = Majorant(self.bound * factor.bound, self.depth + factor.depth, self.terms)
            return scaled if _is_power_of_two(abs(Fraction(other))) else self._product(factor)
        return self._product(other)

    def _product(self, other: Majorant) -> Majorant:
        return Majorant(self.bound * other.bound, self.roundings + other.roundings + 1, 1)

    __radd__ = __add__
    __rmul__ = __mul__


def _is_power_of_two(value: Fraction) -> bool:
    return (value.numerator & (value.numerator - 1)) == 0 and (value.denominator & (value.denominator - 1)) == 0


def _representing(weight: Rational) -> int:
    """1 where a weight may have to be rounded to the float format at all."""
    exact = Fraction(weight)
    dyadic = exact.denominator & (exact.denominator - 1) == 0
    return 0 if dyadic and exact.numerator.bit_length() <= 24 else 1
