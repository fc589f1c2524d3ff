"""A causal linear-attention head as one S6 layer (after paper C, Lemma 2), on the polynomial S6 and on real Mamba.

The lemma fails as printed: it says “a single channel”, and a head takes d that share S_B and S_C, for a channel gives
one coordinate of x_s (`construct truths one-channel`).

Statement. y_t = W_V Σ_{s ≤ t} <W_Q x_t, W_K x_s> x_s is an S6 layer with Ā = 1, S_B = W_K, S_C = W_Q,
and W_V as the linear map behind it.

Its layer has no discretization (Section 4.1): Ā is exactly 1 and B carries no Δ, so exp with A < 0 is no such
layer. That the state has N = d_k columns, its words do not say. On a real Mamba A_log = −200 makes exp(ΔA) = 1
and a constant Δ is divided out again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import frexp, isfinite, log2
from typing import Any, ClassVar

import numpy as np

from compiler.artifact.numeric import NumericStack, numeric_stack
from compiler.artifact.package import packaged_sizes, size_fields
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.formats import FLOAT32
from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.source import numbers
from compiler.language.types import Real
from constructions.construction import NumericConstruction, parameter
from constructions.papers import EXPRESSIVITY
from constructions.polynomials.compiler_facts import fact_of
from constructions.polynomials.polynomial_circuit import ALWAYS, Channel, Layer, PolynomialCircuit, lower
from constructions.polynomials.polynomial_s6 import PolynomialNetwork
from constructions.polynomials.polynomial_transition import Linear, Transition
from verify.forward_error import gamma
from verify.tasks.numbers import ROWS, AnyNumbers, NumberBatch, NumberTask, sizes_up_to

LINEAR = Linear()
NOT_INTEGRAL = {"exact_on_integers": None, "integer_answers": 0, "integer_answers_left_out": 0}
LARGEST_INPUT = 16.0
MOST_WIDTH = 512
LARGEST_WEIGHT = 2.0**40  # products of three, summed, stay far inside the range of float32
MOST_COMPARED, MOST_PRODUCTS = (
    2048,
    1 << 22,
)  # positions, and positions times products of x: those are Python's integers
LEAST_SCALED = 2.0**-110  # 2^-126, and 2^16 for the powers of two that scale the numbers of a block
SMALL_BESIDE_LARGEST = 2.0**-48  # a float32 number of that size, scaled into a block, keeps its digits above 2^-126
WEIGHTS_ROUNDED = 3.01 * 2.0**-24  # of a product of three weights, each rounded to float32


class WeightLost(ValueError):
    """A weight of a head that is no weight of a module."""


@dataclass(frozen=True, eq=False)
class Head:
    """W_Q, W_K: (d_k × d); W_V: (d_v × d); entries are ints, Fractions or floats."""

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray

    def __post_init__(self) -> None:
        shapes = [m.shape for m in (self.query, self.key, self.value)]
        if any(len(s) != 2 for s in shapes) or shapes[0] != shapes[1] or shapes[2][1] != shapes[0][1]:
            raise ValueError(
                f"W_Q, W_K and W_V have the shapes {', '.join(map(str, shapes))}, and d_k × "
                "d, d_k × d and d_v × d are needed."
            )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The definition, pair by pair: (t, d) to (t, d_v), in the arithmetic of x."""
        queries, keys, values = x @ self.query.T, x @ self.key.T, x @ self.value.T
        return np.array([(keys[: t + 1] @ queries[t]) @ values[: t + 1] for t in range(len(x))])

    @property
    def weights(self) -> int:
        """2 d d_k + d_v d."""
        return self.query.size + self.key.size + self.value.size


def random_head(d: int, d_k: int, d_v: int, seed: int, largest: int = 3) -> Head:
    """Nonzero integer weights in −largest … largest."""
    rng = np.random.default_rng(seed)
    matrices = (
        rng.integers(1, largest + 1, shape) * rng.choice([-1, 1], shape) for shape in ((d_k, d), (d_k, d), (d_v, d))
    )
    return Head(*(np.array(m.tolist(), dtype=object) for m in matrices))


def on_polynomial_s6(heads: list[Head], transition: Transition = LINEAR) -> PolynomialNetwork:
    """Heads after one another, a layer each; inputs are tokens x_t with a last lane that is 1.

    One head gives the d_v lanes of its output; of several, each writes its output beside what it read (the
    residual carries the constant), and the last d_v lanes are the answer.
    """
    layers = [_layer(head, i) for i, head in enumerate(heads)]
    inputs = [f"x0[{j}]" for j in range(heads[0].query.shape[1])]
    return lower(PolynomialCircuit([*inputs, "constant"], ["constant"], layers, residual=len(heads) > 1), transition)


def tokens_of(network: PolynomialNetwork, x: np.ndarray) -> np.ndarray:
    """(batch, t, d) inputs as (batch, t, lanes): the constant 1 behind them, zeros on the lanes that layers write."""
    tokens = np.zeros((*x.shape[:2], len(network.blocks[0].lanes_in)), dtype=x.dtype)
    tokens[..., : x.shape[2]] = x
    tokens[..., x.shape[2]] = 1
    return tokens


def _layer(head: Head, i: int) -> Layer:
    names = [f"x{i}[{j}]" for j in range(head.query.shape[1])]
    outputs = [f"x{i + 1}[{k}]" for k in range(head.value.shape[0])]
    channels = [
        Channel(name, {name: 1}, ALWAYS, out={outputs[k]: w for k, w in enumerate(head.value[:, j]) if w})
        for j, name in enumerate(names)
    ]

    def forms(matrix: np.ndarray) -> list[dict]:
        return [{name: w for name, w in zip(names, row, strict=True) if w} for row in matrix]

    return Layer(channels, outputs, write=forms(head.key), read=forms(head.query))


@dataclass(frozen=True)
class LinearAttention(NumericConstruction):
    """A head, random or with given weights, at every position."""

    name: ClassVar[str] = "linear-attention"
    theorem: ClassVar[str] = f"{EXPRESSIVITY}, after Lemma 2, on real Mamba"

    d: int = parameter("width of the tokens", default=4, most=MOST_WIDTH)
    d_k: int = parameter("width of keys and queries", default=4, most=256)
    d_v: int = parameter("width of the values", default=4, most=MOST_WIDTH)
    weights: str = parameter("W_Q, W_K and W_V as JSON; none: random integers", default="")
    length: int = parameter("positions", default=32, most=1 << 20)

    @classmethod
    def of(cls, head: Head, length: int) -> LinearAttention:
        """The construction of a head with given weights."""
        matrices = (head.query, head.key, head.value)
        weights = json.dumps([[[_plain(w) for w in row] for row in m] for m in matrices])
        return cls(head.query.shape[1], len(head.query), len(head.value), weights, length)

    @property
    def head(self) -> Head:
        if not self.weights:
            return random_head(self.d, self.d_k, self.d_v, self.seed)
        try:
            matrices = [np.array(m, dtype=object) for m in json.loads(self.weights)]
            held = len(matrices) == 3 and all(
                isinstance(w, (int, float)) and isfinite(w) for m in matrices for w in m.flat
            )
        except (ValueError, TypeError, AttributeError):
            held = False
        if not held:
            raise ValueError("weights must be the JSON of three matrices of finite numbers, W_Q, W_K and W_V")
        most = max((abs(w) for m in matrices for w in m.flat), default=0)
        if most > LARGEST_WEIGHT:
            raise ValueError(f"weights hold {float(most):g}, and they must be of at most {LARGEST_WEIGHT:g}")
        head = Head(*matrices)
        if (self.d, self.d_k, self.d_v) != (head.query.shape[1], len(head.query), len(head.value)):
            raise ValueError("weights are of other widths than d, d_k and d_v")
        return head

    def circuit(self) -> Circuit:
        return circuit_of(self.head, self.length, LARGEST_INPUT)

    def tasks(self) -> list[NumberTask]:
        return [AnyNumbers(self.circuit()), HeadTask(self.head, min(self.length, 16), LARGEST_INPUT)]


class HeadTask(NumberTask):
    """Outputs at every position, by the definition in Fractions with the weights that were given."""

    name = "linear-attention"
    most_random = 64

    def __init__(self, head: Head, length: int, bound: float):
        exact = np.vectorize(Fraction, otypes=[object])
        self.head = Head(*(exact(m) for m in (head.query, head.key, head.value)))
        self.sizes_of_weights = Head(*(abs(m) for m in (self.head.query, self.head.key, self.head.value)))
        self.length, self.bound = length, bound

    def describe(self) -> str:
        return (
            "the head by its definition, in Fractions with the given weights; their rounding to float32 is allowed for"
        )

    def sizes(self) -> tuple[float, ...]:
        return sizes_up_to(self.bound)

    def batch(self, rng: np.random.Generator, size: float) -> NumberBatch:
        x = np.float32(rng.uniform(-size, size, (ROWS, self.length, self.head.query.shape[1]))).astype(float)
        rows = np.vectorize(Fraction, otypes=[object])(x)
        expected = np.stack([self.head(row) for row in rows]).astype(float)
        largest = np.stack([self.sizes_of_weights(abs(row)) for row in rows]).astype(float)
        return NumberBatch({"x": x}, size, expected, WEIGHTS_ROUNDED * largest + 2.0**-52 * np.abs(expected))


def circuit_of(head: Head, length: int, bound: float) -> Circuit:
    """The head over lanes x_t, |x| ≤ bound, with its weights rounded to float32; W_V is the head of the stack."""
    for name, matrix in (("W_Q", head.query), ("W_K", head.key), ("W_V", head.value)):
        if not matrix.any():
            raise ValueError(f"{name} holds zeros only: the head is 0 for every input, and there is nothing to build.")
    query, key, value = (_floats(m) for m in (head.query, head.key, head.value))
    x = numbers(Real(-bound, bound, head.query.shape[1]), "x")
    read = memory.outer_sum(x, write=key @ x, read=query @ x, name="attention")
    return Circuit("linear-attention", value @ read, length=length)


@dataclass(frozen=True, eq=False)
class HeadOnMamba:
    """The head as one block of mamba_ssm.Mamba over the lanes x_t, |x| ≤ bound."""

    head: Head
    length: int
    bound: float = LARGEST_INPUT

    @cached_property
    def stack(self) -> NumericStack:
        """ValueError, in terms of the matrices, where a weight of a module or a bound leaves float32."""
        try:
            return numeric_stack(self.compiled)
        except WeightLost as error:
            fact = str(error)
        except CompileError as error:
            fact = f"the head does not fit: {fact_of(error)}"
        raise ValueError(f"{fact}; {_remedy(self)}.")

    @cached_property
    def compiled(self) -> Compiled:
        return compile(circuit_of(self.head, self.length, self.bound))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(batch, t, d) to (batch, t, d_v), float64 from the float32 modules."""
        return self.stack.run({"x": x})


def _remedy(model: HeadOnMamba) -> str:
    """Powers of two for the matrices, and what to set to 0 beside them, with which the head is built: that is tried."""
    exact = [np.vectorize(Fraction, otypes=[object])(m) for m in vars(model.head).values()]
    shifts = [1 - frexp(float(abs(m).max()))[1] for m in exact]
    near = [m * Fraction(2) ** k for m, k in zip(exact, shifts, strict=True)]  # the largest is from 1 to 2
    scaled = [f"{name} by 2^{k}" for name, k in zip(("W_Q", "W_K", "W_V"), shifts, strict=True) if k]
    multiply = f"multiply {', '.join(scaled)} (the answers by 2^{sum(shifts)})" if scaled else ""
    small = [abs(m) < SMALL_BESIDE_LARGEST for m in near]
    cleared, both = ([np.where(s, Fraction(0), m) for s, m in zip(small, of, strict=True)] for of in (exact, near))
    clear = f"set weights below 2^{int(log2(SMALL_BESIDE_LARGEST))} of the largest of their matrix to 0"
    for matrices, advice in ((near, multiply), (cleared, clear), (both, f"{multiply} and {clear}")):
        if advice and _fits(Head(*matrices), model):
            return advice
    return "use weights that are nearer to 1 and to one another in size"


def _fits(head: Head, model: HeadOnMamba) -> bool:
    try:
        numeric_stack(HeadOnMamba(head, model.length, model.bound).compiled)
    except (WeightLost, CompileError):
        return False
    return True


def roundings_on_mamba(head: Head, length: int) -> int:
    """At most so many roundings on the way of any term of a float32 answer.

    The error is within γ of that times Σ |terms|.

    x_s passes in_proj and silu, which is right to 4 ulp, as two halves whose absolute values add up to |x_s|: 10
    roundings, silu counted twice. W_K x_s and W_Q x_t add 2d products of halves each: 2d + 11. Δ·B·x̂ takes 3, the sum
    over positions L, C·h 2·d_k + 1, the gate 1, out_proj and W_V one for each of 2d and d terms and their products.
    """
    d, d_k = head.query.shape[1], len(head.query)
    return 10 + 2 * (2 * d + 11) + 3 + length + (2 * d_k + 1) + 1 + (2 * d + 1) + (d + 1)


def roundings_by_definition(head: Head, length: int) -> int:
    """The same for `Head.__call__`, and for the polynomial S6, whose products and sums are those of the definition."""
    d, d_k = head.query.shape[1], len(head.query)
    return 2 * (d + 1) + d_k + 3 + length + 2 * d + 2


def report(head: Head, length: int = 32, seed: int = 0) -> dict[str, Any]:
    """The head on both targets: exact in integers, within the forward error bound of the definition in float64 on real
    numbers.

    The definition is evaluated with the very weights of each target: rounded to float32 on Mamba; `given_weights` is
    Mamba against the weights as they were given, with their rounding in the bound. Of a long or wide head as many
    positions are compared as take some seconds. JSON-able.
    """
    rng = np.random.default_rng(seed)
    d = head.query.shape[1]
    compared = max(1, min(length, MOST_COMPARED, MOST_PRODUCTS // head.query.size))
    network, model = on_polynomial_s6([head]), HeadOnMamba(head, length)
    _ = model.stack  # refuses with a remedy, before anything is measured
    whole = rng.integers(-3, 4, (4, compared, d))
    real = rng.normal(size=(4, compared, d)).astype(np.float32).clip(-model.bound, model.bound).astype(float)
    given = Head(*(m.astype(float) for m in (head.query, head.key, head.value)))
    rounded = Head(*(_floats(m).astype(float) for m in (head.query, head.key, head.value)))
    in_float64 = gamma(roundings_by_definition(head, compared), "float64")
    in_float32 = gamma(roundings_on_mamba(head, compared), "float32")
    integral = all(Fraction(w).denominator == 1 for m in (head.query, head.key, head.value) for w in m.flat)
    whole = _inside(head, whole, seed) if integral else whole.astype(object)
    answers = np.stack([head(row) for row in whole])
    on_mamba, proved = model(real), model.compiled.error_bound_within(float(np.abs(real).max())) or 0.0
    return {
        "theorem": "after paper C, Lemma 2 (it says one channel): a causal linear-attention head as d channels of S6",
        "d": d,
        "d_k": len(head.query),
        "d_v": len(head.value),
        "weights": head.weights,
        "positions": length,
        "positions_compared": compared,
        "polynomial_s6": {
            "channels": d,
            "states": len(head.query),
            "exact_on_integers": bool((network(tokens_of(network, whole)) == answers).all()) if integral else None,
            **_against(given, real, network(tokens_of(network, real)).astype(float), 2 * in_float64),
        },
        "mamba": {
            **size_fields(packaged_sizes(model.compiled)[0]),
            **(_on_integers(head, whole, model(whole.astype(float)), answers) if integral else NOT_INTEGRAL),
            **_against(rounded, real, on_mamba, in_float32 + in_float64, proved),
            "given_weights": _against(given, real, on_mamba, in_float32 + in_float64 + 2 * WEIGHTS_ROUNDED, proved),
        },
    }


def _on_integers(head: Head, x: np.ndarray, computed: np.ndarray, answers: np.ndarray) -> dict[str, Any]:
    """Whether integer answers are exact where float32 adds them exactly; None where no such answer has a term."""
    units = _units(head, x)
    inside, terms = units < 2**24, units > 0
    compared = int((inside & terms).sum())
    right = bool((computed == answers.astype(float))[inside].all())
    return {
        "exact_on_integers": right if compared or not right else None,
        "integer_answers": compared,
        "integer_answers_left_out": int((~inside).sum()),
    }


def _inside(head: Head, x: np.ndarray, seed: int) -> np.ndarray:
    """Integer inputs as Python's, made smaller, then sparser, until at least half of the answers stay inside 2^24."""
    drawn = np.random.default_rng(seed).random(x.shape)
    shares = [2.0**-k for k in range(1, x.shape[2].bit_length() + 1)]
    for most, share in ((3, 1.0), (2, 1.0), (1, 1.0), *((1, share) for share in shares)):
        small = x.clip(-most, most) * (drawn < share)
        units = _units(head, small)
        if 2 * ((units < 2**24) & (units > 0)).sum() >= (units > 0).sum() > 0:
            break
    return np.array(small.tolist(), dtype=object)


def _units(head: Head, x: np.ndarray) -> np.ndarray:
    """Σ |terms| of every answer to integers, in units of which all its terms and their partial sums are multiples.

    In float64, which holds them exactly below 2^53. A term that float32 rounds, by its weight too, is beyond 2^24.
    """
    matrices = [abs(m).astype(float) / _finest(m) for m in (head.query, head.key, head.value)]
    return np.stack([Head(*matrices)(row) for row in abs(x).astype(float)])


def _finest(matrix: np.ndarray) -> int:
    """The largest power of two that divides every whole number of a matrix."""
    return min((int(w) & -int(w) for w in matrix.flat if w), default=1)


def _against(head: Head, x: np.ndarray, answers: np.ndarray, bound: float, proved: float = 0.0) -> dict[str, Any]:
    """How far answers are from the definition in float64, over Σ |terms| too; bound: the most that they may be.

    proved: what float32 answers may be off in any case, underflow included; where underflow may take more than
    roundings do, this is added, and the error over Σ |terms| is not measured. 0 where nothing underflows, as in
    float64.
    """
    majorant = Head(*map(np.abs, (head.query, head.key, head.value)))
    errors = np.abs(answers - np.stack([head(row) for row in x]))
    sums = np.stack([majorant(np.abs(row)) for row in x])
    small = (sums > 0) & (bound * sums < (_underflow(majorant, np.abs(x)) if proved else 0.0))
    limits = bound * sums + np.where(small, proved, 0.0)
    relative = (errors / np.where(sums > 0, sums, 1))[(sums > 0) & ~small]
    return {
        "answers": errors.size,
        "answers_that_underflow": int(small.sum()),
        "answers_without_terms": int((sums == 0).sum()),
        "largest_error": float(errors.max()),
        "largest_error_against_absolute_sum": float(relative.max()) if relative.size else None,
        "bound_against_absolute_sum": bound,
        "within_bound": bool((errors <= limits).all()),
    }


def _underflow(majorant: Head, sizes: np.ndarray) -> float:
    """About what a float32 answer loses where every number below 2^-126 is flushed to 0, in any scale in use.

    Of a key or a query d + 1 numbers are, of a product of three as many as there are columns.
    """
    length, d, d_k = sizes.shape[1], sizes.shape[2], len(majorant.query)
    query, key = ((sizes @ m.T).sum(axis=-1).max() for m in (majorant.query, majorant.key))
    state = length * ((d + 1) * (query + key) * sizes.max() + query * key + d_k + 2)
    return float(LEAST_SCALED * (state * majorant.value.sum(axis=1).max() + d + 1))


def _floats(matrix: np.ndarray) -> np.ndarray:
    """The float32 numbers nearest to the weights; ValueError for one that is no weight of a module."""
    near = np.vectorize(lambda w: Fraction(float(np.float32(float(w)))), otypes=[object])(matrix)
    lost = np.argwhere((matrix != 0) & ((near == 0) | ~FLOAT32.holds(near.astype(float))))
    if len(lost):
        raise WeightLost(
            f"a weight of the head is {float(matrix[tuple(lost[0])]):.3g}, whose float32 digits go below 2^-126, where "
            "backends flush them to 0"
        )
    return near


def _plain(weight) -> int | float:
    """A weight as JSON holds it: whole numbers as integers, others as float64."""
    return int(weight) if Fraction(weight).denominator == 1 else float(weight)
