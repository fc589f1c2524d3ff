"""Real numbers within their proved bound: every operation on the real module, against plain double precision."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from compiler.artifact.numeric import numeric_stack
from compiler.driver import compile
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.reals import choose, differs, exceeds
from compiler.language.source import numbers
from compiler.language.types import Bool, Int, Real
from compiler.language.words import (
    concatenate,
    dot,
    fading_sum,
    latch,
    maximum,
    minimum,
    scaled_sum,
    select,
    silu_product,
    sum_where,
)
from tests.flushed import flushed

LENGTH, BATCH = 40, 64
A, B, C = (numbers(Real(-8, 8, 2), name) for name in "abc")
KEY, QUERY = (numbers(Real(-1, 1, 3), name) for name in ("key", "query"))
FLAG = numbers(Bool(), "flag")
GAP = Fraction(1, 8)

MOST = {"memory": 0.1, "memory with sharp keys": 0.5, "scaled sum": 3.0}  # sums of products of three over the past

Value = dict[str, np.ndarray]


def _recurrence(value: np.ndarray, decay: float) -> np.ndarray:
    out, state = np.empty_like(value), np.zeros_like(value[:, 0])
    for t in range(value.shape[1]):
        state = decay * state + value[:, t]
        out[:, t] = state
    return out


def _attention(v: Value, decay: float) -> np.ndarray:
    scores = np.einsum("btn,bsn->bts", v["query"], v["key"])
    lag = np.arange(LENGTH)[:, None] - np.arange(LENGTH)
    return np.einsum("bts,bsw->btw", scores * np.where(lag >= 0, decay ** np.maximum(lag, 0), 0), v["a"])


def _sharp_attention(v: Value) -> np.ndarray:
    return _attention(v | {"key": 4 * v["key"] - 1}, 1.0)


def _latched(v: Value) -> np.ndarray:
    out, held = np.empty_like(v["a"]), np.zeros_like(v["a"][:, 0])
    for t in range(LENGTH):
        held = np.where(v["flag"][:, t] > 0, v["a"][:, t], held)
        out[:, t] = held
    return out


def _ramp(x: np.ndarray) -> np.ndarray:
    return np.clip(x, 0, 1)


WORDS: dict[str, tuple[object, Callable[[Value], np.ndarray]]] = {
    "relu": (A.relu(), lambda v: np.maximum(v["a"], 0)),
    "abs": (abs(A - B), lambda v: np.abs(v["a"] - v["b"])),
    "min": (minimum(A, B), lambda v: np.minimum(v["a"], v["b"])),
    "max": (maximum(A, B), lambda v: np.maximum(v["a"], v["b"])),
    "min of three": (minimum(minimum(A, B), C), lambda v: np.minimum(np.minimum(v["a"], v["b"]), v["c"])),
    "clip": (A.clip(-1, 2), lambda v: np.clip(v["a"], -1, 2)),
    "select": (select(FLAG, A, B), lambda v: np.where(v["flag"] > 0, v["a"], v["b"])),
    "product": (A * B, lambda v: v["a"] * v["b"]),
    "product by silu": (silu_product(A, B, 1024), lambda v: v["a"] * v["b"]),
    "product of rectified": (A.relu() * B, lambda v: np.maximum(v["a"], 0) * v["b"]),
    "running sum": (A.cumsum(), lambda v: v["a"].cumsum(axis=1)),
    "latch": (latch(A, FLAG) * B, lambda v: _latched(v) * v["b"]),
    "inner product": (dot(A, B), lambda v: (v["a"] * v["b"]).sum(-1, keepdims=True)),
    "exceeds": (exceeds(A, B, GAP), lambda v: _ramp((v["a"] - v["b"]) * 8)),
    "differs": (differs(A, B, GAP), lambda v: _ramp(np.abs(v["a"] - v["b"]) * 8)),
    "choose": (choose(C, A, B, GAP), lambda v: v["b"] + _ramp((v["c"] * 8 + 1) / 2) * (v["a"] - v["b"])),
    "memory": (memory.outer_sum(A, KEY, QUERY), lambda v: _attention(v, 1.0)),
    "memory with sharp keys": (memory.outer_sum(A, 4 * KEY - 1, QUERY), _sharp_attention),
    "sum where": (sum_where(A, FLAG), lambda v: (v["a"] * v["flag"]).cumsum(axis=1)),
    "scaled sum": (scaled_sum(A, B, C), lambda v: (v["a"] * v["b"]).cumsum(axis=1) * v["c"]),
    "fading sum": (fading_sum(A, Fraction(9, 10)), lambda v: _recurrence(v["a"], 0.9)),
    "fading memory": (memory.outer_sum(A, KEY, QUERY, decay=Fraction(3, 4)), lambda v: _attention(v, 0.75)),
    "rectified fading sum": (fading_sum(A.relu(), 0.5), lambda v: _recurrence(np.maximum(v["a"], 0), 0.5)),
}


def _inputs(seed: int) -> dict:
    rng = np.random.default_rng(seed)
    spread = 2.0 ** rng.integers(-12, 1, (BATCH, LENGTH, 1))
    values = {}
    for stream in (A, B, C, KEY, QUERY):
        most = stream.type.hi
        drawn = rng.uniform(-most, most, (BATCH, LENGTH, stream.width)) * spread
        values[stream] = drawn.astype(np.float32).astype(float)
    values[FLAG] = rng.integers(0, 2, (BATCH, LENGTH, 1)).astype(float)
    return values


@pytest.mark.parametrize("name", WORDS)
def test_the_module_is_within_the_bound(name: str) -> None:
    stream, oracle = WORDS[name]
    made = compile(Circuit(name, stream, length=LENGTH))
    values = _inputs(1)
    expected = oracle({s.name: v for s, v in values.items()})
    error = np.abs(numeric_stack(made).run(values) - expected).max()
    assert made.error_bound is not None
    assert error <= made.error_bound
    assert made.error_bound <= MOST.get(name, 3e-2), "a bound that says nothing"


@pytest.mark.parametrize("relation", ["exceeds", "differs"])
def test_decisions_are_exact_outside_of_the_gap(relation: str) -> None:
    word = {"exceeds": exceeds, "differs": differs}[relation]
    rng = np.random.default_rng(2)
    b = rng.uniform(-7, 7, (BATCH, LENGTH, 2)).astype(np.float32).astype(float)
    apart = rng.choice([-1, 0, 0.126, 0.5, 1], b.shape) * (1 if relation == "exceeds" else rng.choice([-1, 1], b.shape))
    a = (b + apart).astype(np.float32).astype(float)
    made = compile(Circuit(relation, word(A, B, GAP), length=LENGTH))
    assert len(made.blocks) == 2
    expected = a > b if relation == "exceeds" else a != b
    assert np.array_equal(numeric_stack(made).run({A: a, B: b}), expected.astype(float))


def test_integers_need_no_bound_and_what_has_no_rule_claims_none() -> None:
    n = numbers(Int(-9, 9), "n")
    assert compile(Circuit("exact", minimum(n, 3), length=5)).error_bound == 0
    recalled = memory.outer_sum(A, KEY, QUERY)
    assert compile(Circuit("memory of another arithmetic", recalled, length=5)).error_bound is not None
    assert compile(Circuit("no rule", latch(A, FLAG, first=True), length=5)).error_bound is not None


@pytest.mark.parametrize("late", [0, 2])
def test_integers_beside_real_numbers_add_nothing_to_the_bound(late: int) -> None:
    real, count = fading_sum(FLAG, Fraction(1, 3)), 2**18 * FLAG.cumsum()
    both = compile(Circuit("both", concatenate(real, count).shift(late), length=LENGTH))
    alone = compile(Circuit("alone", real.shift(late), length=LENGTH))
    assert both.error_bound == alone.error_bound < 1e-4
    flags = _inputs(4)[FLAG]
    found = numeric_stack(both).run({FLAG: flags})
    counted = np.pad(2**18 * np.cumsum(flags, axis=1), [(0, 0), (late, 0), (0, 0)])[:, :LENGTH]
    assert np.array_equal(found[..., 1:], counted), "bit for bit"


@pytest.mark.parametrize("reach", [2.0**-8, 1.0, 8.0])
@pytest.mark.parametrize("name", ["product", "memory", "scaled sum", "sum where", "inner product"])
def test_small_inputs_have_a_small_bound(name: str, reach: float) -> None:
    stream, oracle = WORDS[name]
    made = compile(Circuit(name, stream, length=LENGTH))
    bound = made.error_bound_within(reach)
    values = {s: v if s is FLAG else (v * reach / 8).astype(np.float32).astype(float) for s, v in _inputs(3).items()}
    error = np.abs(numeric_stack(made).run(values) - oracle({s.name: v for s, v in values.items()})).max()
    assert error <= bound <= made.error_bound_within(8.0) == made.error_bound
    assert reach == 8 or bound < made.error_bound / 4


@pytest.mark.parametrize("gap", [0, -1, Fraction(-1, 2)])
def test_a_gap_must_be_above_zero(gap: object) -> None:
    with pytest.raises(ValueError, match="need one above 0"):
        exceeds(A, B, gap)


# Each constant of the bound is needed: inputs on which the module comes as near to it as it claims ----------------


def _off(stream, values: Value, expected: np.ndarray) -> tuple[float, float]:
    """(the error of the module, what is proved of it) on one position."""
    made = compile(Circuit("one", stream, length=1))
    return float(np.abs(numeric_stack(made).run(values) - expected).max()), made.error_bound


def test_a_rectifier_is_0_2785_of_its_scale_away():
    tiny = numbers(Real(-(2.0**-30), 2.0**-30), "tiny").relu()  # rounds by less than the curve is off
    made = compile(Circuit("one", tiny, length=1))
    (scale,) = {abs(float(s.operation.scale)) for s in made.core.streams if hasattr(s.operation, "scale")}
    worst = np.full((1, 1, 1), 1.2785 / scale, dtype=np.float32)
    error, bound = _off(tiny, {"tiny": worst}, worst)
    assert 0.9 * bound < 0.99 * 0.2785 / scale < error <= bound


HALVES = {"a": np.full((1, 1, 2), 0.5, dtype=np.float32), "b": np.full((1, 1, 2), 0.5, dtype=np.float32)}
SMALL_A, SMALL_B = (numbers(Real(-0.5, 0.5, 2), name) for name in "ab")
CURVED = silu_product(SMALL_A, SMALL_B, 4)  # λ so small that s⁴/48λ² outweighs every rounding


@pytest.mark.parametrize(
    ("stream", "expected"),
    [(CURVED, 0.25), (CURVED.relu(), 0.25), (3 * CURVED * SMALL_A, 0.375), (3 * SMALL_A * CURVED, 0.375)],
    ids=["the curve", "through a rectifier", "on the left of a product", "on the right of a product"],
)
def test_an_error_is_carried_on_whole(stream, expected: float):
    error, bound = _off(stream, HALVES, np.full((1, 1, 2), expected))
    assert 0.4 * bound < error <= bound


SMALL, TINY = 2.0**-60, 2.0**-100
X, Y = (numbers(Real(-SMALL, SMALL), name) for name in "xy")
SCALED_UP = {
    "dot": dot(X * SMALL, Y * SMALL) / SMALL**2,
    "choose": choose(X * TINY, Y * TINY, X * TINY, TINY / 8) / TINY,
}


@pytest.mark.parametrize("name", SCALED_UP)
def test_what_is_too_small_for_float32_is_in_the_bound(name: str):
    """Numbers near 2^-140 are as good as 0, and what scales them up again scales that up as well."""
    stream = SCALED_UP[name]
    compiled = compile(Circuit("small", stream, length=1))
    drawn = np.random.default_rng(0).uniform(-SMALL, SMALL, (2, 200, 1, 1)).astype(np.float32).astype(float)
    drawn[1, :100] = -drawn[0, :100]
    found = numeric_stack(compiled).run(dict(zip((X, Y), drawn, strict=True)))
    wanted = interpret(compiled.source, inputs=dict(zip((X, Y), drawn, strict=True)))[stream].astype(float)
    off = np.abs(found - wanted).max()
    assert 0 < off <= compiled.error_bound


def test_an_input_that_is_flushed_is_in_the_bound():
    """A float32 below the least normal one may be read as 0, and what scales it up scales that up as well."""
    x = numbers(Real(-TINY, TINY), "x")
    compiled = compile(Circuit("large", x * 2.0**30, length=1))
    value = 2.0**-126 * (1 - 2.0**-22)
    with flushed():
        found = numeric_stack(compiled).run({x: np.full((1, 1, 1), value)})
    off = abs(found.item() - value * 2.0**30)
    assert off <= compiled.error_bound_within(2.0**-120) < 2.0**-90
    assert compiled.error_bound_within(2.0**-120) >= value * 2.0**30


def test_of_what_the_output_does_not_read_no_bound_need_be_known():
    """A rectifier of a real number, for which Mamba-2 has no halves, meets only a row of zeros."""
    x = numbers(Real(1, 3), "x")
    nothing = np.array([[-1], [0]]) @ differs(x, x, 1)
    made = compile(Circuit("dead", exceeds(nothing, numbers(Int(0, 0, 2), "zero"), 0.25), length=8), "mamba2")
    assert made.error_bound == 0
