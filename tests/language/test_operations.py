"""Each operation's one definition against plain Python, position by position, before the start included."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.artifact.package import bare
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import balanced
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens, numbers
from compiler.language.stream import Stream, constant
from compiler.language.types import Bool, Int, OneHot
from compiler.language.words import (
    concatenate,
    count,
    latch,
    latch_bank,
    lti,
    maximum,
    minimum,
    present,
    running_max,
    select,
)
from tests import random_circuits
from tests.spread import some
from verify.forward_error import Majorant

X, Y = numbers(Int(-9, 9), "x"), numbers(Int(-9, 9), "y")
F, G = numbers(Bool(), "f"), numbers(Bool(), "g")
S, Q = numbers(OneHot(3), "s"), numbers(OneHot(3), "q")
INPUTS = (X, Y, F, G, S, Q)


def _inputs(batch: int = 40, time: int = 9) -> dict[Stream, np.ndarray]:
    rng = np.random.default_rng(0)

    def symbols() -> np.ndarray:
        return np.eye(4, dtype=np.int64)[rng.integers(0, 4, (batch, time))][..., :3]  # the fourth: absent

    integers = {x: rng.integers(-4, 5, (batch, time, 1)) for x in (X, Y)}
    flags = {f: rng.integers(0, 2, (batch, time, 1)) for f in (F, G)}
    return {**integers, **flags, S: symbols(), Q: symbols()}


class At:
    """One sequence, to look things up by name and position: a number, or the index of a symbol (None: absent)."""

    def __init__(self, rows: dict[Stream, np.ndarray]):
        numbers_ = {s: [int(v[0]) for v in rows[s]] for s in (X, Y, F, G)}
        symbols = {s: [next((i for i in range(3) if v[i]), None) for v in rows[s]] for s in (S, Q)}
        self.x, self.y, self.f, self.g, self.s, self.q = (({**numbers_, **symbols})[s] for s in INPUTS)


def _hot(index: int | None, n: int = 3) -> list[int]:
    return [int(index == i) for i in range(n)]


def _back(values: list[int], t: int, k: int) -> int:
    return values[t - k] if t >= k else 0


def _written(a: At, t: int, key: int | None) -> list[int]:
    """The x's stored under a key at positions where f held."""
    return [a.x[s] for s in range(t + 1) if a.f[s] and key is not None and a.s[s] == key]


def _since(a: At, t: int) -> int:
    last = max((s for s in range(t + 1) if a.g[s]), default=-1)
    return sum(a.f[last + 1 : t + 1])


def _latched(values: list[int], flags: list[int], t: int, first: bool = False) -> int:
    held = [values[s] for s in range(t + 1) if flags[s]]
    return (held[0] if first else held[-1]) if held else 0


OPERATIONS = {
    "linear": (2 * X - Y / 2 + 3, lambda a, t: 2 * a.x[t] - Fraction(a.y[t], 2) + 3),
    "matrix": (
        np.array([[1, 2, 3], [0, -1, 0]]) @ S,
        lambda a, t: [sum(w * v for w, v in zip(r, _hot(a.s[t]), strict=True)) for r in ([1, 2, 3], [0, -1, 0])],
    ),
    "lanes": (S[[2, 0]], lambda a, t: [_hot(a.s[t])[2], _hot(a.s[t])[0]]),
    "sum of lanes": (S.sum(), lambda a, t: int(a.s[t] is not None)),
    "spread": (S - X, lambda a, t: [v - a.x[t] for v in _hot(a.s[t])]),
    "concatenate": (concatenate(X, F), lambda a, t: [a.x[t], a.f[t]]),
    "constant": (constant(Fraction(3, 4)), lambda a, t: Fraction(3, 4)),
    "shift": (X.shift(3), lambda a, t: _back(a.x, t, 3)),
    "shift past the start": (X.shift(50), lambda a, t: 0),
    "shift of a constant": (constant(1).shift(2), lambda a, t: int(t >= 2)),
    "power": (X**3, lambda a, t: a.x[t] ** 3),
    "relu": (X.relu(), lambda a, t: max(a.x[t], 0)),
    "clip": (X.clip(-1, 2), lambda a, t: min(max(a.x[t], -1), 2)),
    ">": (X > Y, lambda a, t: int(a.x[t] > a.y[t])),
    ">=": (X >= 1, lambda a, t: int(a.x[t] >= 1)),
    "<": (X < Y, lambda a, t: int(a.x[t] < a.y[t])),
    "<=": (X <= Y, lambda a, t: int(a.x[t] <= a.y[t])),
    "==": (X == 2, lambda a, t: int(a.x[t] == 2)),
    "!=": (X != Y, lambda a, t: int(a.x[t] != a.y[t])),
    "heaviside": (X.heaviside(1), lambda a, t: int(a.x[t] > 1)),
    "same symbol": (S == Q, lambda a, t: int(a.s[t] is not None and a.s[t] == a.q[t])),
    "other symbol": (S != Q, lambda a, t: int(a.s[t] is None or a.s[t] != a.q[t])),
    "and": (F & G, lambda a, t: a.f[t] * a.g[t]),
    "and of a symbol": (S & F, lambda a, t: _hot(a.s[t] if a.f[t] else None)),
    "or": (F | G, lambda a, t: int(a.f[t] or a.g[t])),
    "not": (~F, lambda a, t: 1 - a.f[t]),
    "select": (select(F, X, Y), lambda a, t: a.x[t] if a.f[t] else a.y[t]),
    "select numbers": (select(F, 5, X), lambda a, t: 5 if a.f[t] else a.x[t]),
    "lookup": (X.lookup([4, -1, 7]), lambda a, t: [4, -1, 7][a.x[t]] if 0 <= a.x[t] < 3 else 0),
    "lookup of a symbol": (S.lookup({0: 4, 1: -1, 2: 7}), lambda a, t: 0 if a.s[t] is None else [4, -1, 7][a.s[t]]),
    "quotient": (X // 3, lambda a, t: a.x[t] // 3),
    "remainder": (X % 3, lambda a, t: a.x[t] % 3),
    "one_hot": (X.one_hot(3), lambda a, t: _hot(a.x[t])),
    "minimum": (minimum(X, Y), lambda a, t: min(a.x[t], a.y[t])),
    "maximum": (maximum(2, X), lambda a, t: max(a.x[t], 2)),
    "multiply": (X * Y, lambda a, t: a.x[t] * a.y[t]),
    "multiply lanes": (X * S, lambda a, t: [a.x[t] * v for v in _hot(a.s[t])]),
    "cumsum": (X.cumsum(), lambda a, t: sum(a.x[: t + 1])),
    "lti": (lti(X, [1, 0, Fraction(1, 2)]), lambda a, t: a.x[t] + Fraction(_back(a.x, t, 2), 2)),
    "latch": (latch(X, F), lambda a, t: _latched(a.x, a.f, t)),
    "first latch": (latch(X, F, first=True), lambda a, t: _latched(a.x, a.f, t, first=True)),
    "latch of a symbol": (latch(S, F), lambda a, t: _hot(_latched(a.s, a.f, t) if any(a.f[: t + 1]) else None)),
    "latch_bank": (latch_bank(X, S, F), lambda a, t: [(_written(a, t, k) or [0])[-1] for k in range(3)]),
    "count": (count(F, reset=G), _since),
    "present": (
        present(F & G),
        lambda a, t: int(any(f and g for f, g in zip(a.f[: t + 1], a.g[: t + 1], strict=True))),
    ),
    "present of lanes": (
        present(concatenate(F, G)),
        lambda a, t: [max(a.f[: t + 1]), max(a.g[: t + 1])],
    ),
    "running_max": (running_max(X, F), lambda a, t: max((a.x[s] for s in range(t + 1) if a.f[s]), default=0)),
    "memory sum": (memory.write(S, X, F).read(Q), lambda a, t: sum(_written(a, t, a.q[t]))),
    "memory first": (memory.write(S, X, F, "first").read(Q), lambda a, t: (_written(a, t, a.q[t]) or [0])[0]),
    "memory last": (memory.write(S, X, F, "last").read(Q), lambda a, t: (_written(a, t, a.q[t]) or [0])[-1]),
    "outer_sum": (
        memory.outer_sum(X, write=Y, read=X),
        lambda a, t: sum(a.x[s] * a.y[s] for s in range(t + 1)) * a.x[t],
    ),
}


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", [object, np.float64])
def test_operation(name: str, dtype: type):
    stream, expected = OPERATIONS[name]
    inputs = _inputs()
    outputs = interpret(Circuit(name, stream), inputs=inputs, dtype=dtype)[stream]
    assert outputs.dtype == dtype and outputs.shape[-1] == stream.width
    for i, rows in enumerate(outputs):
        at = At({s: array[i] for s, array in inputs.items()})
        for t, row in enumerate(rows):
            want = expected(at, t)
            assert list(row) == (want if isinstance(want, list) else [want])


def test_flags_and_symbols_keep_their_types():
    assert (S & F).type == OneHot(3) and latch(S, F).type == OneHot(3) and select(F, S, Q).type == OneHot(3)
    assert running_max(S, F).type == Bool(3)  # several symbols may have come
    assert (X / 2).clip(0, 3).type.integral is False


def test_symbols_of_one_alternative_may_be_absent():
    one = numbers(OneHot(1), "one")
    stream = one.lookup([5])
    assert interpret(Circuit("", stream), inputs={one: np.array([[[0], [1]]])})[stream].tolist() == [[[0], [5]]]


def test_codes_absent_tokens_are_zeros():
    from tests.circuits import KV, kv

    code = kv.code("v", balanced(3))
    tokens = np.array([[KV.index("k0"), KV.index("v1")]])
    values = interpret(Circuit("", code, None), tokens)[code]
    assert values[0, 0].tolist() == [0] * code.width and values[0, 1].tolist() == balanced(3).words[1].tolist()


@settings(max_examples=len(some(range(150), 0.006)), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_floats_and_exact_numbers_agree(data):
    circuit = random_circuits.build(lambda n: data.draw(st.integers(0, n - 1)))
    tokens = random_circuits.random_tokens(np.random.default_rng(0), 6)
    exact, floats = (interpret(circuit, tokens, dtype=dtype)[circuit.output] for dtype in (object, np.float64))
    assert np.array_equal(exact.astype(float), floats)


def _rationals(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Random integers, multiples of powers of two, both, thirds, or one number that no float64 holds."""
    rng = np.random.default_rng(0)
    below = {"integers": [1], "dyadic": [2, 8], "both": [1, 1 << 80], "thirds": [1, 3, 4], "large": [1 << 1100]}[kind]
    numbers_ = np.empty(shape, dtype=object)
    for at in np.ndindex(shape):
        value = Fraction(int(rng.integers(-99, 100)), int(below[rng.integers(len(below))]))
        numbers_[at] = int(value) if value.denominator == 1 else value
    return numbers_


@pytest.mark.parametrize("kind", ["integers", "dyadic", "both", "thirds", "large"])
@pytest.mark.parametrize("weights", [(1.0, -1.0, 3.0), (1.0, 0.5, -0.375, 2.0**-60), (5e-324, 2.0**1000)])
def test_a_matrix_acts_on_integers_and_fractions_entry_by_entry(kind: str, weights: tuple[float, ...]):
    rng = np.random.default_rng(1)
    dense = rng.choice([0.0, *weights], size=(5, 7))
    x = _rationals(kind, (2, 3, 7))
    found = ops.apply(ops.exact_matrix(dense), x)
    for at in np.ndindex(2, 3, 5):
        assert found[at] == sum(Fraction(w) * v for w, v in zip(dense[at[-1]], x[at[:2]], strict=True))
    assert {type(value) for value in found.flat} <= {int, Fraction}


def test_a_matrix_acts_on_whatever_adds_up():
    bounds = np.array([[[Majorant(3.0), Majorant(0.5)]]], dtype=object)
    ((found,),) = ops.apply(ops.exact_matrix(np.array([[0.5, -2.0]])), bounds)[0]
    assert 2.5 <= found.bound <= 2.5 * (1 + 2.0**-50) and (found.depth, found.terms) == (0, 2)


@pytest.mark.parametrize("matrix", [np.array([[np.inf]]), np.array([[np.nan]])])
def test_weights_are_numbers(matrix: np.ndarray):
    with pytest.raises(ValueError, match="infinity or a NaN"):
        ops.exact_matrix(matrix)


def test_weights_are_dyadic():
    with pytest.raises(ValueError, match="no dyadic rational"):
        ops.exact_matrix([[Fraction(1, 3)]])


def test_factors_are_exact_and_dyadic_where_they_are_compiled():
    third = Circuit("third", X / 3, length=2)
    assert interpret(third, inputs={X: np.array([[[1], [2]]], dtype=object)})[third.output].ravel().tolist() == [
        Fraction(1, 3),
        Fraction(2, 3),
    ]
    with pytest.raises(CompileError, match=r"1/3 \(test_operations.py:\d+\): its value 1/3 is no dyadic rational"):
        compile(third)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("resets", [(), (1,), (1, 2), (0, 2), (0, 1, 2)], ids=str)
def test_a_count_restarts_wherever_its_reset_says(target, resets):
    """The reset as a flag, as the complement of one and as a constant, against a loop."""
    alphabet = Alphabet.of("a", "b", "c")
    x = Tokens(alphabet)
    others = [name for i, name in enumerate("abc") if i not in resets]
    forms = [x.is_in(["abc"[i] for i in resets]) if resets else constant(0)]
    if others:
        forms.append(~x.is_in(others))
    elif target == "mamba2":  # Δ = 32 + 2^50 is no float32 number, and Mamba refuses it
        forms.append(constant(1))
    tokens = np.random.default_rng(0).integers(0, 3, (16, 30))
    expected = np.zeros(tokens.shape, dtype=int)
    for row, sequence in enumerate(tokens.tolist()):
        total = 0
        for t, token in enumerate(sequence):
            total = 0 if token in resets else total + (token == 0)
            expected[row, t] = total
    for reset in forms:
        output = count(x.is_in("a"), reset=reset).one_hot(4)
        compiled = compile(Circuit("count", output, InputLanguage.everything(alphabet, 30)), target)
        with torch.no_grad():
            scores = bare(compiled)(torch.from_numpy(tokens)).numpy()
        for value in range(3):
            assert np.array_equal(scores[..., value] == 1, expected == value)


@pytest.mark.parametrize("dtype", [object, np.float64, np.float32])
@pytest.mark.parametrize("seed", range(6))
def test_a_linear_map_of_many_streams_is_that_of_all_their_lanes(dtype, seed):
    """Also where each fills few rows, as streams side by side do, and where one fills none."""
    rng = np.random.default_rng(seed)
    widths, rows = rng.integers(1, 4, 9).tolist(), 12
    dense = [np.zeros((rows, width)) for width in widths]
    for matrix, kept in zip(dense, [1, 1, 1, 2, 3, 6, 12, 12, 0], strict=True):
        matrix[rng.choice(rows, kept, replace=False)] = rng.integers(-3, 4, (kept, matrix.shape[1])) / 2
    values = [rng.integers(-9, 10, (2, 5, width)).astype(dtype) for width in widths]
    before = [x.copy() for x in values]
    found = ops.Linear(tuple(map(ops.exact_matrix, dense))).evaluate(*values)
    expected = np.concatenate(values, axis=-1).astype(float) @ np.hstack(dense).T
    assert found.dtype == dtype and np.array_equal(found.astype(float), expected)
    assert all(np.array_equal(x, y) for x, y in zip(values, before, strict=True))
