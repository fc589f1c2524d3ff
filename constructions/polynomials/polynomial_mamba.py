"""Polynomials on unmodified Mamba blocks (beyond paper C, whose proofs have no SiLU, exp or softplus).

Inputs: at position t the number x_t and the one-hot of t. One block gathers: a latch per
variable keeps x_i from position i on. Then products, all at the last position:

    "binary":  D path times gate, two factors per block, 1 + ⌈log2 degree⌉ blocks; every product
               is right within 12 units of 2^−24 relative, whatever its size
    "ternary": Δ times x̂ times gate, three factors per block, 1 + ⌈log3 degree⌉ blocks; the factor
               at Δ passes softplus and is right within 2^−19/R absolutely (R: up to 2^60, as the
               range leaves room), so that very small numbers lose their relative accuracy there

Both are exact on integers while every partial product stays below 2^24.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, log
from typing import Any, ClassVar, Literal

import numpy as np

from compiler.artifact.numeric import NumericStack, numeric_stack
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.formats import FLOAT32
from compiler.gadgets.scaled_sum import step_rate
from compiler.language.circuit import Circuit
from compiler.language.source import numbers
from compiler.language.stream import Stream, constant
from compiler.language.types import OneHot, Real
from compiler.language.words import latch_bank, scaled_sum
from constructions.construction import NumericConstruction, parameter
from constructions.polynomials.compiler_facts import fact_of
from constructions.polynomials.polynomial_expression import parse_polynomial
from constructions.polynomials.polynomial_task import PolynomialTask
from constructions.polynomials.polynomial_terms import Monomial, Polynomial
from verify.tasks.numbers import AnyNumbers, NumberTask

ARITY = {"binary": 2, "ternary": 3}
FORM_OF = {"2": "binary", "3": "ternary"}  # by --factors
PRODUCT_ERROR = 12 * 2.0**-24  # relative, of a binary product; see `forward_error`
TRIPLE_ERROR = 2.0**-19
UNDERFLOW = 2.0**-124  # what a product can lose where its terms leave the normal numbers
LARGEST = {
    "binary": 90,
    "ternary": 80,
}  # log2 of the largest monomial: S² ≥ 2^14 (and R ≥ 2^20) times that must stay below 2^127
Tree = int | tuple  # a variable, or the trees of the factors of a product


def product_tree(variables: tuple[int, ...], arity: int) -> Tree:
    """The product of these variables (with repetitions), ⌈log_arity n⌉ products deep: nearly equal parts."""
    if len(variables) == 1:
        return variables[0]
    parts = min(arity, len(variables))
    cuts = [ceil(k * len(variables) / parts) for k in range(parts + 1)]
    return tuple(product_tree(variables[a:b], arity) for a, b in zip(cuts, cuts[1:], strict=False))


def folded(tree: Tree, leaf: Callable[[int], Any], join: Callable[..., Any], known: dict) -> Any:
    """The tree with every variable and every product replaced; equal subtrees once (`known`)."""
    if tree not in known:
        known[tree] = leaf(tree) if isinstance(tree, int) else join(*(folded(part, leaf, join, known) for part in tree))
    return known[tree]


def depth(polynomial: Polynomial, form: str = "binary") -> int:
    """Blocks: one to gather, ⌈log_arity degree⌉ to multiply; none for a constant."""
    deepest, arity = polynomial.degree, ARITY[form]
    levels, reach = 0, 1
    while reach < deepest:
        levels, reach = levels + 1, reach * arity
    return 1 + levels if deepest else 0


@dataclass(frozen=True)
class PolynomialCircuit(NumericConstruction):
    """A polynomial of x_1 … x_L at the last of L positions."""

    name: ClassVar[str] = "polynomial"
    theorem: ClassVar[str] = "beyond On the Expressivity of Selective State-Space Layers, Theorem 2: on real Mamba"

    expression: str = parameter("the polynomial", default="5*x1**2*x3**3 - x2 + 7")
    length: int = parameter("number of inputs x1 … xL (0: as many as occur)", default=0)
    factors: Literal["2", "3"] = parameter("factors per product; 3 needs fewer blocks", default="2")

    @property
    def form(self) -> str:
        return FORM_OF[self.factors]

    @property
    def polynomial(self) -> Polynomial:
        """As it is asked for; the weights hold `rounded` coefficients."""
        return parse_polynomial(self.expression, self.length)

    def circuit(self) -> Circuit:
        p = rounded(self.polynomial)
        return circuit_of(p, self.form, default_bound(p, self.form))

    def tasks(self) -> list[NumberTask]:
        p = self.polynomial
        return [AnyNumbers(self.circuit()), PolynomialTask(p, rounded(p), default_bound(rounded(p), self.form))]

    def asks_where(self) -> str:
        return f"at position {self.polynomial.length}, where the positions are the one-hot of 1, 2, 3, …"


@dataclass(frozen=True, eq=False)
class PolynomialOnMamba:
    """A polynomial compiled for mamba_ssm.Mamba.

    polynomial: with the coefficients that the weights hold, float32 numbers; asked: with those that were asked for.
    bound:      the largest |x_i| for which nothing overflows.
    """

    polynomial: Polynomial
    form: str
    bound: float
    compiled: Compiled
    asked: Polynomial

    @cached_property
    def stack(self) -> NumericStack:
        return numeric_stack(self.compiled)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The answers (batch,) of the real modules for inputs (batch, L), as float64."""
        samples, length = np.asarray(x, dtype=float)[..., None], self.polynomial.length
        values = {"x": samples, "position": np.broadcast_to(np.eye(length), (len(samples), length, length))}
        read = {record.name: values[record.name] for record in self.stack.inputs}
        return self.stack.run(read, samples.shape[:2])[:, -1, 0]

    @cached_property
    def rate(self) -> float:
        """The least R of the scaled sums (ternary form): the scale of the Δ port."""
        sums = [s for s in self.compiled.core.streams if s.operation.halved]
        return min((step_rate(s, self.compiled.domains) for s in sums), default=float("inf"))

    def forward_error(self, x: np.ndarray, lost: float = UNDERFLOW) -> float:
        """A bound on |answer − p(x)| for one input (L,): the errors of each product, carried through the tree and the
        sum.

        Binary: silu is right within 4 units u = 2^−24, the four terms of a product have one sign, so with the
        products, their sum and the difference of the halves it is right within 12u. Ternary: the same, and
        softplus(R·w) − softplus(−R·w) is off by u·(|R·w| + ln 2) a few times.

        lost: what underflow takes of a number that is read, of a product and of a term of the sum; 0 leaves it out.
        """
        known: dict = {}
        value_and_error = [
            folded(t, lambda i: _read(float(x[i - 1]), lost), lambda *f: self._joined(lost, *f), known)
            for t in self.trees
        ]
        sizes = [
            abs(float(m.coefficient)) * (v + e)
            for m, (v, e) in zip(self.polynomial.monomials, value_and_error, strict=True)
        ]
        errors = sum(
            abs(float(m.coefficient)) * e for m, (_, e) in zip(self.polynomial.monomials, value_and_error, strict=True)
        )
        total = sum(sizes) + abs(float(self.polynomial.constant))
        return errors + (len(sizes) + 2) * (2.0**-23 * total + lost)

    def _joined(self, lost: float, *factors: tuple[float, float]) -> tuple[float, float]:
        exact = float(np.prod([v for v, _ in factors]))
        reached = float(np.prod([v + e for v, e in factors]))
        if len(factors) == 2:
            return exact, reached - exact + PRODUCT_ERROR * reached + lost
        (a, ea), (b, eb), (c, ec) = factors
        return exact, reached - exact + TRIPLE_ERROR * (a + ea) * (c + ec) * (b + eb + 1 / self.rate) + lost

    @cached_property
    def trees(self) -> list[Tree]:
        return [_tree(m.factors, self.form) for m in self.polynomial.monomials]


def _read(x: float, lost: float) -> tuple[float, float]:
    """A number as it is read, and how far that may be off."""
    return abs(x), 2.0**-21 * abs(x) + lost


def _tree(factors: tuple[tuple[int, int], ...], form: str) -> Tree:
    return product_tree(tuple(i for i, p in factors for _ in range(p)), ARITY[form])


def default_bound(polynomial: Polynomial, form: str = "binary") -> float:
    """The largest power of two up to 2^30 of which no monomial, nor its coefficient times it, leaves the range."""
    largest = max((abs(m.coefficient) for m in polynomial.monomials), default=Fraction(1))
    room = LARGEST[form] - max(0, ceil(log(max(float(largest), 1.0), 2)))
    return 2.0 ** max(0, min(30, floor(room / max(polynomial.degree, 1))))


def build_on_mamba(polynomial: Polynomial, form: str = "binary", bound: float = 0.0) -> PolynomialOnMamba:
    """Compile a polynomial; CompileError where |x| ≤ bound (default: as large as fits) could overflow."""
    if form not in ARITY:
        raise ValueError(f"form {form!r} is unknown on Mamba; it must be one of {', '.join(ARITY)}.")
    held = rounded(polynomial)
    largest = bound or default_bound(held, form)
    try:
        compiled = compile(circuit_of(held, form, largest))
    except CompileError as error:
        if bound:
            raise
        raise ValueError(f"the polynomial does not fit: {fact_of(error)}; {_remedy(held, form)}") from None
    return PolynomialOnMamba(held, form, largest, compiled, polynomial)


def _remedy(polynomial: Polynomial, form: str) -> str:
    """How much smaller coefficients compile, which is tried; inputs are of at least 1 already."""
    for k in (1, 2, 4, 8, 16, 32, 64):
        scale = Fraction(1, 2**k)
        terms = tuple(Monomial(scale * m.coefficient, m.factors) for m in polynomial.monomials)
        try:
            smaller = rounded(Polynomial(polynomial.length, scale * polynomial.constant, terms))
            compile(circuit_of(smaller, form, default_bound(smaller, form)))
        except ValueError:
            continue
        return f"divide its coefficients by 2^{k}, which would do, or use --arch s6"
    return "no coefficients smaller by 2^1 to 2^64 would do; use fewer factors, or --arch s6"


def circuit_of(polynomial: Polynomial, form: str, bound: float) -> Circuit:
    """The circuit for inputs of at most `bound`; its coefficients must be float32 numbers."""
    x = numbers(Real(-bound, bound), "x")
    places = numbers(OneHot(polynomial.length), "position")
    return Circuit("polynomial", _output(polynomial, form, x, places), length=polynomial.length)


def rounded(polynomial: Polynomial) -> Polynomial:
    """The polynomial whose coefficients are the float32 numbers nearest to the given ones."""
    return Polynomial(
        polynomial.length,
        _float32(polynomial.constant),
        tuple(Monomial(_float32(m.coefficient), m.factors) for m in polynomial.monomials),
    )


def _float32(number: Fraction) -> Fraction:
    """ValueError for a coefficient that is no weight: one that float32 rounds to 0, or whose last bit is subnormal."""
    if abs(number) >= 2**127:
        raise ValueError(
            f"a coefficient of {len(str(abs(number.numerator // number.denominator)))} "
            "digits is beyond the range of float32."
        )
    near = np.float32(float(number))
    if number and not (near and FLOAT32.holds(near.astype(float))):
        raise ValueError(
            f"the coefficient {_short(number)} is too small: its float32 digits go below 2^-126, where backends flush "
            "them to 0; multiply the polynomial by a power of two (sizes of at least 2^-103 are always taken), or use "
            "--arch s6."
        )
    return Fraction(float(near))


def _short(number: Fraction) -> str:
    """About what a small number is, whatever its size: 1e-60."""
    return f"{Decimal(number.numerator) / Decimal(number.denominator):.3g}"


def _output(polynomial: Polynomial, form: str, x: Stream, places: Stream) -> Stream:
    gathered = _gathered(polynomial, form, x, places)
    known: dict = {}
    output = constant(polynomial.constant)
    for monomial in polynomial.monomials:
        product = folded(_tree(monomial.factors, form), lambda i: gathered[i], _product, known)
        output = output + monomial.coefficient * product
    return output.named("output")


def _gathered(polynomial: Polynomial, form: str, x: Stream, places: Stream) -> dict[int, Stream]:
    """x_i from position i on; for scaled sums 0 before the last position, because they add up the past."""
    used = list(polynomial.variables)
    if not used:
        return {}
    bank = latch_bank(x, places[[i - 1 for i in used]])
    if form == "ternary":
        bank = bank * places[polynomial.length - 1]
    return {i: bank[k].named(f"x{i}") for k, i in enumerate(used)}


def _product(*factors: Stream) -> Stream:
    return factors[0] * factors[1] if len(factors) == 2 else scaled_sum(factors[0], factors[1], factors[2])
