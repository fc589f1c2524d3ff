"""What `construct polynomial --arch mamba` reports: sizes, exactness on integers, errors against their bound."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor, log2
from typing import Any

import numpy as np

from compiler.artifact.package import packaged_sizes, size_fields
from constructions.polynomials.polynomial_mamba import PolynomialOnMamba, depth
from constructions.polynomials.polynomial_task import coefficient_rounding
from constructions.polynomials.polynomial_terms import Polynomial
from verify.forward_error import shares


def report(model: PolynomialOnMamba, samples: int = 50, seed: int = 0) -> dict[str, Any]:
    """Blocks and sizes, answers on integers, errors on real numbers against their bound; JSON-able."""
    sizes = [size_fields(size) for size in packaged_sizes(model.compiled)]
    return {
        "polynomial": str(model.asked),
        "rounded_coefficients": _rounded_coefficients(model),
        "form": model.form,
        "blocks": len(model.compiled.blocks),
        "formula": {"blocks": depth(model.polynomial, model.form)},
        "sizes": {
            name: max((size[name] for size in sizes), default=0)
            for name in ("d_model", "d_inner", "d_state", "dt_rank")
        },
        "degree": model.polynomial.degree,
        "largest_input": model.bound,
        "exact_on_integers": _exact_on_integers(model, samples, seed),
        "float32": measured(model, samples, seed),
    }


def _exact_on_integers(model: PolynomialOnMamba, samples: int, seed: int) -> dict[str, int]:
    """Integer inputs whose terms add up to less than 2^24 quanta, and how many come out exactly equal.

    They are as large as leaves at least half of them inside, 9 at most: fewer only where not even inputs of −1, 0 and 1
    do, because the coefficients themselves are too fine or too large.
    """
    largest = int(min(9.0, max(1.0, floor(2 ** (20 / max(model.polynomial.degree, 1)))), max(1.0, model.bound)))
    for most in range(largest, 0, -1):
        rng = np.random.default_rng(seed)
        x = rng.integers(-most, most + 1, (samples, model.polynomial.length))
        inside = [_steps_of(model.polynomial, row) < 2**24 for row in x.tolist()]
        if 2 * sum(inside) >= samples:
            break
    right = [Fraction(float(y)) == model.polynomial.at(row) for y, row in zip(model(x), x.tolist(), strict=True)]
    return {"inputs": sum(inside), "right": sum(r for r, i in zip(right, inside, strict=True) if i)}


def _steps_of(polynomial: Polynomial, row: list[int]) -> Fraction:
    """Σ |terms| in units of the last bit of any coefficient: what a float32 sum must hold."""
    coefficients = [c for c in (polynomial.constant, *(m.coefficient for m in polynomial.monomials)) if c]
    finest = min((Fraction(c.numerator & -c.numerator, c.denominator) for c in coefficients), default=Fraction(1))
    return _absolute(polynomial).at([abs(v) for v in row]) / finest


def _absolute(polynomial: Polynomial) -> Polynomial:
    """Σ |terms|, of absolute inputs."""
    monomials = tuple(replace(m, coefficient=abs(m.coefficient)) for m in polynomial.monomials)
    return Polynomial(polynomial.length, abs(polynomial.constant), monomials)


def measured(model: PolynomialOnMamba, samples: int, seed: int) -> dict[str, Any]:
    """The largest error relative to Σ |terms| on real inputs, and as a share of its bound.

    The error is that from the polynomial as it was asked for: the bound is the forward error bound and what float32
    takes from the coefficients, which is also told alone (`coefficient_rounding`, relative to Σ |terms|). Inputs where
    underflow may take more than a rounding are counted, and left out of the relative error; None: nothing was measured.
    """
    x, asked = _real_inputs(model, samples, seed), model.asked
    relative, rounding, errors, bounds, underflow = [], [], [], [], 0
    for answer, row in zip(model(x), x, strict=True):
        exact = [Fraction(float(v)) for v in row]
        error = abs(Fraction(float(answer)) - asked.at(exact))
        off = coefficient_rounding(asked, model.polynomial, exact)
        if terms := _absolute(asked).at([abs(v) for v in exact]):
            lost = _underflow(model, row) > terms
            underflow += lost
            relative += [] if lost else [float(error / terms)]
            rounding.append(float(off / terms))
        errors.append(float(error))
        bounds.append(model.forward_error(row) + float(off))
    of_bound = shares(np.array(errors), np.array(bounds))
    return {
        "inputs": samples,
        "inputs_where_all_terms_are_0": samples - len(rounding),
        "inputs_that_underflow": underflow,
        "largest_relative_error": max(relative, default=None),
        "coefficient_rounding": max(rounding, default=None),
        "share_of_bound": float(of_bound.max()),
        "within_bound": bool((of_bound <= 1).all()),
    }


def _real_inputs(model: PolynomialOnMamba, samples: int, seed: int) -> np.ndarray:
    """Numbers between 2^−6 and 4 in size, and so far as the model takes; every other one so near 1 that no power
    underflows.
    """
    rng = np.random.default_rng(seed)
    shape = (samples, model.polynomial.length)
    low = np.full(shape, -6.0)
    low[1::2] = -min(6.0, 90 / max(model.polynomial.degree, 1))
    sizes = 2.0 ** rng.uniform(low, min(2.0, log2(model.bound)), shape)
    return (rng.choice([-1, 1], shape) * sizes).astype(np.float32)


def _underflow(model: PolynomialOnMamba, row: np.ndarray) -> float:
    """What the answer loses at most where every number below the least normal one is flushed to 0.

    Where such numbers are rounded, as here, it is 2^−24 of that: as much as Σ |terms| is one rounding.
    """
    return model.forward_error(row) - model.forward_error(row, lost=0.0)


def _rounded_coefficients(model: PolynomialOnMamba) -> int:
    """How many coefficients of the polynomial that was asked for float32 does not hold."""
    kept = {m.factors: m.coefficient for m in model.polynomial.monomials}
    off = sum(kept.get(m.factors) != m.coefficient for m in model.asked.monomials)
    return int(off) + int(model.asked.constant != model.polynomial.constant)
