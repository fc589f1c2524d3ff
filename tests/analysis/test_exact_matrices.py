"""Folded weights are exact or refused: products, sums and affine forms against plain Fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from compiler.analysis.affine_form import affine_form
from compiler.analysis.exact_matrices import InexactWeight, exact_rows, gathered, on_columns, product, scaled, total
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream
from tests.circuits import abc
from tests.spread import some

WEIGHTS = st.one_of(
    st.integers(-5, 5).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
    st.tuples(st.integers(-(2**53), 2**53), st.integers(-80, 80)).map(lambda p: float(np.ldexp(float(p[0]), p[1]))),
)


def _matrices(rows: int, columns: int):
    row = st.lists(WEIGHTS, min_size=columns, max_size=columns)
    return st.lists(row, min_size=rows, max_size=rows).map(lambda m: sparse.csr_array(np.array(m)))


def _fractions(matrix: sparse.csr_array) -> list[list[Fraction]]:
    return [[Fraction(v) for v in row] for row in matrix.toarray().tolist()]


def _agrees(compute, expected: list[list[Fraction]]) -> None:
    try:
        result = compute()
    except InexactWeight:
        assert any(abs(v) >= Fraction(2) ** 1024 or Fraction(float(v)) != v for row in expected for v in row)
        return
    assert _fractions(result) == expected


@settings(max_examples=len(some(range(300), 0.005)), deadline=None)
@given(a=_matrices(2, 3), b=_matrices(3, 2), c=_matrices(2, 3), factor=WEIGHTS)
def test_every_operation_is_exact_or_refused(a, b, c, factor: float):
    x, y, z, f = _fractions(a), _fractions(b), _fractions(c), Fraction(factor)
    _agrees(lambda: product(a, b), [[sum(x[i][j] * y[j][k] for j in range(3)) for k in range(2)] for i in range(2)])
    _agrees(
        lambda: total([a, c, a]), [[2 * u + v for u, v in zip(*rows, strict=True)] for rows in zip(x, z, strict=True)]
    )
    _agrees(lambda: scaled(a, f), [[f * u for u in row] for row in x])
    row, column = np.repeat([0, 1], 3), np.array([0, 1, 0, 1, 1, 1])
    sums = [[x[0][0] + x[0][2], x[0][1]], [Fraction(0), sum(x[1])]]
    _agrees(lambda: gathered(row, column, a.toarray().reshape(-1), (2, 2)), sums)
    moved = [[v[2], u[0] + u[2] + v[0]] for u, v in zip(x, z, strict=True)]
    _agrees(lambda: on_columns([(a, np.array([1, -1, 1])), (c, np.array([1, -1, 0]))], (2, 2)), moved)
    _agrees(lambda: exact_rows([[f * f]]), [[f * f]])


def test_what_float64_would_lose_is_kept():
    big = sparse.csr_array(np.array([[2.0**60, 1.0, -(2.0**60)]]))
    ones = sparse.csr_array(np.ones((3, 1)))
    assert product(big, ones).toarray().tolist() == [[1]]
    assert total([big, sparse.csr_array(np.ones((1, 3))), -1 * big]).toarray().tolist() == [[1, 1, 1]]
    with pytest.raises(InexactWeight, match="its weights fold to 1152921504606846977, which no float64 holds exactly"):
        product(sparse.csr_array(np.array([[2.0**60, 1.0]])), sparse.csr_array(np.ones((2, 1))))
    with pytest.raises(InexactWeight, match="about −2\\^1998"):
        scaled(sparse.csr_array([[-(2.0**999)]]), Fraction(2) ** 999)


def _cancelled(x: Stream) -> Stream:
    return (x * 2**60 + x) - x * 2**60


def _doubled(x: Stream, times: int) -> Stream:
    for _ in range(times):
        x = x + x
    return x


@pytest.mark.parametrize("source", ["token", "sum"])
def test_weights_that_cancel_leave_what_is_left(source: str):
    number = abc.number({"a": 1, "b": 2})
    x = number if source == "token" else number.cumsum()
    doubled = _doubled(x, 54)
    for output in (_cancelled(x), doubled + x - doubled, 3 * (x * 2**60 + x) - x * 2**60 - x * 2**61):
        circuit = Circuit("cancelled", output, InputLanguage.everything(abc.alphabet, 12))
        assert [float(m.toarray()[0, 0]) for m in affine_form(output).values()] in ([1.0], [3.0])
        tokens = np.random.default_rng(0).integers(0, abc.alphabet.size, (1, 12))
        assert np.array_equal(compile(circuit).interpret(tokens), interpret(circuit, tokens)[circuit.output])


def test_weights_that_fold_to_no_float_are_refused_by_name():
    x = abc.number({"a": 1, "b": 2}).cumsum()
    halved = _doubled(x, 54) + x
    for _ in range(54):
        halved = halved / 2
    with pytest.raises(
        CompileError, match=r"test_exact_matrices\.py:\d+\): its weights fold to 18014398509481985/18014398509481984"
    ):
        compile(Circuit("halved", halved, InputLanguage.everything(abc.alphabet, 12)))


@pytest.mark.parametrize(
    "output",
    [
        lambda: abc.number({"a": 2**27 + 1}) ** 2 > 2**54 + 2**28,
        lambda: abc.one_hot().lookup([2**53 + 1, 2**53, 0]) > 2**53,
        lambda: abc.number({"a": 1}).cumsum().lookup([0, 2**53 + 1]),
    ],
)
def test_tables_are_folded_exactly_or_refused(output):
    """Where a table needs more than 53 bits the circuit is refused; no flag of it is ever wrong."""
    with pytest.raises(CompileError, match=r"its weights fold to \d+, which no float64 holds exactly"):
        compile(Circuit("table", output(), InputLanguage.everything(abc.alphabet, 12)))
