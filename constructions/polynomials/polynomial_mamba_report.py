"""What `construct polynomial --arch mamba` reports: sizes, exactness on integers, errors against their bound."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from compiler.artifact.package import packaged_sizes, size_fields
from constructions.polynomials.polynomial_mamba import PolynomialOnMamba, depth
from constructions.polynomials.polynomial_terms import Polynomial


def report(model: PolynomialOnMamba, samples: int = 50, seed: int = 0) -> dict[str, Any]:
    """Blocks and sizes, answers on integers, errors on real numbers against their bound; JSON-able."""
    sizes = [size_fields(size) for size in packaged_sizes(model.compiled)]
    return {
        "polynomial": str(model.polynomial),
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
    """Integer inputs whose terms add up to less than 2^24 lattice steps, and how many come out exactly equal."""
    rng = np.random.default_rng(seed)
    largest = min(9.0, max(1.0, floor(2 ** (20 / max(model.polynomial.degree, 1)))), model.bound)
    x = rng.integers(-int(largest), int(largest) + 1, (samples, model.polynomial.length))
    steps = [_steps_of(model.polynomial, row) for row in x.tolist()]
    inside = [s < 2**24 for s in steps]
    right = [Fraction(float(y)) == model.polynomial.at(row) for y, row in zip(model(x), x.tolist(), strict=True)]
    return {"inputs": sum(inside), "right": sum(r for r, i in zip(right, inside, strict=True) if i)}


def _steps_of(polynomial: Polynomial, row: list[int]) -> Fraction:
    """Σ |terms| in units of the last bit of any coefficient: what a float32 sum must hold."""
    coefficients = [c for c in (polynomial.constant, *(m.coefficient for m in polynomial.monomials)) if c]
    finest = min((Fraction(c.numerator & -c.numerator, c.denominator) for c in coefficients), default=Fraction(1))
    absolute = Polynomial(
        polynomial.length,
        abs(polynomial.constant),
        tuple(replace(m, coefficient=abs(m.coefficient)) for m in polynomial.monomials),
    )
    return absolute.at([abs(v) for v in row]) / finest


def measured(model: PolynomialOnMamba, samples: int, seed: int) -> dict[str, float]:
    """The largest error relative to Σ |terms| on inputs between 2^−6 and 4 in size, and as a share of the forward error
    bound.
    """
    rng = np.random.default_rng(seed)
    shape = (samples, model.polynomial.length)
    x = (
        (rng.choice([-1, 1], shape) * 2.0 ** rng.uniform(-6, 2, shape))
        .clip(-model.bound, model.bound)
        .astype(np.float32)
    )
    relative, share = [0.0], [0.0]
    for answer, row in zip(model(x), x, strict=True):
        exact = [Fraction(float(v)) for v in row]
        error = float(abs(Fraction(float(answer)) - model.polynomial.at(exact)))
        single = [Polynomial(model.polynomial.length, Fraction(0), (m,)).at(exact) for m in model.polynomial.monomials]
        terms = abs(model.polynomial.constant) + sum(abs(term) for term in single)
        relative.append(error / float(terms) if terms > Fraction(1, 2**90) else 0.0)
        share.append(error / bound if (bound := model.forward_error(row)) else error)
    return {"largest_relative_error": max(relative), "share_of_bound": max(share), "within_bound": max(share) <= 1}
