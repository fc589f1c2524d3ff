"""Polynomials as exact terms: a constant and monomials with rational coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import sympy


@dataclass(frozen=True)
class Monomial:
    """coefficient · Π x_i^p over factors (i, p), variables in increasing order, every p ≥ 1."""

    coefficient: Fraction
    factors: tuple[tuple[int, int], ...]

    @property
    def degree(self) -> int:
        return sum(p for _, p in self.factors)


@dataclass(frozen=True)
class Polynomial:
    """constant + Σ monomials, in the variables x_1 … x_length; monomials distinct, coefficients nonzero."""

    length: int
    constant: Fraction
    monomials: tuple[Monomial, ...]

    @property
    def factors(self) -> int:
        """F: factors over all monomials."""
        return sum(len(m.factors) for m in self.monomials)

    @property
    def variables(self) -> tuple[int, ...]:
        """The variables that occur, in increasing order."""
        return tuple(sorted({i for m in self.monomials for i, _ in m.factors}))

    @property
    def degree(self) -> int:
        return max((m.degree for m in self.monomials), default=0)

    @property
    def largest_exponent(self) -> int:
        return max((p for m in self.monomials for _, p in m.factors), default=1)

    def at(self, x) -> object:
        """The value at x_1 … x_length, by the definition: the oracle of every test."""
        total = self.constant
        for monomial in self.monomials:
            product = monomial.coefficient
            for i, p in monomial.factors:
                product = product * x[i - 1] ** p
            total = total + product
        return total

    def __str__(self) -> str:
        symbols = sympy.symbols(f"x1:{self.length + 1}")
        return str(
            sum(
                (
                    _rational(m.coefficient) * sympy.prod(symbols[i - 1] ** p for i, p in m.factors)
                    for m in self.monomials
                ),
                start=_rational(self.constant),
            )
        )


def from_terms(length: int, terms: dict[tuple[tuple[int, int], ...], Fraction | int]) -> Polynomial:
    """A polynomial from {((i, p), …): coefficient}; () is the constant.

    Equal monomials add up, variables may repeat.
    """
    collected: dict[tuple[tuple[int, int], ...], Fraction] = {}
    for factors, coefficient in terms.items():
        powers: dict[int, int] = {}
        for i, p in factors:
            powers[i] = powers.get(i, 0) + p
        key = tuple(sorted((i, p) for i, p in powers.items() if p))
        collected[key] = collected.get(key, Fraction(0)) + Fraction(coefficient)
    constant = collected.pop((), Fraction(0))
    return Polynomial(length, constant, tuple(Monomial(c, key) for key, c in sorted(collected.items()) if c))


def _rational(number: Fraction) -> sympy.Rational:
    return sympy.Rational(number.numerator, number.denominator)
