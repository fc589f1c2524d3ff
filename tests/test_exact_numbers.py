"""Numbers of every size: a random circuit over number streams equals plain Fractions on the real modules, or is
refused.

The oracle is a list of Fractions per stream, computed beside the circuit; nothing of the compiler is
asked. Coefficients are huge, tiny, non-dyadic floats, and multiples whose common step is no power of two.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.artifact.model import Stack
from compiler.artifact.package import bare, language_model
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens, numbers
from compiler.language.stream import Stream
from compiler.language.types import Real
from compiler.language.words import concatenate, latch, lti
from tests.spread import some

ALPHABET = Alphabet.of("a", "b", "c")
LENGTH = 12
TOKENS = np.random.default_rng(0).integers(0, 3, (3, LENGTH))
TOKENS[0] = 0  # nothing but the first letter: sums grow fastest
Values = list[list[Fraction]]  # (sequence, position)
Choose = Callable[[int], int]

STEPS = (1, 1, 1, 2, 3, 5, 7, 10, 11, 1000, 4097, 65_537, 999_983, 2**20, 2**24 - 1, 2**27 + 1, 2**52 + 1)
FACTORS = (1, -1, 2, 3, -5, 7, 621, 4099, 2**20, 2**54, 2**60, -(2**60), 2**24 + 1)
FRACTIONS = (*(Fraction(1, 2**k) for k in (1, 2, 5, 20, 54, 60)), Fraction(3, 8), Fraction(0.1), Fraction(1 / 3))


class Pool:
    """Streams of one lane with what they mean."""

    def __init__(self, choose: Choose):
        self.choose = choose
        self.known = [self._letters() for _ in range(1 + choose(2))]

    def one_of(self, options):
        return options[self.choose(len(options))]

    def any(self) -> tuple[Stream, Values]:
        return self.known[len(self.known) - 1 - self.choose(len(self.known))]

    def _letters(self) -> tuple[Stream, Values]:
        step = self.one_of(STEPS)
        table = [step * self.one_of((0, 1, 1, 2, 3, -1)) for _ in range(3)]
        number = Tokens(ALPHABET).number(dict(zip("abc", table, strict=True)))
        return number, [[Fraction(table[t]) for t in sequence] for sequence in TOKENS]

    def factor(self) -> Fraction:
        return Fraction(self.one_of((*FACTORS, *FRACTIONS)))

    def grow(self) -> None:
        self.known.append(self.one_of(_RULES)(self))


def _zip(f, *values: Values) -> Values:
    return [[f(*row) for row in zip(*rows, strict=True)] for rows in zip(*values, strict=True)]


def _past(values: Values, k: int) -> Values:
    return [([Fraction(0)] * k + row)[: len(row)] for row in values]


def _sum(pool: Pool):
    (a, x), (b, y) = pool.any(), pool.any()
    return a + b, _zip(lambda u, v: u + v, x, y)


def _difference(pool: Pool):
    (a, x), (b, y), k = pool.any(), pool.any(), pool.factor()
    return k * a - b, _zip(lambda u, v: k * u - v, x, y)


def _multiple(pool: Pool):
    (a, x), k = pool.any(), pool.factor()
    return k * a, _zip(lambda u: k * u, x)


def _there_and_back(pool: Pool):
    """k·x + x − k·x: what float64 loses where k is large."""
    (a, x), k = pool.any(), Fraction(pool.one_of(FACTORS))
    return (k * a + a) - k * a, x


def _offset(pool: Pool):
    (a, x), k = pool.any(), pool.one_of((1, -1, 3, 2**10, 2**24 + 1, 2**53, Fraction(1, 4)))
    return a + k, _zip(lambda u: u + k, x)


def _shift(pool: Pool):
    (a, x), k = pool.any(), pool.one_of((1, 2, 5))
    return a.shift(k), _past(x, k)


def _running(pool: Pool):
    a, x = pool.any()
    return a.cumsum(), [[sum(row[: t + 1], Fraction(0)) for t in range(len(row))] for row in x]


def _rectified(pool: Pool):
    a, x = pool.any()
    return a.relu(), _zip(lambda u: max(u, Fraction(0)), x)


def _product(pool: Pool):
    (a, x), (b, y) = pool.any(), pool.any()
    return a * b, _zip(lambda u, v: u * v, x, y)


def _filtered(pool: Pool):
    (a, x), taps = pool.any(), [pool.factor() for _ in range(1 + pool.choose(3))]
    rows = _zip(
        lambda *us: sum((k * u for k, u in zip(taps, us, strict=True)), Fraction(0)),
        *(_past(x, k) for k in range(len(taps))),
    )
    return lti(a, taps), rows


def _above(pool: Pool):
    (a, x), k = pool.any(), pool.one_of((0, 1, 20, 2**20, 2**53, 2**54 + 2**28))
    return a > k, _zip(lambda u: Fraction(u > k), x)


def _held(pool: Pool):
    (a, x), when = pool.any(), Tokens(ALPHABET).is_in(["a"])
    rows = []
    for row, letters in zip(x, TOKENS, strict=True):
        held = [Fraction(0)]
        for value, letter in zip(row, letters, strict=True):
            held.append(value if letter == 0 else held[-1])
        rows.append(held[1:])
    return latch(a, when), rows


_RULES = (
    _sum,
    _difference,
    _multiple,
    _there_and_back,
    _offset,
    _shift,
    _running,
    _rectified,
    _product,
    _filtered,
    _above,
    _held,
)


def build(choose: Choose) -> tuple[Circuit, np.ndarray]:
    """A circuit with three outputs, and what they are: (sequence, position, output) Fractions."""
    pool = Pool(choose)
    for _ in range(1 + choose(6)):
        pool.grow()
    lanes = [pool.known[-1], pool.any(), pool.any()]
    mix = [
        [pool.one_of((1, 1, 0, -1, 3, Fraction(1, 2))) if i == j else pool.one_of((0, 0, 0, 1)) for j in range(3)]
        for i in range(3)
    ]
    values = np.array([v for _, v in lanes], dtype=object)
    output = np.array(mix, dtype=object) @ concatenate(*(s for s, _ in lanes))
    expected = np.einsum("ij,jst->sti", np.array(mix, dtype=object), values)
    return Circuit("numbers", output, InputLanguage.everything(ALPHABET, LENGTH)), expected


def verdict(choose: Choose, target: str, dtype: str) -> str:
    """ "refused", "exact" or what is wrong."""
    try:
        circuit, expected = build(choose)
        compiled = compile(circuit, target, dtype)
    except (CompileError, ValueError):
        return "refused"
    models = [("bare", lambda: bare(compiled)), ("language model", lambda: _packaged(compiled))]
    for name, package in models:
        try:
            model = package()
        except CompileError:
            continue
        with torch.no_grad():
            logits = model.to(getattr(torch, dtype))(torch.from_numpy(TOKENS)).double().numpy()[..., :3]
        if not np.isfinite(logits).all() or not (np.vectorize(Fraction, otypes=[object])(logits) == expected).all():
            return f"{name} on {target} in {dtype}: {circuit.output.label}"
    return "exact" if (compiled.interpret(TOKENS) == expected).all() else f"the interpreter: {circuit.output.label}"


def _packaged(compiled) -> Stack:
    model = language_model(compiled)
    return Stack.from_language_model(model.config, model.tensors)


@pytest.mark.parametrize(("target", "dtype"), [("mamba", "float32"), ("mamba2", "float32"), ("mamba", "bfloat16")])
@settings(max_examples=len(some(range(25), 0.05)), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_exact_or_refused(target: str, dtype: str, data):
    assert verdict(lambda n: data.draw(st.integers(0, n - 1)), target, dtype) in ("exact", "refused")


def test_most_of_the_generator_is_not_refused():
    """A test that only meets refusals shows nothing."""
    rng = np.random.default_rng(0)
    found = [verdict(lambda n: int(rng.integers(n)), "mamba", "float32") for _ in some(range(40), 0.04)]
    assert set(found) == {"exact", "refused"} and found.count("exact") >= len(found) / 5


eighth = Tokens(ALPHABET).rows(["a"], np.array([[0.125]]), "eighth")
HUGE = [
    ((eighth + 2**60) - 2**60, [Fraction(1, 8), Fraction(0)]),
    ((eighth * 2**60 + Fraction(1, 8)) - eighth * 2**60, [Fraction(1, 8), Fraction(1, 8)]),
    (lti(eighth, [2**60, 1]) - lti(eighth, [2**60, 0]), [Fraction(0), Fraction(1, 8)]),
]


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("stream, wanted", HUGE, ids=["sum", "scaled", "filter"])
def test_a_fraction_beside_a_huge_number_is_not_rounded(stream: Stream, wanted: list[Fraction], target: str):
    """Neither by the interpreter, which floats of a table once made round, nor by the model."""
    circuit = Circuit("huge", stream, InputLanguage.everything(ALPHABET, 4))
    tokens = np.array([[0, 1]])
    assert interpret(circuit, tokens)[stream].ravel().tolist() == wanted
    assert bare(compile(circuit, target))(torch.tensor(tokens)).ravel().tolist() == wanted


def test_a_numeric_input_is_interpreted_as_the_fraction_that_it_is():
    x = numbers(Real(-1, 1))
    stream = (x + 2**60) - 2**60
    circuit = Circuit("huge", stream, length=4)
    assert interpret(circuit, inputs={x: np.array([[[0.125], [-0.5]]])})[stream].ravel().tolist() == [0.125, -0.5]
