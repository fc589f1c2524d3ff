"""Paper C: Lemmas 1, 2 and 3, Theorems 1 and 2, and the variants of Section 4.1."""

from __future__ import annotations

from fractions import Fraction
from math import acosh, ceil, cosh, log

import numpy as np

from constructions.papers import EXPRESSIVITY
from constructions.truths.truth import Finding, Truth


def telescope(copies: list) -> list:
    """h_t = u_t(h_{t−1} + 1), block 3 of Lemma 3."""
    states, state = [], copies[0] * 0
    for u in copies:
        state = u * (state + 1)
        states.append(state)
    return states


def power(x, p: int, first: int, length: int):
    """The difference of the two channels at every position, copies from position `first` (0-based) on."""
    window = [x if first <= t < first + p else x * 0 for t in range(length)]
    shorter = [x if first < t < first + p else x * 0 for t in range(length)]
    return [a - b for a, b in zip(telescope(window), telescope(shorter), strict=True)]


def windows_end() -> Finding:
    as_printed, ending = power(3, 3, 1, 6), power(3, 3, 3, 6)
    return Finding(
        {"last token for 3³, copies from x₂ on, T = 6": as_printed[-1], "promised": 27},
        as_printed[-1] == 0,
        {"last token with windows that end there": ending[-1]},
        ending[-1] == 27,
    )


def powers_are_gated() -> Finding:
    from constructions.polynomials import polynomial
    from constructions.polynomials.polynomial_expression import parse_polynomial

    x, copies = 2, power(2, 3, 3, 6)
    model = polynomial.build(parse_polynomial("x1**3", 1))
    answer = int(model(np.array([[x]], dtype=object))[0])
    return Finding(
        {"what block 4 makes of 2, 4, 8 without the gate": telescope(copies)[-1], "promised": 8},
        telescope(copies)[-1] != 8,
        {"with the gate at T alone": answer},
        answer == 8,
    )


def factors_are_sorted() -> Finding:
    from constructions.polynomials.polynomial_circuits import padded_length
    from constructions.polynomials.polynomial_expression import parse_polynomial

    sorted_length = padded_length(parse_polynomial("x1*x4", 4))
    reverse = max(4, *(i + 2 - k for k, i in enumerate((4, 1), start=1)))  # i + p − 1 + n − k
    return Finding(
        {"T for x₄·x₁, factors in this order": reverse, "T of the theorem": 4},
        reverse > 4,
        {"T with factors sorted by variable": sorted_length},
        sorted_length == 4,
    )


def transitions_reach() -> Finding:
    from compiler.errors import CompileError
    from constructions.polynomials import polynomial
    from constructions.polynomials.polynomial_expression import parse_polynomial

    z = np.linspace(-50, 50, 200_001)
    least = float((1 + z + z**2 / 2).min())
    least_step = float((np.log(2) + z / 2 + z**2 / 8).min())
    p, refused = parse_polynomial("x1**2", 1), 0
    for transition in ("squashed", "taylor", "exponential"):
        try:
            polynomial.build(p, transition=transition)
        except CompileError:
            refused += 1
    proved = polynomial.build(p).difference() == 0
    return Finding(
        {"least Ā by Taylor of degree 2": least, "least Δ": least_step, "needed": 0.0},
        least > 0.49 and least_step > 0.19,
        {"variants that refuse x₁²": refused, "the affine one equals it (1: proved)": int(proved)},
        refused == 3 and proved,
    )


def degree_on_bits() -> Finding:
    from constructions.polynomials.degree_gap import binary_degree, s6_degree

    bits, reals = binary_degree(7), s6_degree(7)
    return Finding({"degree on {0, 1}^7": bits, "promised": 9}, bits == 7, {"degree on R^7": reals}, reals == 9)


def approximation_needs_less() -> Finding:
    """AND of L bits within 1/3 by one polynomial in their sum: T_d scaled to [0, L − 1], d ≈ √(2L)."""
    length = 64
    far = 1 + 2 / (length - 1)
    degree = ceil(acosh(3) / acosh(far))
    top = cosh(degree * acosh(far))

    def chebyshev(s: int) -> float:
        u = 2 * s / (length - 1) - 1
        return float(np.polynomial.chebyshev.Chebyshev.basis(degree)(u)) / top

    off = max(*(abs(chebyshev(s)) for s in range(length)), abs(chebyshev(length) - 1))
    return Finding(
        {"degree within 1/3 of AND, L = 64": degree, "its own degree": length},
        off <= 1 / 3 and degree < length / 3,
        {"layers for equality, ⌈log₃ 64⌉": ceil(log(length, 3)), "layers that degree takes": ceil(log(degree, 3))},
        ceil(log(degree, 3)) < ceil(log(length, 3)),
    )


def one_channel() -> Finding:
    from constructions.polynomials.linear_attention import on_polynomial_s6, random_head, tokens_of

    head = random_head(3, 2, 3, 0)
    network = on_polynomial_s6([head])
    x = np.array(np.random.default_rng(0).integers(-5, 6, (1, 6, 3)).tolist(), dtype=object)
    right = bool((network(tokens_of(network, x))[0] == head(x[0])).all())
    scores = (head.query @ x[0].T).T @ (head.key @ x[0].T)
    rank = int(np.linalg.matrix_rank(np.array((np.tril(np.ones((6, 6))) * scores.astype(float)) @ x[0].astype(float))))
    return Finding(
        {"channels in the statement": 1, "rank of the head's outputs": rank},
        rank > 1,
        {"channels that share B and C": 3, "columns N = d_k": 2, "equal to the head (1: yes)": int(right)},
        right and rank <= 3,
    )


def differences_cancel() -> Finding:
    x, p = np.float32(0.9), 40
    subtracted = power(x, p, 0, p)[-1]
    product = x
    for _ in range(p - 1):
        product = np.float32(product * x)
    exact = float(Fraction(float(x)) ** p)
    errors = [abs(float(value) - exact) / exact for value in (subtracted, product)]
    return Finding(
        {"relative error of 0.9⁴⁰ as a difference of sums, float32": errors[0]},
        errors[0] > 1e-6,
        {"of the form without a difference": errors[1], "its bound, 39 roundings": 39 * 2.0**-24},
        errors[1] <= 39 * 2.0**-24 * 1.01,
    )


def gates_multiply() -> Finding:
    """A linear multiplicative gate behind a head of degree 3 is of degree 4 (degrees by differences on a ray)."""
    from verify.polynomial_degree import attention_layers, degree

    def gated(x: list) -> int:
        total = sum((2 * x[-1]) * (3 * s) * s for s in x)
        return total * (x[-1] - 2 * x[0])

    found = degree(gated, 3, 5)
    return Finding(
        {"degree of one gated layer": found, "base in the statement": 3},
        found == 4,
        {"layers for equality at L = 30 with gates, ⌈log₄ 32⌉": attention_layers(32, gated=True)}
        | {"without, ⌈log₃ 32⌉": attention_layers(32)},
        attention_layers(32, gated=True) == 3 < attention_layers(32) == 4,
    )


TRUTHS = (
    Truth(
        "windows-end",
        EXPRESSIVITY,
        "Lemma 3",
        "Copies start at the variable, and the last token is the power.",
        "Behind the window u = 0 and the state is 0: x₂ = 3, P = 3, T = 6.",
        "Windows end where the power is read.",
        windows_end,
    ),
    Truth(
        "powers-are-gated",
        EXPRESSIVITY,
        "Theorem 2",
        "The difference of two channels is the power, and block 4 multiplies powers.",
        "The difference holds x, x², …, x^P one after the other, and block 4 takes all of them in.",
        "A gate that is 1 at one position alone has to follow block 3.",
        powers_are_gated,
    ),
    Truth(
        "factors-are-sorted",
        EXPRESSIVITY,
        "Theorem 2",
        "Multilinear monomials need no padding.",
        "Not in every order of their factors.",
        "In the order of variables they do not.",
        factors_are_sorted,
    ),
    Truth(
        "transitions-reach",
        EXPRESSIVITY,
        "Theorem 2, Section 4.1",
        "The theorem speaks of the layer with Taylor polynomials, or squashed.",
        "The circuit needs Ā = 0, 1 and every real number; 1 + z + z²/2 ≥ 1/2.",
        "The affine P of the proofs has them; the others refuse with that reason.",
        transitions_reach,
    ),
    Truth(
        "degree-on-bits",
        EXPRESSIVITY,
        "Lemma 1, Count-in-Row",
        "The degree of one channel is at least L + 2.",
        "On {0, 1}^L, the data of the experiments, x² = x.",
        "It is L + 2 on R^L and L on bits: ⌈log₃ L⌉ layers there.",
        degree_on_bits,
    ),
    Truth(
        "approximation-needs-less",
        EXPRESSIVITY,
        "Theorem 1",
        "Attention needs logarithmically many layers for what S6 does in one.",
        "That is equality. A polynomial of degree about √(2L) is within 1/3 of AND; a threshold makes it exact.",
        "Equality needs ⌈log₃ L⌉ layers; for answers by a threshold the argument leaves about half of them.",
        approximation_needs_less,
    ),
    Truth(
        "one-channel",
        EXPRESSIVITY,
        "Lemma 2",
        "A single channel of S6 is a head of linear attention.",
        "One channel has one input, and a head mixes all coordinates of its values.",
        "d channels that share B and C, with N = d_k columns, are the head.",
        one_channel,
    ),
    Truth(
        "differences-cancel",
        EXPRESSIVITY,
        "Lemma 3",
        "Subtracting leaves x^P.",
        "In floats it leaves the rounding of x + … + x^P, large beside x^P for |x| < 1.",
        "A channel that starts with the first copy and multiplies needs no difference (`--form cancellation-free`).",
        differences_cancel,
    ),
    Truth(
        "gates-multiply",
        EXPRESSIVITY,
        "Theorem 1",
        "Attention with gates needs as many layers.",
        "A multiplicative gate raises the degree of a layer from 3 to 4.",
        "The base of the logarithm is 4 with gates.",
        gates_multiply,
    ),
)
