"""Lemma 3 and Theorem 2 of paper C as circuits of the polynomial S6.

Statement. Four layers of the polynomial S6 with positional encoding (learnable in the paper, one-hot here) and zero
padding (on the right here) compute any multivariate polynomial of the input tokens at the last position (Theorem 2);
three compute any monomial of one variable at a chosen position (after Lemma 3: where it promises its output is lost).

What its words leave unsaid (its formulas are lost): Ā must reach 0, 1 and any real number, so neither the Taylor
variants nor the true exponential are such models (`constructions/polynomials/polynomial_transition.py` refuses them).
The powers must be gated to their one position before they are multiplied: Section 4.2 says that each layer can do so,
and block 3 as described does not. The paper says itself that SiLU is removed; what it assumes of the state size is
lost. It has biases and learnable positions. Ours: the constant of B = C = 1 is the sum of the one-hot positions;
windows of copies END where the power is read (the text that we read has lost where the paper's stand), and factors are
sorted by variable, which saves padding.

Forms: "paper" (four blocks, powers and products by telescoping sums), "cancellation-free"
(four blocks; a channel that starts with the first copy and is multiplied by the others, so
nothing is subtracted) and "three-block" (all copies of a monomial in one channel).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from constructions.polynomials.polynomial_circuit import ALWAYS, Channel, Layer, PolynomialCircuit
from constructions.polynomials.polynomial_terms import Monomial, Polynomial

FORMS = ("paper", "cancellation-free", "three-block")


def padded_length(polynomial: Polynomial, form: str = "paper") -> int:
    """T: the least length at which every window of copies starts at or after its variable (specification I.6).

    Four blocks: max(L, i_k + p_k − 1 + n − k) ≤ L + p_max − 1; three blocks: max(L, i_k − 1 + Σ_{l ≥ k} p_l) ≤ L +
    max(deg − n).
    """
    needed = [polynomial.length]
    for monomial in polynomial.monomials:
        powers = [p for _, p in monomial.factors]
        for k, (i, p) in enumerate(monomial.factors):
            rest = sum(powers[k:]) if form == "three-block" else p + len(powers) - 1 - k
            needed.append(i - 1 + rest)
    return max(needed)


def expected_widths(polynomial: Polynomial, form: str = "paper") -> list[int]:
    """Lanes before the first block and after each, by the formulas of the specification."""
    length, monomials = padded_length(polynomial, form), len(polynomial.monomials)
    used = [1 + length, len(polynomial.variables) + length]
    if form != "three-block":
        used.append(2 * polynomial.factors + length)
    return [*used, 2 * monomials + length, 1]


def theorem2(polynomial: Polynomial, form: str = "paper", residual: bool = False) -> PolynomialCircuit:
    """The circuit whose last token is the polynomial of the first `length` tokens."""
    length = padded_length(polynomial, form)
    places = [_position(t) for t in range(1, length + 1)]
    if form == "three-block":
        layers = [_selection(polynomial), _all_copies(polynomial, length), _one_product(polynomial)]
    else:
        telescoping = form == "paper"
        layers = [
            _selection(polynomial),
            _copies(polynomial, length, telescoping),
            _powers(polynomial, length, telescoping),
            _products(polynomial, telescoping),
        ]
    return PolynomialCircuit(("x", *places), places, layers, residual)


def lemma3(variable: int, power: int, coefficient, length: int, position: int, padded: int) -> PolynomialCircuit:
    """Three blocks: c·x_i^P at `position` of `padded` tokens, 0 elsewhere, for i + P − 1 ≤ position ≤ padded."""
    if not 1 <= variable <= length or power < 1:
        raise ValueError(f"x{variable}**{power} needs a variable among x1 … x{length} and an exponent of at least 1.")
    first = max(variable + power - 1, 1)
    if not first <= position <= padded:
        limit = f"at least {first}" if position < first else f"at most the padded length {padded}"
        raise ValueError(f"position {position} cannot hold x{variable}**{power}: it must be {limit}.")
    monomial = Polynomial(length, 0, (Monomial(coefficient, ((variable, power),)),))
    factor = Factor(0, 0, variable, power, position)
    places = [_position(t) for t in range(1, padded + 1)]
    layers = [
        _selection(monomial),
        Layer(list(_window_copies(factor, telescoping=True)), [factor.copies, factor.shorter]),
        Layer(
            [
                Channel("sum", {factor.copies: 1}, {"sum": 1}, {_position(position): 1}, {"power": coefficient}),
                Channel(
                    "shorter", {factor.shorter: 1}, {"shorter": 1}, {_position(position): 1}, {"power": -coefficient}
                ),
            ],
            ["power"],
        ),
    ]
    return PolynomialCircuit(("x", *places), places, layers)


@dataclass(frozen=True)
class Factor:
    """x_i^p as factor k of monomial m, to be read at position `at`."""

    m: int
    k: int
    variable: int
    power: int
    at: int

    @property
    def copies(self) -> str:
        """The lane with p copies of x_i at the positions at − p + 1 … at."""
        return f"copies[{self.m}][{self.k}]"

    @property
    def shorter(self) -> str:
        """The lane with the copies except the first, or with the first alone in the forms without cancellation."""
        return f"shorter[{self.m}][{self.k}]"


def _factors(polynomial: Polynomial, length: int) -> Iterator[Factor]:
    """Factor k of n is read at T − n + k (1-based k), so that the n powers end in a row at T."""
    for m, monomial in enumerate(polynomial.monomials):
        count = len(monomial.factors)
        for k, (i, p) in enumerate(monomial.factors):
            yield Factor(m, k, i, p, length - count + k + 1)


def _position(t: int) -> str:
    return f"p[{t}]"


def _window(first: int, last: int) -> dict[str, int]:
    """The gate that is 1 from the first position to the last."""
    return {_position(t): 1 for t in range(first, last + 1)}


def _selection(polynomial: Polynomial) -> Layer:
    """Block 1: z_i = x_t·1[t = i]."""
    names = {i: f"z[{i}]" for i in polynomial.variables}
    return Layer([Channel(z, {"x": 1}, {}, {_position(i): 1}, {z: 1}) for i, z in names.items()], list(names.values()))


def _window_copies(factor: Factor, telescoping: bool) -> Iterator[Channel]:
    """Running sums of z_i (x_i from position i on) behind window gates."""
    first = factor.at - factor.power + 1
    seconds = (first + 1, factor.at) if telescoping else (first, first)
    for lane, window in ((factor.copies, (first, factor.at)), (factor.shorter, seconds)):
        yield Channel(lane, {f"z[{factor.variable}]": 1}, ALWAYS, _window(*window), {lane: 1})


def _copies(polynomial: Polynomial, length: int, telescoping: bool) -> Layer:
    """Block 2: the copies of every factor."""
    channels = [c for factor in _factors(polynomial, length) for c in _window_copies(factor, telescoping)]
    return Layer(channels, [c.name for c in channels])


def _powers(polynomial: Polynomial, length: int, telescoping: bool) -> Layer:
    """Block 3: x_i^p at one position per factor, merged into the lanes s and s' of its monomial (Eq 31, 32).

    telescoping: h = u(h + 1) sums x + … + x^p, the shorter window sums one power less, and the
    difference is x^p. Otherwise: h = u·h + v with v the first copy is x^p itself.
    """
    channels = []
    for factor in _factors(polynomial, length):
        lanes = [f"s[{factor.m}]"]
        if (factor.k > 0) == telescoping:
            lanes.append(f"shorter_s[{factor.m}]")
        gate = {_position(factor.at): 1}
        up, down = factor.copies, factor.shorter
        if telescoping:
            channels.append(Channel(up, {up: 1}, {up: 1}, gate, dict.fromkeys(lanes, 1)))
            channels.append(Channel(down, {down: 1}, {down: 1}, gate, dict.fromkeys(lanes, -1)))
        else:
            channels.append(Channel(up, {up: 1}))
            channels.append(Channel(down, {down: 1}, {up: 1}, gate, dict.fromkeys(lanes, 1)))
    return Layer(channels, [name for m in range(len(polynomial.monomials)) for name in (f"s[{m}]", f"shorter_s[{m}]")])


def _products(polynomial: Polynomial, telescoping: bool) -> Layer:
    """Block 4: H = s(H + 1) gives Σ_k v_n…v_k, H' without k = 1, and their difference is the monomial (Eq 30)."""
    channels = []
    for m, monomial in enumerate(polynomial.monomials):
        s, shorter, c = f"s[{m}]", f"shorter_s[{m}]", monomial.coefficient
        channels.append(Channel(s, {s: 1}, {s: 1} if telescoping else {}, out={"output": c} if telescoping else {}))
        channels.append(
            Channel(
                shorter, {shorter: 1}, {shorter: 1} if telescoping else {s: 1}, out={"output": -c if telescoping else c}
            )
        )
    return Layer(channels, ["output"], constant={"output": polynomial.constant} if polynomial.constant else {})


def _all_copies(polynomial: Polynomial, length: int) -> Layer:
    """Block 2 of the three-block form: the copies of all factors of a monomial in a row that ends at T, and the first
    copy alone.
    """
    channels = []
    for m, monomial in enumerate(polynomial.monomials):
        last = length
        for i, p in reversed(monomial.factors):
            channels.append(
                Channel(f"copies[{m}][{i}]", {f"z[{i}]": 1}, ALWAYS, _window(last - p + 1, last), {f"s[{m}]": 1})
            )
            last -= p
        first = monomial.factors[0][0]
        channels.append(
            Channel(f"first[{m}]", {f"z[{first}]": 1}, ALWAYS, _window(last + 1, last + 1), {f"first_s[{m}]": 1})
        )
    return Layer(channels, [name for m in range(len(polynomial.monomials)) for name in (f"s[{m}]", f"first_s[{m}]")])


def _one_product(polynomial: Polynomial) -> Layer:
    """Block 3 of the three-block form: h = s·h + first copy is the product of all copies at T."""
    channels = []
    for m, monomial in enumerate(polynomial.monomials):
        s, first = f"s[{m}]", f"first_s[{m}]"
        channels.append(Channel(s, {s: 1}))
        channels.append(Channel(first, {first: 1}, {s: 1}, out={"output": monomial.coefficient}))
    return Layer(channels, ["output"], constant={"output": polynomial.constant} if polynomial.constant else {})
