"""Names and source lines: a stream says what was written, and where its author wrote it."""

from __future__ import annotations

import functools
from fractions import Fraction
from functools import singledispatch
from itertools import product

import numpy as np
import pytest
from scipy import sparse

from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language.logic import argmax
from compiler.language.output import decide, emit, readout_one_hot
from compiler.language.source import Tokens, position
from compiler.language.stream import Stream, constant
from compiler.language.words import concatenate, count, fading_sum, latch, maximum, present, running_max, select
from tests.circuits import ABC, FILES, is_a, is_b, over_abc, token

A, B = is_a.shift(1).named("a"), is_b.shift(1).named("b")
X, Y = A.cumsum().named("x"), B.cumsum().named("y")
REAL = fading_sum(X, Fraction(1, 3))
WRITTEN = {
    "x == 3": X == 3,
    "(x + y) > 2": X + Y > 2,
    "2*x - y": 2 * X - Y,
    "3 - x": 3 - X,
    "1 - (x + 2)": 1 - (X + 2),
    "x.clip(0, 4)": X.clip(0, 4),
    "(x - 1).relu()": (X - 1).relu(),
    "count(a, reset=b)": count(A, reset=B),
    "a & (~b)": A & ~B,
    "a | b": A | B,
    "present(a)": present(A),
    "latch(x, when=a)": latch(X, A),
    "x.shift(2)": X.shift(2),
    "x.one_hot(4)": X.one_hot(4),
    "x.lookup([3, 1])": X.lookup([3, 1]),
    "select(a, x, 0)": select(A, X),
    "max(x, y)": maximum(X, Y),
    "concatenate(a, b)": concatenate(A, B),
    "concatenate(a, b)[1]": concatenate(A, B)[1],
    "concatenate(a, b).sum()": concatenate(A, B).sum(),
    "matrix @ x": np.array([[1], [2]]) @ X,
    "position + 1": position() + 1,
    "token == token.shift(1)": token == token.shift(1),
    "is_a|b": Tokens(ABC).is_in(["a", "b"]),
    "x * (y + 1)": X * (Y + 1),
    "(x + y) * x": (X + Y) * X,
    "(2*x).clip(0, 2)": (2 * X).clip(0, 2),
    "(2*concatenate(x, y))[1]": (2 * concatenate(X, Y))[1],
    "(x == y) + x": (X == Y) + X,
    "max(x.clip(0, 2), y) * x": maximum(X.clip(0, 2), Y) * X,
    "1/2*x": X / 2,
    "5": constant(5),
}


@pytest.mark.parametrize(("text", "stream"), WRITTEN.items(), ids=WRITTEN)
def test_a_stream_without_a_name_is_called_as_it_was_written(text: str, stream: Stream) -> None:
    assert stream.label == text


NUMBERS = [X + Y, X - Y, 2 * X, X / 2, -X, X * Y, X.clip(0, 1), maximum(X, Y), concatenate(X, Y).sum(), 3 - X]
FLAGS = [X == Y, X > Y, A & B, A | B, ~A, A.shift(1)]
OF_NUMBERS = {
    "sums": lambda v: [v + Y, Y + v, Y - v, v - Y, -v, 3 * v],
    "products": lambda v: [v * Y, Y * v, v / 2],
    "words": lambda v: [v.relu(), v.clip(0, 1), v.shift(1), v.cumsum(), maximum(Y, v), concatenate(v, Y)[0]],
    "comparisons": lambda v: [v == Y, v < Y, (v <= 1) & A],
}
OF_FLAGS = {"flags": lambda f: [f & B, A | f, ~f, f + X, X - f, f * X, f == A]}


@pytest.mark.parametrize("kind", [*OF_NUMBERS, *OF_FLAGS])
def test_python_reads_an_expression_as_it_was_written(kind: str) -> None:
    """Parentheses stand where they are needed: what a name says, evaluated, is the same stream."""
    names = {"x": X, "y": Y, "a": A, "b": B, "max": maximum, "concatenate": concatenate}
    tokens = np.array(list(product(range(3), repeat=5)))
    outer = (OF_NUMBERS | OF_FLAGS)[kind]
    for inner in NUMBERS + FLAGS if kind in OF_NUMBERS else FLAGS:
        for stream in (stream for stream in outer(inner) if "…" not in stream.label):
            read = eval(stream.label, dict(names))
            found = [interpret(over_abc("name", s), tokens)[s] for s in (stream, read)]
            assert np.array_equal(*found), (stream.label, read.label)


def test_long_expressions_are_cut_short_and_quickly() -> None:
    stream = X
    for _ in range(2000):
        stream = stream + Y.clip(0, 3)
        stream = maximum(stream, stream)
    assert len(stream.label) < 80 and "…" in stream.label
    assert len(concatenate(*[X] * 1000).label) < 80


def test_lanes_and_refusals_carry_the_expression() -> None:
    compiled = compile(over_abc("deep", ((is_a.cumsum() == 3) & is_b).cumsum()))
    assert "is_a.cumsum()" in compiled.lanes.names and "((… == 3) & is_b).cumsum()" in compiled.lanes.names
    with pytest.raises(CompileError, match=r"^is_a & is_a.cumsum\(\) \(test_names.py:\d+\): its second operand is Int"):
        compile(over_abc("typed", is_a & is_a.cumsum()))


def test_a_refused_circuit_leaves_no_names_behind() -> None:
    """The streams are the author's, and the next circuit that reads them calls them as if there had been no other."""
    number = Tokens(ABC).number({"a": 3, "b": -2})
    real = fading_sum(number, Fraction(1, 3))
    for refused in (concatenate(real, number) > 0, argmax(concatenate(real, number)), real > number):
        with pytest.raises(CompileError):
            compile(over_abc("refused", refused))
        assert real.name is None
    assert "fading_sum(number, 1/3)[0]" in compile(over_abc("good", real + real.shift(1))).lanes.names


def test_refusals_name_the_operand() -> None:
    """Where an operation has words for its operands they are said, not their number among those that were looked at."""
    wrong = {
        "its when is Int": lambda: latch(is_a, X),
        "its reset is Int": lambda: count(is_a, reset=X),
        "its condition is Int": lambda: select(X, Y),
        "its key is Int": lambda: memory.write(X, Y, policy="last").read(token),
        "its query is Int": lambda: memory.write(token, Y, policy="last").read(concatenate(X, X, X)),
        "the flag of rule 1 is Int": lambda: decide([(A, "a"), (X, "b")], readout_one_hot(token, ABC)),
        "the flag of rule 0 is Int": lambda: emit(ABC, (X, "a"), otherwise="b"),
        "its first operand is Int": lambda: X | A,
        "its operand is Int": lambda: ~X,
        "its operand is Real": lambda: REAL.one_hot(3),
        r"^argmax\(concatenate\(fading_sum\(x, 1/3\), x\)\) .* differences": lambda: argmax(concatenate(REAL, X)),
        r"^concatenate\(…\) > 0 .* concatenate\(…\)\[0\] - 0 can hold": lambda: concatenate(REAL, X) > 0,
    }
    for said, build in wrong.items():
        with pytest.raises(CompileError, match=said):
            compile(over_abc("wrong", build()))


@singledispatch
def _build(x: object) -> Stream:
    return X + 1


def test_the_line_is_the_authors_never_a_librarys() -> None:
    """Through functools, numpy, sum and this package: the line that stands here."""
    streams = [
        _build(3),
        functools.reduce(lambda a, b: a + b, [X, Y, X]),
        np.array([[1, 2]]) @ concatenate(X, Y),
        sparse.eye_array(1) @ X,
        sum([X, Y]),
        functools.partialmethod(Stream.shift, 1).__get__(X)(),
        np.frompyfunc(lambda i: X + int(i), 1, 1)(np.arange(2))[0],
        present(A),
    ]
    for stream in streams:
        assert {s.origin.split(":")[0] for s in (stream, *stream.inputs)} <= {*FILES, "test_names.py"}


HUGE = 2**60
REFUSED = {
    "a running maximum": lambda: running_max(X * 2**20, A),
    "flags": lambda: X.cumsum().lookup([1]) & X,
    "a table": lambda: (X + HUGE).lookup([1, 2]),
    "a quotient": lambda: (X - Y + HUGE) // 3,
    "a product": lambda: (X + HUGE + 1) * Y,
    "a sum in a sum": lambda: 1 - (X * 2**30 + 2**55),
    "constants": lambda: (X + 2**55 + 1 - Y).relu() * Y,
    "a choice": lambda: select(A, X + HUGE, Y - HUGE),
    "a latch": lambda: latch(X + HUGE, A) - 3,
    "real numbers beside": lambda: concatenate(X + HUGE, REAL) > 2,
    "a far shift": lambda: (X * 2**30 - Y).shift(30) + 1 + 2**60,
}


@pytest.mark.parametrize("build", REFUSED.values(), ids=REFUSED)
def test_refusals_of_the_passes_name_what_the_author_wrote_at_its_line(build) -> None:
    circuit = over_abc("bad", build())
    with pytest.raises(CompileError) as caught:
        compile(circuit)
    told = tuple(f"{stream.label} ({stream.origin}): " for stream in circuit.streams)
    assert all(line.startswith(told) for line in str(caught.value).splitlines()), (str(caught.value), told)


def test_constants_that_add_up_to_no_float_are_told_as_such() -> None:
    with pytest.raises(CompileError, match=r"its constants add up to 36028797018963969, which no float64 holds"):
        compile(over_abc("sum", X + 2**55 + 1))


def test_numbers_of_many_digits_are_told_by_their_size():
    assert (X + 1e-300).label == "x + 1e-300"
    assert (X * (2**90 + 2**70)).label == "1.23794e+27*x"
