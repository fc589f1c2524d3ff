"""Real numbers, integers and flags side by side: a lane that is picked is what it was."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.mixtures import MIXTURES, mixture
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.data.circuits import from_data, to_data
from compiler.language.graph import rebuilt
from compiler.language.kinds import Kind, kinds_of
from compiler.language.logic import any_of
from compiler.language.stream import Stream
from compiler.language.types import Bool, Int, Real
from compiler.language.words import concatenate, fading_sum, latch, lti, maximum, running_max, select
from tests.circuits import abc, is_a, is_b, logits, over_abc

COUNT = is_a.cumsum()
REAL = fading_sum(COUNT, Fraction(1, 3))
MIXED = concatenate(REAL, COUNT, is_b)
R, N, F = Kind.REAL, Kind.INTEGER, Kind.FLAG

KINDS = {
    "as they are": (MIXED, [R, N, F]),
    "later": (MIXED.shift(2), [R, N, F]),
    "kept": (latch(MIXED, concatenate(is_a, is_b)), [R, N, F, R, N, F]),
    "largest": (running_max(MIXED, is_a), [R, N, F]),
    "chosen": (select(is_a, MIXED, MIXED.shift(1)), [R, N, F]),
    "rectified": (MIXED.relu(), [R, N, N]),
    "cut": (MIXED.clip(0, 3), [R, N, N]),
    "summed": (MIXED.cumsum(), [R, N, N]),
    "filtered": (lti(MIXED, [1, 2]), [R, N, N]),
    "filtered in halves": (lti(MIXED, [Fraction(1, 2)]), [R, R, R]),
    "times an integer": (MIXED * COUNT, [R, N, N]),
    "times a real": (MIXED * REAL, [R, R, R]),
    "larger": (maximum(MIXED, COUNT), [R, N, N]),
    "mapped": (np.array([[1, 1, 0], [0, 2, 0], [0, 0.5, 0]]) @ MIXED, [R, N, R]),
    "mapped flags": (np.array([[0, 0, 1], [0, 0, -1], [0, 0, 0]]) @ MIXED, [F, N, F]),
    "of a token": (abc.rows(["a"], np.array([[0.5, 3]]), "r"), [R, N]),
    "picked": (MIXED[[2, 0]], [F, R]),
}  # fmt: skip


@pytest.mark.parametrize(("stream", "kinds"), KINDS.values(), ids=KINDS)
def test_each_lane_has_its_kind(stream: Stream, kinds: list[Kind]) -> None:
    assert kinds_of(stream.type).tolist() == kinds
    read = from_data(to_data(over_abc("data", stream))).output
    assert kinds_of(read.type).tolist() == kinds, "it follows from the circuit as data too"


def test_a_stream_of_one_kind_has_a_type_as_before() -> None:
    assert [MIXED[i].type for i in range(2)] == [Real(), Int()] and not MIXED[1].type.kinds
    assert concatenate(is_a, is_b).type == Bool(2) and MIXED[2].type == Int()


def test_no_author_declares_kinds() -> None:
    """They would be believed: a conjunction of what is no flag would be bounded by 1."""
    with pytest.raises(TypeError):
        Int(kinds=bytes([F]))
    assert kinds_of(MIXED.retyped(Real(width=3)).type).tolist() == [R, R, R]


def _prefixes(words: np.ndarray) -> list[list[str]]:
    return [["".join("abc"[i] for i in word[: t + 1]) for t in range(len(word))] for word in words]


PICKED = {
    "remainder": (MIXED[1] % 3, lambda w: w.count("a") % 3),
    "quotient": (latch(MIXED, is_b)[1] // 2, lambda w: w[: w.rfind("b") + 1].count("a") // 2),
    "table": (MIXED.shift(1)[1].lookup([3, 1, 4]), lambda w: ([3, 1, 4] + 9 * [0])[w[:-1].count("a")]),
    "one hot": (MIXED.relu()[1].one_hot(3)[2], lambda w: int(w.count("a") == 2)),
    "flag": (MIXED[2] & (COUNT > 1), lambda w: int(w[-1] == "b" and w.count("a") > 1)),
    "no flag": (~MIXED[2], lambda w: int(w[-1] != "b")),
    "any flag": (any_of(MIXED[2], is_a), lambda w: int(w[-1] in "ab")),
    "condition": (latch(COUNT, MIXED[2]), lambda w: w[: w.rfind("b") + 1].count("a")),
    "permuted flags": ((np.eye(2)[::-1] @ concatenate(is_a, is_b))[0] & ~is_a, lambda w: int(w[-1] == "b")),
    "beside an integer": (concatenate(COUNT, is_b)[1] | is_a, lambda w: int(w[-1] in "ab")),
}


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize(("stream", "oracle"), PICKED.values(), ids=PICKED)
def test_a_lane_beside_real_numbers_is_read_as_what_it_is(stream, oracle, target: str) -> None:
    circuit = over_abc("picked", stream, max_length=5)
    tokens = np.array(list(circuit.language.strings(5)))
    expected = [[[oracle(prefix)] for prefix in row] for row in _prefixes(tokens)]
    assert np.array_equal(logits(compile(circuit, target), tokens), expected)


def test_the_real_lane_is_named() -> None:
    with pytest.raises(CompileError, match=r"it divides lane 0 of Real\(.*, and an integer is needed"):
        compile(over_abc("c", MIXED % 3))


def test_a_stream_that_is_rebuilt_has_the_type_of_its_own_operands() -> None:
    """Equal types may differ in their kinds: what it stands for lends its type only where operands have the same."""
    kept = latch(MIXED, is_a)
    other = concatenate(COUNT, REAL, is_b)
    assert MIXED.type == other.type and MIXED.type.kinds != other.type.kinds
    assert kinds_of(rebuilt(kept, (other, is_b)).type).tolist() == [N, R, F]
    again = rebuilt(MIXED, (REAL, rebuilt(COUNT, (is_b,)), is_b))
    assert kinds_of(again.type).tolist() == [R, N, F]


@pytest.mark.parametrize("name", ["mixed", "remembered", "latched", "chain"])
def test_every_stream_behind_the_passes_has_the_type_that_its_operation_gives(name: str) -> None:
    add = next(add for add in MIXTURES if add.__name__ == name)
    for stream in compile(mixture(add, 60), "mamba").core.streams:
        type = stream.operation.result_type(*(s.type for s in stream.inputs))
        assert stream.type == type and np.array_equal(kinds_of(stream.type), kinds_of(type))
