"""Forward error bounds for networks of sums and products, by running the network itself on bounds.

A computed sum of products differs from the exact one by factors (1 + δ), |δ| ≤ u, one for each
rounding on the way of a term, and by what underflow takes: a result below the least normal number η
is off by at most η, whether it is rounded or flushed to 0, and later factors carry that on. So

    |computed − exact| ≤ γ_n·m + (1 + γ_n)·l·η,   γ_n = nu/(1 − nu) ≥ (1 + u)^n − 1,

where n is the largest number of roundings on any way, m the value of the same network on absolute
values, and l counts the results that can underflow, each times the factors that it meets. `Majorant` carries
(m, n, l): put majorants where the inputs stand and run. The bound holds for any order of summation and for
fused operations, as long as nothing overflows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
LEAST_NORMAL = {"float32": 2.0**-126, "float64": 2.0**-1022}  # η
Bound = float | np.ndarray  # float64: of one input, or of many at once


def gamma(roundings: int, dtype: str) -> float:
    """γ_n = nu/(1 − nu): the most that n roundings change a product, relatively."""
    share = roundings * UNIT_ROUNDOFF[dtype]
    if not share < 0.5:
        raise ValueError(f"{roundings} roundings to {dtype} leave no certain digit, and so no error bound.")
    return share / (1 - share)


def shares(errors: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """error / bound: 0 where both are 0, infinite where the bound alone is."""
    beyond = np.where(errors > 0, np.inf, 0.0)
    return np.divide(errors, bounds, out=beyond, where=bounds > 0)


@dataclass(frozen=True)
class Majorant:
    """A sum of `terms` products, each after at most `depth` roundings; `bound` is at least Σ |product|.

    lost: the results that can underflow, each times the factors that it met since (l above).
    """

    bound: Bound
    depth: int = 0
    terms: int = 1
    lost: Bound = 0.0

    @property
    def roundings(self) -> int:
        """Roundings on the longest way, whatever the order in which the terms are added."""
        return self.depth + self.terms - 1

    def error(self, dtype: str) -> Bound:
        """A bound on |computed − exact| in this arithmetic."""
        share = gamma(self.roundings, dtype)
        return (share * self.bound + (1 + share) * LEAST_NORMAL[dtype] * self.lost) * (1 + 2.0**-40)

    def __add__(self, other: Majorant | int | Fraction) -> Majorant:
        if not isinstance(other, Majorant):
            return self if not other else self + weighted(other)
        depth, terms = max(self.depth, other.depth), self.terms + other.terms
        return Majorant(_up(self.bound + other.bound), depth, terms, (self.lost + other.lost + 1) * (1 + 2.0**-50))

    def __mul__(self, other: Majorant | int | Fraction) -> Majorant | int:
        if isinstance(other, Majorant):
            return self._product(other)
        if not other:
            return 0
        factor = weighted(other)
        if factor.depth or not _is_power_of_two(other):
            return self._product(factor)
        smaller = bool(factor.bound < 1)  # else the product is exact
        bound = self.bound * factor.bound
        return Majorant(_up(bound) if smaller else bound, self.depth, self.terms, self._lost(factor, smaller))

    def _product(self, other: Majorant) -> Majorant:
        roundings = self.roundings + other.roundings + 1
        return Majorant(_up(self.bound * other.bound), roundings, 1, self._lost(other, True))

    def _lost(self, other: Majorant, underflows: bool) -> Bound:
        """What the product has lost; rounded up, η² by an η that no dtype exceeds."""
        carried = self.lost * other.bound + self.bound * other.lost
        both = self.lost * other.lost * LEAST_NORMAL["float32"]
        return (carried + both + underflows) * (1 + 2.0**-50)

    __radd__ = __add__
    __rmul__ = __mul__


@lru_cache(1 << 12)
def weighted(weight: int | Fraction) -> Majorant:
    """A weight as a factor: what it may lose where it is rounded to the float format."""
    exact = abs(Fraction(weight))
    near = float(exact)
    lost = 0.0 if exact >= Fraction(LEAST_NORMAL["float32"]) else 1.0
    return Majorant(near if near == exact else _up(near), _representing(exact), 1, lost)


def _up(nearest: Bound) -> Bound:
    """At least what was rounded to this."""
    return np.nextafter(nearest, np.inf)


def _is_power_of_two(weight: int | Fraction) -> bool:
    value = abs(Fraction(weight))
    return (value.numerator & (value.numerator - 1)) == 0 and (value.denominator & (value.denominator - 1)) == 0


def _representing(exact: Fraction) -> int:
    """1 where a weight may have to be rounded to the float format at all."""
    dyadic = exact.denominator & (exact.denominator - 1) == 0
    return 0 if dyadic and exact.numerator.bit_length() <= 24 else 1
