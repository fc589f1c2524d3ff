"""Any multivariate polynomial in four layers of the polynomial S6 (after paper C, Theorem 2, and Lemma 3 for one
monomial).

The circuits are in `polynomial_circuits.py`; here they are run: on the generators of sympy's
polynomial ring Q[x1 … xL], which proves the identity for all inputs, on Python integers and
Fractions, and in float32 and float64, whose error is measured against a forward error bound.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log2
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
from verify.forward_error import LEAST_NORMAL, Majorant, shares, weighted

_LARGEST_COEFFICIENT = {"float32": 2**60, "float64": 2**900}
TORCH = {"float32": torch.float32, "float64": torch.float64}
MOST_NUMBERS = 1 << 20  # of a channel at a position that the torch modules hold at once
MOST_PRODUCTS = 1 << 38  # that the torch modules form in each dtype
MOST_WEIGHTS = 1 << 25  # zeros among them


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

    @property
    def products(self) -> int:
        """Products of a weight and a number that one sequence takes."""
        return self.padded * sum(block.weights for block in self.network.blocks)

    def exactly(self, x: np.ndarray) -> np.ndarray:
        """The answers (batch,) for inputs (batch, L) of ints or Fractions, in one run over the columns of x.

        A constant of the network is then one number for the whole batch.
        """
        return np.broadcast_to(self._on([*np.asarray(x, dtype=object).T]), len(x))

    def majorant(self, x: np.ndarray, form: str = "parallel") -> Majorant:
        """What bounds the rounding errors of the answers (batch,) for inputs (batch, L), in any dtype."""
        answer = self._on([Majorant(column) for column in np.abs(x.astype(float)).T], form)
        return answer if isinstance(answer, Majorant) else weighted(answer)

    def _on(self, columns: list, form: str = "sequential"):
        """The answer where x_i is columns[i], an object that knows + and ×."""
        inputs = np.empty((1, len(columns)), dtype=object)
        for i, column in enumerate(columns):
            inputs[0, i] = column
        return self(inputs, form)[0]

    def in_torch(self, x: np.ndarray, dtype: str, form: str = "parallel") -> np.ndarray:
        """The answers of the torch modules in this dtype, as float64."""
        modules = torch_network(self.network, TORCH[dtype], form)
        channels = max(len(block.channels) for block in self.network.blocks)
        parts = np.array_split(x.astype(float), -(-len(x) * self.padded * channels // MOST_NUMBERS))
        with torch.no_grad():
            outs = [modules(torch.from_numpy(self.tokens(part)).to(TORCH[dtype])) for part in parts if len(part)]
        return torch.cat([out[:, self.position - 1, -1] for out in outs]).double().numpy()

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
    """After Theorem 2: the polynomial at the last of T positions; CompileError where the transition cannot do it."""
    padded = padded_length(polynomial, form)
    _check_weights(str(polynomial), padded, expected_widths(polynomial, form))
    circuit = theorem2(polynomial, form, residual)
    return PolynomialModel(polynomial, circuit, lower(circuit, TRANSITIONS[transition]), padded, padded)


def build_monomial(
    variable: int, power: int, coefficient=1, length: int = 0, position: int = 0, transition: str = "linear"
) -> PolynomialModel:
    """After Lemma 3, where it promises its output being lost: c·x_i^P at `position` (default: the first that can hold
    it), 0 at every other position, in three blocks.
    """
    length = length or variable
    at = position or variable + power - 1
    padded = max(length, at)
    _check_weights(f"x{variable}**{power} at position {at}", padded, [1 + padded] * 4)
    circuit = lemma3(variable, power, Fraction(coefficient), length, at, padded)
    polynomial = from_terms(length, {((variable, power),): coefficient})
    return PolynomialModel(polynomial, circuit, lower(circuit, TRANSITIONS[transition]), padded, at)


def _check_weights(what: str, padded: int, widths: list[int]) -> None:
    """ValueError, before anything is built, where the matrices are larger than is built and run in a minute or so."""
    pairs = zip(widths, widths[1:], strict=False)
    weights = sum(max(pair) * (2 * pair[0] + max(pair) + pair[1]) for pair in pairs)
    if weights > MOST_WEIGHTS:
        raise ValueError(
            f"{what:.60} takes {weights:,} weights and {padded} positions of the polynomial S6, and at most "
            f"{MOST_WEIGHTS:,} weights are built; use fewer monomials, lower powers or earlier positions, or build it "
            "on real Mamba: construct polynomial … --arch mamba."
        )


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
    """Our formulas for Theorem 2's sizes."""
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
    return {"inputs": samples, "right": int((model.exactly(x) == model.polynomial.at([*x.T])).sum())}


def measured(model: PolynomialModel, samples: int, seed: int) -> dict[str, dict[str, Any]]:
    """For float32 and float64 the largest error on random inputs: absolutely, relatively, and as a share of the bound
    (at most 1).

    Inputs are float32 numbers in ±2, or as near 0 as keeps the powers within float32; of a long or wide network as many
    are run as take some seconds. A dtype that a coefficient leaves is not run, and says so.
    """
    p = model.polynomial
    reasons = {dtype: _not_run(p, dtype) for dtype in TORCH}
    if all(reasons.values()):
        return {dtype: {"not_run": reason} for dtype, reason in reasons.items()}
    reach = min(2.0, 2.0 ** (40 / max(p.degree, 1)))
    x = np.random.default_rng(seed).uniform(-reach, reach, (samples, p.length)).astype(np.float32)
    x = x[: max(1, MOST_PRODUCTS // model.products)]
    exact = [p.at([Fraction(float(v)) for v in row]) for row in x]
    majorant = model.majorant(x)
    return {
        dtype: {"not_run": reason}
        if reason
        else {"inputs": len(x), "inputs_left_out": samples - len(x)}
        | _errors(model.in_torch(x, dtype), exact, majorant.error(dtype))
        for dtype, reason in reasons.items()
    }


def _not_run(p: Polynomial, dtype: str) -> str:
    """Why a dtype is not run; empty where it is."""
    sizes = [abs(c) for c in (p.constant, *(m.coefficient for m in p.monomials)) if c]
    largest, least = _LARGEST_COEFFICIENT[dtype], LEAST_NORMAL[dtype]
    if max(sizes, default=0) > largest:
        return f"a coefficient is beyond 2^{largest.bit_length() - 1}"
    return f"a coefficient is below 2^{int(log2(least))}" if min(sizes, default=1) < least else ""


def _errors(computed: np.ndarray, exact: list[Fraction], bound: np.ndarray | float) -> dict[str, Any]:
    off = [abs(Fraction(float(y)) - e) for y, e in zip(computed, exact, strict=True)]
    relative = [float(o / abs(e)) for o, e in zip(off, exact, strict=True) if e]
    errors, bounds = np.array([float(o) for o in off]), np.broadcast_to(bound, len(exact))
    return {
        "largest_error": float(errors.max()),
        "largest_relative_error": max(relative, default=None),
        "inputs_where_it_is_0": len(exact) - len(relative),
        "largest_bound": float(bounds.max()),
        "share_of_bound": float(shares(errors, bounds).max()),
        "within_bound": bool((errors <= bounds).all()),
    }
