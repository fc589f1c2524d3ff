"""Paper C: Lemmas 1 (Appendix B.1), 2 and 3, Theorem 2, Section 4. The text that we read has lost its formulas."""

from __future__ import annotations

from fractions import Fraction
from math import acosh, ceil, cosh, factorial, log, sqrt

import numpy as np

from constructions.papers import EXPRESSIVITY
from constructions.truths.truth import Finding, Kind, Truth


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


def powers_are_gated(x: int = 2, exponent: int = 3, length: int = 6, kept: int = 6) -> Finding:
    """Copies end at the last position; kept: the position that the gate leaves, from 1."""
    from constructions.polynomials import polynomial
    from constructions.polynomials.polynomial_expression import parse_polynomial

    powers = power(x, exponent, length - exponent, length)
    gated = [value if t == kept else 0 for t, value in enumerate(powers, start=1)]
    model = polynomial.build(parse_polynomial(f"x1**{exponent}", 1))
    answer = int(model(np.array([[x]], dtype=object))[0])
    promised = x**exponent
    return Finding(
        {f"block 4 on the powers of {x} up to {x}^{exponent}, no gate": telescope(powers)[-1], "promised": promised},
        telescope(powers)[-1] != promised,
        {f"block 4 with a gate that is 1 at position {kept} alone": telescope(gated)[-1], "the circuit": answer},
        telescope(gated)[-1] == answer == promised,
    )


def transitions_reach(
    degree: int = 2,
    reach: float = 50.0,
    affine: str = "linear",
    others: tuple[str, ...] = ("squashed", "taylor", "exponential"),
) -> Finding:
    """degree: of the Taylor polynomials of exp and softplus; reach: the largest |z| of the grid."""
    from constructions.polynomials.polynomial_expression import parse_polynomial

    z = np.linspace(-reach, reach, 200_001)
    least = float(sum(z**n / factorial(n) for n in range(degree + 1)).min())
    least_step = float((log(2) + z / 2 + (z**2 / 8 if degree > 1 else 0)).min())
    p = parse_polynomial("x1**2", 1)
    refused, equal = [name for name in others if not _proved(p, name)], _proved(p, affine)
    return Finding(
        {f"least Ā by Taylor of degree {degree}, |z| ≤ {reach:g}": least, "least Δ": least_step},
        least > 0,
        {f"x1² is proved with a {affine} P (1: yes)": int(equal)} | {f"refused, of {', '.join(others)}": len(refused)},
        equal and len(refused) == len(others),
    )


def _proved(p, transition: str) -> bool:
    """Whether the four blocks equal the polynomial; False where the transition refuses them."""
    from compiler.errors import CompileError
    from constructions.polynomials import polynomial

    try:
        return bool(polynomial.build(p, transition=transition).difference() == 0)
    except CompileError:
        return False


def approximation_needs_less(length: int = 1024, tolerance: float = 1 / 3) -> Finding:
    """AND of L bits by one polynomial in their sum: e·T_d on [0, L − 1], where e·T_d(far) = 1 − e."""
    far = 1 + 2 / (length - 1)
    degree = ceil(acosh(1 / tolerance - 1) / acosh(far))
    top = 1 + cosh(degree * acosh(far))

    chebyshev = np.polynomial.chebyshev.Chebyshev.basis(degree)
    answers = chebyshev(2 * np.arange(length + 1) / (length - 1) - 1) / top
    off = float(np.abs(answers - (np.arange(length + 1) == length)).max())
    layers, enough = ceil(log(length, 3)), ceil(log(degree, 3))
    return Finding(
        {f"degree of AND of {length} bits": length, f"a degree that comes within {tolerance:.2g} of it": degree}
        | {"its error": off, "that degree over √L": degree / sqrt(length)},
        off <= tolerance + 1e-9 and degree < length,
        {"layers whose degree reaches the first": layers, "the second": enough},
        enough < layers,
    )


def one_channel(d: int = 3, length: int = 6, seed: int = 0, compared: int = 0) -> Finding:
    """seed: of a head with d_k = 2; compared: of the head that d channels are built for."""
    from constructions.polynomials.linear_attention import on_polynomial_s6, random_head, tokens_of

    head = random_head(d, 2, d, seed)
    network = on_polynomial_s6([random_head(d, 2, d, compared)])
    x = np.array(np.random.default_rng(0).integers(-5, 6, (1, length, d)).tolist(), dtype=object)
    answers = head(x[0])
    rank = int(np.linalg.matrix_rank(answers.astype(float)))
    right = bool((network(tokens_of(network, x))[0] == answers).all())
    channels = len(network.blocks[0].lanes_in) - 1
    return Finding(
        {f"rank of a head's outputs, d = {d}, {length} tokens": rank},
        rank > 1,
        {"channels that share B and C": channels, "equal to the head, N = d_k = 2 (1: yes)": int(right)},
        right and rank <= channels,
    )


def differences_cancel(x: float = 0.9, exponent: int = 40, dtype: str = "float32", bits: int = 24) -> Finding:
    """bits: of a float32's fraction; a rounding is at most 2^−bits."""
    number = np.dtype(dtype).type
    value = product = number(x)
    subtracted = power(value, exponent, 0, exponent)[-1]
    for _ in range(exponent - 1):
        product = number(product * value)
    exact, bound = Fraction(float(value)) ** exponent, (exponent - 1) * 2.0**-bits
    errors = [float(abs(Fraction(float(found)) - exact) / exact) for found in (subtracted, product)]
    return Finding(
        {f"relative error of {x:g}^{exponent} as a difference of sums, {dtype}": errors[0]},
        errors[0] > bound,
        {"of the form without a difference": errors[1], f"its bound, {exponent - 1} roundings": bound},
        errors[1] <= bound * 1.01,
    )


def gates_multiply(gate: int = 1, values: int = 1, length: int = 30) -> Finding:
    """A gate of degree `gate` behind a head whose values have the degree `values` (by differences on a ray)."""
    from verify.polynomial_degree import attention_layers, degree

    def head(x: list) -> int:
        return sum((2 * x[-1]) * (3 * s) * s**values for s in x)

    def gated(x: list) -> int:
        return head(x) * (x[-1] - 2 * x[0]) ** gate

    found, needed = degree(gated, 3, 2 + values + gate), length + 2
    with_gates, without = attention_layers(needed, gated=True), attention_layers(needed)
    return Finding(
        {"degree of a layer without gates": degree(head, 3, 2 + values), f"with a gate of degree {gate}": found},
        found > degree(head, 3, 2 + values),
        {f"layers for degree {needed}, gates of degree 1": with_gates, "without gates": without},
        found**with_gates >= needed > found ** (with_gates - 1) and with_gates <= without,
    )


TRUTHS = (
    Truth(
        "powers-are-gated",
        Kind.UNSAID,
        EXPRESSIVITY,
        "Proof of Theorem 2",
        "“it is evident that … the univariate polynomial can be represented by the 3rd Mamba block”; two sequences "
        "made of these go into the fourth block, and their difference is the monomial.",
        "Block 3 as described (Lemma 3, step 3) leaves x, x², …, x^P one after the other, and names no gate. Block 4 "
        "would take all of them in. Section 4.2 says in general that “each Mamba layer can isolate a specific channel "
        "at a given position”; block 3 does not use it. At which position Lemma 3 promises its output is not legible "
        "in the text we read, nor are the two sequences.",
        "A gate that is 1 at one position alone has to follow block 3.",
        powers_are_gated,
    ),
    Truth(
        "transitions-reach",
        Kind.UNSAID,
        EXPRESSIVITY,
        "Section 4.1, Theorem 2",
        "The layer has polynomials, “for instance, a second-degree Taylor approximation for softplus and exponent”, "
        "with stabilizers for values “which must be positive”.",
        "The proof of Lemma 3 needs a layer that is the identity (a transition of 0), a running sum (1), and a "
        "product of the inputs (any real number). 1 + z + z²/2 is never below 1/2.",
        "The linear polynomial of Lemma 1’s proof (“we can assume that … is linear”) has them; the other variants "
        "refuse the circuit with that reason.",
        transitions_reach,
    ),
    Truth(
        "approximation-needs-less",
        Kind.UNSAID,
        EXPRESSIVITY,
        "Lemma 1 of Appendix B.1, Section 5.2",
        "An attention head “would require at least … layers to express this function”; on labels of a classification "
        "S6 beats attention with double the layers “as suggested by Thm 1”.",
        "The argument counts degrees, so it is about equality. A label needs less: a polynomial of degree about "
        "0.7·√L is within 1/3 of AND, and one of degree 1 has its sign.",
        "Within 1/3 of AND the argument leaves about half of the layers. (Parity has degree L for a sign too.)",
        approximation_needs_less,
    ),
    Truth(
        "one-channel",
        Kind.FAILS,
        EXPRESSIVITY,
        "Lemma 2",
        "“Any function that can be expressed by a single causal linear attention head can be expressed by a single "
        "channel of S6.”",
        "A channel maps a sequence of scalars to one (2), and a head puts out vectors that mix all coordinates.",
        "d channels that share B and C, with N = d_k columns and the value matrix behind them, are the head.",
        one_channel,
    ),
    Truth(
        "differences-cancel",
        Kind.FLOATS,
        EXPRESSIVITY,
        "Lemma 3",
        "Subtracting the two channels “effectively eliminates any term except for” the power.",
        "In floats it leaves the rounding of x + … + x^P, which for |x| < 1 is larger than the rounding of x^P itself.",
        "A channel that starts with the first copy and multiplies needs no difference (`--form cancellation-free`).",
        differences_cancel,
    ),
    Truth(
        "gates-multiply",
        Kind.FAILS,
        EXPRESSIVITY,
        "Section 4.2, last paragraph",
        "“Incorporating auxiliary components into the Transformer, such as learnable PE and gating”, does not mitigate "
        "the logarithmic increase in depth, “because the expressible degree within each block remains unchanged”.",
        "A multiplicative gate raises the degree of a layer of attention from 3 to 4.",
        "The increase stays logarithmic, to the base 4 and not 3.",
        gates_multiply,
    ),
)
