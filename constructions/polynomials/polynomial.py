"""Any multivariate polynomial in four layers of the polynomial S6 (paper C, Theorem 2; Lemma 3 for one monomial).

The circuits are in `polynomial_circuits.py`; here they are run: on the generators of sympy's
polynomial ring Q[x1 … xL], which proves the identity for all inputs, on Python integers and
Fractions, and in float32 and float64, whose error is measured against a forward error bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
import torch
from sympy.polys.rings import ring

from constructions.polynomials.polynomial_circuit import PolynomialCircuit, lower
from constructions.polynomials.polynomial_circuits import expected_widths, lemma3, padded_length, theorem2
from constructions.polynomials.polynomial_s6 import PolynomialNetwork, torch_network
from constructions.polynomials.polynomial_terms import Polynomial, from_terms
from constructions.polynomials.polynomial_transition import TRANSITIONS
from verify.forward_error import Majorant

_LARGEST_COEFFICIENT = {"float32": 2**60, "float64": 2**900}
TORCH = {"float32": torch.float32, "float64": torch.float64}


@dataclass(frozen=True, eq=False)
class PolynomialModel:
    """A lowered circuit that answers with one lane of one position.

    polynomial: what it must compute; padded: T; position: where the answer stands (1-based).
    """

    polynomial: Polynomial
    circuit: PolynomialCircuit
    network: PolynomialNetwork
    padded: int
    position: int

    def tokens(self, x: np.ndarray) -> np.ndarray:
        """(batch, L) inputs of any number type to (batch, T, d): zeros to the right, one-hot positions (E and Ppos)."""
        tokens = np.zeros((len(x), self.padded, len(self.network.blocks[0].lanes_in)), dtype=x.dtype)
        tokens[:, : x.shape[1], 0] = x
        for t in range(self.padded):
            tokens[:, t, 1 + t] = 1
        return tokens

    def __call__(self, x: np.ndarray, form: str = "sequential") -> np.ndarray:
        """The answers (batch,) for inputs (batch, L)."""
        return self.network(self.tokens(x), form)[:, self.position - 1, -1]

    def in_torch(self, x: np.ndarray, dtype: str, form: str = "parallel") -> np.ndarray:
        """The answers of the torch modules in this dtype, as float64."""
        modules = torch_network(self.network, TORCH[dtype], form)
        with torch.no_grad():
            out = modules(torch.from_numpy(self.tokens(x.astype(float))).to(TORCH[dtype]))
        return out[:, self.position - 1, -1].double().numpy()

    def majorants(self, x: np.ndarray, form: str = "parallel") -> list[Majorant]:
        """For each input (batch, L) what bounds the rounding error of its answer, in any dtype."""
        inputs = np.vectorize(lambda v: Majorant(abs(Fraction(float(v)))), otypes=[object])(x)
        return [a if isinstance(a, Majorant) else Majorant(abs(Fraction(a))) for a in self(inputs, form)]

    def difference(self) -> sympy.polys.rings.PolyElement:
        """Network minus polynomial, as an element of Q[x1 … xL]: zero is a proof for all inputs."""
        field, *x = ring([f"x{i + 1}" for i in range(self.polynomial.length)], sympy.QQ)
        inputs = np.array([x], dtype=object)
        network = _over(self.network, field)
        (answer,) = PolynomialModel(self.polynomial, self.circuit, network, self.padded, self.position)(inputs)
        expected = Polynomial(
            self.polynomial.length,
            _rational(self.polynomial.constant, field),
            tuple(type(m)(_rational(m.coefficient, field), m.factors) for m in self.polynomial.monomials),
        )
        return field(answer) - expected.at(x)


def build(
    polynomial: Polynomial, form: str = "paper", residual: bool = False, transition: str = "linear"
) -> PolynomialModel:
    """Theorem 2: the polynomial at the last of T positions; CompileError where the transition cannot do it."""
    circuit, padded = theorem2(polynomial, form, residual), padded_length(polynomial, form)
    return PolynomialModel(polynomial, circuit, lower(circuit, TRANSITIONS[transition]), padded, padded)


def build_monomial(
    variable: int, power: int, coefficient=1, length: int = 0, position: int = 0, transition: str = "linear"
) -> PolynomialModel:
    """Lemma 3: c·x_i^P at `position` (default: the first that can hold it), 0 at every other position, in three
    blocks.
    """
    length = length or variable
    at = position or variable + power - 1
    padded = max(length, at)
    circuit = lemma3(variable, power, Fraction(coefficient), length, at, padded)
    polynomial = from_terms(length, {((variable, power),): coefficient})
    return PolynomialModel(polynomial, circuit, lower(circuit, TRANSITIONS[transition]), padded, at)


def _rational(number, field):
    """A weight as an element of the ring's domain; whole ones stay Python integers."""
    exact = Fraction(number)
    return int(exact) if exact.denominator == 1 else field.domain(exact.numerator, exact.denominator)


def _over(network: PolynomialNetwork, field) -> PolynomialNetwork:
    """The same network with Fractions replaced by elements of the domain (the ring multiplies by nothing else)."""
    convert = np.vectorize(lambda w: _rational(w, field), otypes=[object])
    blocks = [replace(b, out=replace(b.out, weight=convert(b.out.weight))) for b in network.blocks]
    return PolynomialNetwork(blocks, network.transition)


# Reports --------------------------------------------------------------------------------------------


def formula(polynomial: Polynomial, form: str = "paper") -> dict[str, Any]:
    """What the specification says of Theorem 2's sizes."""
    return {"padded_length": padded_length(polynomial, form), "widths": expected_widths(polynomial, form)}


def report(model: PolynomialModel, samples: int = 50, seed: int = 0) -> dict[str, Any]:
    """Sizes, the proof, exactness on integers, and float errors against their bound; JSON-able."""
    p = model.polynomial
    return {
        "polynomial": str(p),
        "blocks": len(model.circuit.layers),
        "padded_length": model.padded,
        "widths": model.circuit.widths(),
        "channels": [len(b.channels) for b in model.network.blocks],
        "nonzero_weights": model.network.nonzeros,
        "degree": p.degree,
        "proved": not model.difference(),
        "exact_on_integers": _exact_on_integers(model, samples, seed),
        "float": measured(model, samples, seed),
    }


def _exact_on_integers(model: PolynomialModel, samples: int, seed: int) -> dict[str, int]:
    """How many random integer inputs in −9 … 9 (zeros included) come out equal to the polynomial."""
    rng = np.random.default_rng(seed)
    x = np.array(rng.integers(-9, 10, (samples, model.polynomial.length)).tolist(), dtype=object)
    right = sum(y == model.polynomial.at(row) for y, row in zip(model(x), x, strict=True))
    return {"inputs": samples, "right": int(right)}


def measured(model: PolynomialModel, samples: int, seed: int) -> dict[str, dict[str, Any]]:
    """For float32 and float64 the largest error on random inputs: absolutely, relatively, and as a share of the bound
    (at most 1).

    Inputs are float32 numbers in ±2, or as near 0 as keeps the powers within float32. A dtype that a coefficient leaves
    is not run, and says so.
    """
    p = model.polynomial
    largest = max(abs(c) for c in (p.constant, *(m.coefficient for m in p.monomials)))
    reach = min(2.0, 2.0 ** (40 / max(p.degree, 1)))
    x = np.random.default_rng(seed).uniform(-reach, reach, (samples, p.length)).astype(np.float32)
    exact = [p.at([Fraction(float(v)) for v in row]) for row in x]
    majorants = model.majorants(x)
    return {
        dtype: _errors(model.in_torch(x, dtype), exact, majorants, dtype)
        if largest <= _LARGEST_COEFFICIENT[dtype]
        else {"not_run": f"a coefficient is beyond 2^{_LARGEST_COEFFICIENT[dtype].bit_length() - 1}"}
        for dtype in TORCH
    }


def _errors(computed: np.ndarray, exact: list[Fraction], majorants: list[Majorant], dtype: str) -> dict[str, float]:
    errors = np.array([float(abs(Fraction(float(y)) - e)) for y, e in zip(computed, exact, strict=True)])
    sizes = np.array([float(abs(e)) for e in exact])
    bounds = np.array([m.error(dtype) for m in majorants])
    return {
        "largest_error": float(errors.max()),
        "largest_relative_error": float((errors / np.where(sizes > 0, sizes, 1)).max()),
        "largest_bound": float(bounds.max()),
        "share_of_bound": float((errors / np.where(bounds > 0, bounds, 1)).max()),
        "within_bound": bool((errors <= bounds).all()),
    }
