"""The degree gap between S6 and linear attention (paper C, Lemma 1 and Theorem 1).

Statement. The last output of one S6 channel with state 1, Ā = a x_t, B = b x_t, C = c x_t,

    f_L(x) = b c Σ_j a^{L−j} x_L (Π_{k>j} x_k) x_j²                       (Eq 7, 8, as we restore them)

has L monomials and degree exactly L + 2 (the paper's count is lost in the text that we read); N stacked layers of
causal linear attention have degree at most 3^N (with a multiplicative gate, of which the paper says otherwise, 4^N:
truth gates-multiply). So equality on R^L needs N ≥ ⌈log3(L + 2)⌉ layers.

What its words leave unsaid. This is about exact equality on an open set. On {0, 1}^L, where x² = x, the
multilinear degree is L and the bound ⌈log3 L⌉; approximation and thresholding need fewer layers.
With Taylor polynomials (exp of degree p, softplus of degree q, B̄ = ΔB) the degree is pq(L − 1) + q + 3.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from constructions.polynomials.linear_attention import on_polynomial_s6, random_head, tokens_of
from constructions.polynomials.polynomial_circuit import Channel, Layer, PolynomialCircuit, lower
from constructions.polynomials.polynomial_s6 import PolynomialNetwork
from constructions.polynomials.polynomial_transition import Linear, Taylor, Transition
from verify.polynomial_degree import attention_layers, degree, multilinear_degree

LINEAR = Linear()


def channel(a=1, b=1, c=1, transition: Transition = LINEAR) -> PolynomialNetwork:
    """One channel, state 1, no bias: f_L at the last position. Other transitions take the same weights."""
    layer = Layer([Channel("x", {"x": 1}, {"x": a}, {"one": 1}, {"y": 1})], ["y"], write=({"x": b},), read=({"x": c},))
    return PolynomialNetwork(lower(PolynomialCircuit(["x", "one"], ["one"], [layer])).blocks, transition)


def last_output(network: PolynomialNetwork, x: list) -> object:
    """The network's last output on a scalar sequence, exactly."""
    tokens = np.array([[[v, 1] for v in x]], dtype=object)
    return network(tokens)[0, -1, 0]


def f(x: list, a=1, b=1, c=1) -> object:
    """Eq 7/8 as restored above, term by term."""
    total = 0
    for j in range(len(x)):
        term = b * c * a ** (len(x) - 1 - j) * x[-1] * x[j] ** 2
        for k in range(j + 1, len(x)):
            term = term * x[k]
        total = total + term
    return total


def s6_degree(length: int) -> int:
    """L + 2, measured: the degree of f_L on integer rays."""
    network = channel(a=2, b=3, c=-1)
    return degree(lambda x: last_output(network, x), length, length + 3)


def binary_degree(length: int) -> int:
    """L, measured: the multilinear degree of the channel on {0, 1}^L."""
    network = channel()
    return multilinear_degree(lambda x: last_output(network, x), length)


def taylor_degree(length: int, exp_degree: int, softplus_degree: int) -> int:
    """The degree with Taylor polynomials, measured."""
    network = channel(transition=Taylor(exp_degree, softplus_degree))
    expected = taylor_formula(length, exp_degree, softplus_degree)
    return degree(lambda x: Fraction(last_output(network, x)), length, expected + 1, rays=1)


def taylor_formula(length: int, exp_degree: int, softplus_degree: int) -> int:
    """pq(L − 1) + q + 3."""
    return exp_degree * softplus_degree * (length - 1) + softplus_degree + 3


def attention_degree(layers: int, length: int = 3, d: int = 2, seed: int = 0) -> int:
    """3^N for generic weights, measured on N stacked heads of width d."""
    network = on_polynomial_s6([random_head(d, d, d, seed + i) for i in range(layers)])

    def output(x: list) -> object:
        tokens = tokens_of(network, np.array(x, dtype=object).reshape(1, length, d))
        return sum(network(tokens)[0, -1, -d:])

    return degree(output, length * d, 3**layers + 1, rays=1, seed=seed)


def report(length: int = 16, layers: int = 3) -> dict[str, Any]:
    """Degrees of S6 up to a length and of attention up to a depth, measured, and the layers that equality needs."""
    lengths = sorted({1, 2, 4, 8, 16, 32, length} & set(range(1, length + 1)))
    rows = [
        {
            "length": n,
            "s6_degree": s6_degree(n),
            "attention_layers": attention_layers(n + 2),
            "gated_attention_layers": attention_layers(n + 2, gated=True),
            "binary_degree": binary_degree(n) if n <= 12 else n,
            "binary_degree_measured": n <= 12,
            "binary_attention_layers": attention_layers(n),
        }
        for n in lengths
    ]
    attention = [{"layers": n, "bound": 3**n, "degree": attention_degree(n)} for n in range(1, layers + 1)]
    return {
        "theorem": "after paper C, Lemma 1, whose count is lost: deg f_L = L + 2, and N attention layers reach 3^N",
        "s6": rows,
        "attention": attention,
        "agrees": all(_agrees(row) for row in rows) and all(row["degree"] == row["bound"] for row in attention),
    }


def _agrees(row: dict[str, Any]) -> bool:
    """Whether a measured row is what the formulas say: degree L + 2, L on bits, and no fewer layers reach it."""
    length, degree, layers = row["length"], row["s6_degree"], row["attention_layers"]
    enough = 3**layers >= degree and (layers == 0 or 3 ** (layers - 1) < degree)
    gated = row["gated_attention_layers"]
    return (
        degree == length + 2
        and row["binary_degree"] == length
        and enough
        and 4**gated >= degree > (4 ** (gated - 1) if gated else 0)
    )
