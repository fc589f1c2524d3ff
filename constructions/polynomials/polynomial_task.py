"""A polynomial as a task: inputs of every size, its value by the definition in Fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from constructions.polynomials.polynomial_terms import Polynomial
from verify.tasks.numbers import ROWS, NumberBatch, NumberTask, sizes_up_to


class PolynomialTask(NumberTask):
    """The value at the last of L positions.

    asked: the polynomial with the coefficients that were given; held: with those that the weights hold, which are
    float32 numbers; bound: the largest |x_i|.
    """

    name = "polynomial"

    def __init__(self, asked: Polynomial, held: Polynomial, bound: float):
        self.asked, self.held, self.bound, self.length = asked, held, bound, asked.length

    def describe(self) -> str:
        return "the polynomial as it was given, in Fractions; the rounding of its coefficients is allowed for"

    def sizes(self) -> tuple[float, ...]:
        return sizes_up_to(self.bound)

    def batch(self, rng: np.random.Generator, size: float) -> NumberBatch:
        x = np.float32(rng.uniform(-size, size, (ROWS, self.length))).astype(float)
        x[0] = rng.choice([-size, 0.0, size], self.length)
        rows = [[Fraction(v) for v in row] for row in x.tolist()]
        expected, slack = (np.full((ROWS, self.length, 1), np.nan) for _ in range(2))
        expected[:, -1, 0] = [float(self.asked.at(row)) for row in rows]
        slack[:, -1, 0] = [float(coefficient_rounding(self.asked, self.held, row)) for row in rows]
        slack[:, -1, 0] += 2.0**-52 * np.abs(expected[:, -1, 0])
        return NumberBatch({"x": x[..., None]}, size, expected, slack)


def coefficient_rounding(asked: Polynomial, held: Polynomial, x: list[Fraction]) -> Fraction:
    """Σ |c − c̃|·|term|: how far the polynomial of the rounded coefficients can be from the one that was given."""
    kept = {m.factors: m.coefficient for m in held.monomials}
    off = tuple(replace(m, coefficient=abs(m.coefficient - kept.get(m.factors, 0))) for m in asked.monomials)
    difference = Polynomial(asked.length, abs(asked.constant - held.constant), off)
    return difference.at([abs(v) for v in x])
