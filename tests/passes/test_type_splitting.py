"""Lanes of real numbers and lanes on a lattice in one stream: each is computed as it would be alone."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
import torch

from compiler.artifact.package import bare
from compiler.context import Context
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.operations import LaneWise
from compiler.language.stream import Stream, constant
from compiler.language.words import (
    concatenate,
    fading_sum,
    latch,
    lti,
    maximum,
    minimum,
    scaled_sum,
    select,
    sum_where,
)
from compiler.passes.type_splitting import type_splitting
from compiler.targets import target_of
from tests.gadgets.harness import LETTERS, compiled, is_a, is_b, one_hot

THIRD, FINE = Fraction(1, 3), Fraction(1, 2**14)
count = is_a.cumsum()
real = fading_sum(count, THIRD)
mixed = concatenate(real, count * FINE)


def _counts(word: str) -> list[Fraction]:
    """Of the letter a so far, in units of FINE."""
    return [FINE * n for n in accumulate(int(x == "a") for x in word)]


def _summed(word: str, letter: str) -> list[Fraction]:
    here = zip(word, _counts(word), strict=True)
    return list(accumulate((n if x == letter else Fraction(0) for x, n in here), initial=Fraction(0)))[1:]


def _latched(word: str) -> list[Fraction]:
    """The count at the last b."""
    found, now = [], Fraction(0)
    for x, n in zip(word, _counts(word), strict=True):
        now = n if x == "b" else now
        found.append(now)
    return found


def _at(word: str, letter: str, values: list[Fraction]) -> list[Fraction]:
    return [v if x == letter else Fraction(0) for x, v in zip(word, values, strict=True)]


WORDS = {
    "relu": ((mixed - 3 * FINE).relu(), lambda w: [max(Fraction(0), n - 3 * FINE) for n in _counts(w)]),
    "clip": (mixed.clip(-1, 1), _counts),
    "minimum": (minimum(mixed, 5 * FINE), lambda w: [min(n, 5 * FINE) for n in _counts(w)]),
    "maximum": (maximum(mixed, 5 * FINE), lambda w: [max(n, 5 * FINE) for n in _counts(w)]),
    "select": (select(is_b, mixed), lambda w: _at(w, "b", _counts(w))),
    "product": (mixed * is_b, lambda w: _at(w, "b", _counts(w))),
    "cumsum": (mixed.cumsum(), lambda w: list(accumulate(_counts(w)))),
    "filter": (lti(mixed, [1, 1]), lambda w: [a + b for a, b in zip(_counts(w), [0, *_counts(w)], strict=False)]),
    "latch": (latch(mixed, is_b), _latched),
    "sum where": (sum_where(mixed, is_b), lambda w: _summed(w, "b")),
    "memory": (
        memory.write(one_hot, mixed, when=is_b).read(one_hot), lambda w: _at(w, "b", _summed(w, "b"))
    ),
    "scaled sum": (
        scaled_sum(mixed, concatenate(is_b, is_b), constant(1, 2)), lambda w: _summed(w, "b")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_the_lane_on_a_lattice_is_exact(name):
    """Read by itself, and by a rectifier, which was off where the whole stream was taken for real."""
    stream, oracle = WORDS[name]
    lane = stream[1]
    above = (lane / FINE - 2).relu()
    ids = np.random.default_rng(0).integers(0, len(LETTERS.tokens), (8, 24))
    words = ["".join(LETTERS.tokens[i] for i in row) for row in ids.tolist()]
    for read, of in ((lane, lambda v: v), (above, lambda v: max(0, v / FINE - 2))):
        expected = np.array([[[float(of(v))] for v in oracle(word)] for word in words])
        made = compiled(read)
        with torch.no_grad():
            assert np.array_equal(bare(made)(torch.from_numpy(ids)).double().numpy(), expected)


def test_a_comparison_of_both_kinds_is_a_comparison_of_each():
    """A real number may stand near the bound, so that its lane is refused; the other alone is compared."""
    made = compiled((mixed > 4 * FINE)[1])
    ids = np.random.default_rng(0).integers(0, len(LETTERS.tokens), (8, 24))
    expected = np.cumsum(ids == LETTERS.tokens.index("a"), axis=1)[..., None] > 4
    with torch.no_grad():
        assert np.array_equal(bare(made)(torch.from_numpy(ids)).numpy(), expected)


def _rewritten(stream: Stream) -> tuple[Circuit, Context]:
    circuit = Circuit("alone", stream, InputLanguage.everything(LETTERS, 64))
    context = Context.of(circuit, target_of("mamba"))
    return type_splitting(circuit, context)


@pytest.mark.parametrize("name", WORDS)
def test_no_operation_has_lanes_of_both_kinds(name):
    before = Circuit("x", WORDS[name][0], InputLanguage.everything(LETTERS, 64)).streams
    circuit, context = _rewritten(WORDS[name][0])
    assert any(s.operation.lane_wise is not LaneWise.TOGETHER for s in before)
    for stream in circuit.streams:
        units = context.domains.of(stream).units
        assert isinstance(stream.operation, ops.Linear) or (units == 0).all() or (units > 0).all()


def test_lanes_keep_their_order_under_every_flag():
    """Two flags, three lanes, the real one in the middle."""
    value = concatenate(count, real, 2 * count)
    stream = latch(value, concatenate(is_a, is_b))
    circuit, _ = _rewritten(stream)
    ids = np.random.default_rng(1).integers(0, len(LETTERS.tokens), (4, 12))
    before = interpret(Circuit("alone", stream, InputLanguage.everything(LETTERS, 64)), ids)[stream]
    assert np.array_equal(interpret(circuit, ids)[circuit.output], before)
    assert before.any(axis=(0, 1)).all()


def test_a_circuit_of_one_kind_is_not_changed():
    stream = latch(concatenate(count, 2 * count), is_b) + concatenate(real, real).cumsum()
    circuit, _ = _rewritten(stream)
    assert circuit.output is stream
