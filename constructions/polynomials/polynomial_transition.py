"""Transitions of the polynomial S6: how Ā_t follows from the selective pre-activation z_t = S_A u_t.

The proofs of paper C about expressivity take P affine, as we read them (Eq 16-17: Ā_t = S_A u_t, B
not discretised); those about generalization are about Eq 34. The other transitions here are the
squashed variant (Eq 6, whose formula is lost: as we restore it), the Taylor variants of Section 4.1
and the true S6. They run, but a circuit states what its transitions must reach, and these refuse
what they cannot:

    FORGET  Ā_t = 0 at every position   (a channel without memory: selection by the gate)
    KEEP    Ā_t = 1 at every position   (a running sum)
    VALUE   Ā_t = a channel's own value, any real number (a running product)
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from math import factorial, log

import numpy as np
import sympy
import torch

from compiler import digits


class Need(Enum):
    """What a channel needs of its transition."""

    FORGET = "Ā = 0"
    KEEP = "Ā = 1"
    VALUE = "Ā equal to a channel's value, any real number"


class Transition:
    """Maps z (any array) to (Ā, the factor of B): B is multiplied by Δ where the variant discretises it."""

    name = ""

    def __call__(self, z):
        raise NotImplementedError

    def refusal(self, need: Need) -> str | None:
        """Why no weights give what a circuit needs; None where z itself does."""
        raise NotImplementedError


@dataclass(frozen=True)
class Linear(Transition):
    """P(z) = z (Eq 16-17 with the constants folded into S_A's bias): every need is met by z itself."""

    name = "linear"

    def __call__(self, z):
        return z, 1

    def refusal(self, need: Need) -> str | None:
        return None


@dataclass(frozen=True)
class Squashed(Transition):
    """Ā = K·tanh(z), 1-Lipschitz, |Ā| < K ≤ 1 (Eq 6 and 34, as we restore them)."""

    bound: float = 1.0
    name = "squashed"

    def __call__(self, z):
        if isinstance(z, np.ndarray) and z.dtype == object and not z.any():
            return z * 0, 1  # tanh 0 = 0 in every ring; other values are no ring elements
        return self.bound * _torch_or_numpy(z).tanh(z), 1

    def refusal(self, need: Need) -> str | None:
        if need is Need.FORGET:
            return None
        bound = digits.at_most(self.bound, 6)
        return f"the squashed transition keeps |Ā| below {bound}, and the circuit needs {need.value}"


@dataclass(frozen=True)
class Taylor(Transition):
    """Δ = T_q(softplus)(z), Ā = T_p(exp)(Δ·rate), B̄ = Δ·B (Section 4.1; ln 2 is the float64 nearest to it)."""

    exp_degree: int = 2
    softplus_degree: int = 2
    rate: int = -1
    name = "taylor"

    def __call__(self, z):
        step = horner(softplus_series(self.softplus_degree), z)
        return horner(exp_series(self.exp_degree), step * self.rate), step

    def refusal(self, need: Need) -> str | None:
        at = f"with Taylor degrees {self.exp_degree} (exp) and {self.softplus_degree} (softplus)"
        if need is Need.VALUE:
            degree = len(self.composed()) - 1
            return (
                f"{at} Ā is a polynomial of degree {degree} in z and not z itself, and the circuit needs {need.value}"
            )
        wanted = 0.0 if need is Need.FORGET else 1.0
        roots = self.solutions(wanted)
        least = least_value(softplus_series(self.softplus_degree))
        if roots:
            places = ", ".join(f"{r:.4g}" for r in roots)
            return (
                f"{at} Ā = {wanted:g} only at z = {places} and there Δ ≥ {least:.3g} still scales B, and the "
                f"circuit needs {need.value} with B = 1"
            )
        low = least_value(self.composed())
        reach = f"never falls below {low:.3g}" if low > wanted else f"never reaches {wanted:g}"
        return f"{at} Ā {reach} and Δ never below {least:.3g}, and the circuit needs {need.value}"

    def composed(self) -> list[Fraction]:
        """The coefficients of Ā as a polynomial in z, lowest first."""
        inner = np.polynomial.Polynomial(_floats(softplus_series(self.softplus_degree))) * self.rate
        total = np.polynomial.Polynomial([0.0])
        for c in reversed(_floats(exp_series(self.exp_degree))):
            total = total * inner + c
        return [Fraction(float(c)) for c in total.trim(1e-15).coef]

    def solutions(self, value: float) -> list[float]:
        """The real z with Ā(z) = value."""
        shifted = np.polynomial.Polynomial(_floats(self.composed())) - value
        return sorted(float(r.real) for r in shifted.roots() if abs(r.imag) < 1e-9)


@dataclass(frozen=True)
class Exponential(Transition):
    """The true S6: Δ = softplus(z), Ā = exp(Δ·rate) with rate < 0, B̄ = Δ·B."""

    rate: float = -1.0
    name = "exponential"

    def __call__(self, z):
        if isinstance(z, torch.Tensor):
            step = torch.nn.functional.softplus(z)
            return torch.exp(step * self.rate), step
        step = np.logaddexp(0, z)
        return np.exp(step * self.rate), step

    def refusal(self, need: Need) -> str | None:
        return f"exp and softplus keep Ā strictly between 0 and 1 (in real numbers), and the circuit needs {need.value}"


TRANSITIONS: dict[str, Transition] = {
    "linear": Linear(),
    "squashed": Squashed(),
    "taylor": Taylor(),
    "taylor-3": Taylor(3, 3),
    "exponential": Exponential(),
}


def exp_series(degree: int) -> list[Fraction]:
    """Taylor coefficients of exp at 0, lowest first."""
    return [Fraction(1, factorial(k)) for k in range(degree + 1)]


def softplus_series(degree: int) -> list[Fraction]:
    """Taylor coefficients of softplus at 0: ln 2 + z/2 + Σ (4^n − 1) B_2n z^2n / (2n·(2n)!).

    Odd terms beyond z vanish.
    """
    series = [Fraction(log(2)), Fraction(1, 2)]
    for k in range(2, degree + 1):
        term = (2**k - 1) * sympy.bernoulli(k) / (k * factorial(k)) if k % 2 == 0 else sympy.Integer(0)
        series.append(Fraction(int(term.p), int(term.q)))
    return series[: degree + 1]


def horner(coefficients: list[Fraction], z):
    """The polynomial at z: exact on object arrays, in the array's own precision otherwise."""
    exact = isinstance(z, np.ndarray) and z.dtype == object
    total = z * 0
    for c in reversed(coefficients):
        total = total * z + (c if exact else float(c))
    return total


def least_value(coefficients: list[Fraction]) -> float:
    """The minimum over the reals of a polynomial (−∞ where it is unbounded below)."""
    polynomial = np.polynomial.Polynomial(_floats(coefficients)).trim()
    degree = polynomial.degree()
    if degree == 0:
        return float(polynomial.coef[0])
    if degree % 2 or polynomial.coef[-1] < 0:
        return float("-inf")
    critical = [r.real for r in polynomial.deriv().roots() if abs(r.imag) < 1e-9]
    return float(min(polynomial(r) for r in critical))


def _floats(coefficients: list[Fraction]) -> list[float]:
    return [float(c) for c in coefficients]


def _torch_or_numpy(z):
    return torch if isinstance(z, torch.Tensor) else np
