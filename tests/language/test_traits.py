"""The traits of operations: what the passes may assume of each, shown on values; and what they do with one that
declares nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import compiler
from compiler.analysis.domains import Domains
from compiler.analysis.least_size import least_size
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.operations import Operation, Sees
from compiler.language.source import numbers
from compiler.language.stream import Stream
from compiler.language.types import Bool, Real
from compiler.language.words import latch, sum_where
from tests.circuits import is_a, is_b, over_abc
from tests.language.test_operations import OPERATIONS, _inputs


@dataclass(frozen=True)
class ParityOfAll(ops.Operation):
    """An operation over the past that declares no trait."""

    def result_type(self, flag: Bool) -> Bool:
        return flag

    def evaluate(self, flag: np.ndarray) -> np.ndarray:
        return np.cumsum(flag, axis=1) % 2


@dataclass(frozen=True)
class Nand(ops.And):
    """A subclass that means something else than its parent, and sees the past."""

    sees = Sees.PAST

    def evaluate(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return 1 - a * b


@pytest.mark.parametrize(
    "stream", [Stream(ParityOfAll(), (is_a,)), Stream(ParityOfAll(), (is_a,)) | is_b, Stream(Nand(), (is_a, is_b))]
)
def test_an_operation_that_declares_nothing_is_refused_and_never_folded(stream: Stream):
    with pytest.raises(CompileError, match="no bounds are known|no lowering of"):
        compiler.compile(over_abc("toy", stream))


def _traced(name: str) -> tuple[Stream, dict]:
    return OPERATIONS[name][0], _inputs(batch=4)


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_declared_to_see_one_position_does(name: str):
    """Turned around in time, the inputs give the same values turned around."""
    output, inputs = _traced(name)
    streams = Circuit(name, output).streams
    forward = interpret(Circuit(name, output), inputs=inputs, keep=streams)
    for stream in streams:
        if stream.inputs and stream.operation.sees is not Sees.PAST:
            operands = [forward[s][:, ::-1] for s in stream.inputs]
            assert np.array_equal(stream.operation.evaluate(*operands)[:, ::-1], forward[stream])


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_declared_to_preserve_zeros_does(name: str):
    for stream in Circuit(name, OPERATIONS[name][0]).streams:
        if stream.operation.zero_preserving:
            zeros = [np.zeros((1, 3, s.width), dtype=object) for s in stream.inputs]
            assert not stream.operation.evaluate(*zeros).any()


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_declared_linear_adds_up(name: str):
    rng = np.random.default_rng(0)
    for stream in Circuit(name, OPERATIONS[name][0]).streams:
        if stream.operation.sees is Sees.LINEAR:
            one, two = ([rng.integers(-9, 9, (1, 3, s.width)).astype(float) for s in stream.inputs] for _ in range(2))
            whole = stream.operation.evaluate(*(a + b for a, b in zip(one, two, strict=True)))
            assert np.array_equal(whole, stream.operation.evaluate(*one) + stream.operation.evaluate(*two))


def _values(stream: Stream, rng: np.random.Generator) -> list[np.ndarray]:
    """Operands that any operation takes: flags."""
    return [rng.integers(0, 2, (3, 6, s.width)).astype(object) for s in stream.inputs]


def _streams(name: str) -> list[Stream]:
    return [s for s in Circuit(name, OPERATIONS[name][0]).streams if s.inputs]


@pytest.mark.parametrize("name", OPERATIONS)
def test_lanes_that_are_not_read_do_not_matter(name: str):
    """Other numbers on the lanes that some lanes of the result are not made of leave these as they were."""
    rng = np.random.default_rng(1)
    for stream in _streams(name):
        operands, read = _values(stream, rng), rng.integers(0, 2, stream.width).astype(bool)
        needed = stream.operation.lanes_read(read, *(s.width for s in stream.inputs))
        others = [np.where(mask, kept, 1 - kept) for mask, kept in zip(needed, operands, strict=True)]
        before, after = (stream.operation.evaluate(*arrays)[..., read] for arrays in (operands, others))
        assert np.array_equal(before, after), stream.operation


V, W, TWO, ONE = (numbers(Bool(width), f"b{width}") for width in (4, 4, 2, 1))
HALF = Fraction(1, 2)
WIDE = [
    *(Stream(operation, (V,)) for operation in (ops.Relu(), ops.Clip(0, 1), ops.Not(), ops.FloorDivide(1))),
    *(Stream(operation, (V,)) for operation in (ops.Modulo(2), ops.Cumsum(), ops.Shift(2), ops.Lti((HALF, HALF)))),
    *(Stream(operation, (V, W)) for operation in (ops.Min(), ops.Max(), ops.Compare(">"), ops.Or(), ops.Multiply())),
    *(Stream(operation, (V, ONE)) for operation in (ops.And(), ops.Multiply(), ops.RunningMax())),
    *(Stream(operation, (V, TWO)) for operation in (ops.Latch(), ops.SumWhere())),
    *(Stream(operation, (V, TWO, TWO)) for operation in (ops.MemoryRead("sum"), ops.FadingMemory(HALF))),
    *(Stream(ops.Select(), (flag, V, W)) for flag in (V, ONE)),
    *(Stream(ops.ScaledSum(), (V, W, W)), Stream(ops.FadingSum(HALF), (V,)), Stream(ops.SelectiveSum(HALF), (V, ONE))),
]


@pytest.mark.parametrize("stream", WIDE, ids=lambda s: s.operation.symbol)
def test_what_is_done_lane_by_lane_can_be_done_on_some_lanes(stream: Stream):
    rng = np.random.default_rng(4)
    kind, operands = stream.operation.lane_wise, _values(stream, rng)
    cut = len(operands) if kind is ops.LaneWise.EACH else 1
    some = [x[..., ::-2] if i < cut and x.shape[-1] == 4 else x for i, x in enumerate(operands)]
    whole, part = (stream.operation.evaluate(*arrays) for arrays in (operands, some))
    under_each_flag = whole.reshape(*whole.shape[:2], -1, 4)[..., ::-2]
    assert part.any() and np.array_equal(part, under_each_flag.reshape(part.shape))


def test_every_operation_lane_by_lane_is_tried():
    kinds = {kind for name, kind in Operation.known.items() if getattr(ops, name, None) is kind}
    tried, declared = {type(s.operation) for s in WIDE}, {k for k in kinds if k.lane_wise is not ops.LaneWise.TOGETHER}
    assert tried == declared, "WIDE needs a stream of each of these operations, and of no others"


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_declared_form_is_the_meaning(name: str):
    rng = np.random.default_rng(2)
    for stream in _streams(name):
        operation, operands = stream.operation, _values(stream, rng)
        found = operation.evaluate(*operands)
        if operation.delay is not None:
            assert np.array_equal(found, ops.Shift(operation.delay).evaluate(*operands))
        if operation.maps is not None:
            assert np.array_equal(found, sum(ops.apply(m, x) for m, x in zip(operation.maps, operands, strict=True)))
        if operation.accumulates:
            assert np.array_equal(found, np.cumsum(operands[0], axis=1))
        if operation.rectifies:
            assert np.array_equal(found, np.maximum(operands[0], 0))
        if operation.conjunction or operation.multiplies:
            assert np.array_equal(found, operands[0] * operands[1])
        if operation.alternatives is not None:
            assert np.array_equal(found, operands[0] == np.arange(operation.alternatives))
        if operation.keeps_sizes:
            assert set(found.ravel()) <= {0, *operands[0].ravel()}
        if operation.vanishes:
            silent = [np.zeros_like(operands[0]), *operands[1:]]
            assert not operation.evaluate(*silent).any()
        if operation.silenced_by is not None:
            operands[operation.silenced_by][:, -1] = 0
            assert not operation.evaluate(*operands)[:, -1].any()


def test_what_is_carried_is_the_number_itself():
    value = np.arange(2 * 5 * 4).reshape(2, 5, 4)
    rng = np.random.default_rng(3)
    for name in OPERATIONS:
        for stream in _streams(name):
            matrices = stream.operation.maps
            for number in range(stream.width if matrices else 0):
                carried = stream.operation.carries(number, *(s.width for s in stream.inputs))
                if carried is not None:
                    operands = _values(stream, rng)
                    found = stream.operation.evaluate(*operands)[..., number]
                    assert np.array_equal(found, operands[carried[0]][..., carried[1]])
    flags = np.ones((2, 5, 3), dtype=np.int64)
    latched = ops.Latch().evaluate(value, flags)
    for number in range(12):
        assert np.array_equal(latched[..., number], value[..., ops.Latch().carries(number, 4, 3)[1]])


def test_a_subclass_with_a_meaning_of_its_own_inherits_no_trait():
    assert ops.And.conjunction and ops.And.zero_preserving and ops.And.lane_wise is ops.LaneWise.EACH
    assert not Nand.conjunction and not Nand.vanishes and not Nand.zero_preserving
    assert Nand.lane_wise is ops.LaneWise.TOGETHER
    assert ops.Half.rectifies and ops.Settled.rectifies  # they mean what Relu does


def test_a_sum_of_numbers_apart_from_zero_may_come_near_to_it():
    """1.5 and −1.25 are at least 1 in size; so is what a latch keeps of them, and not their sum."""
    x = numbers(Real(-4.0, 4.0, gap=1.0))
    keep, domains = numbers(Bool(), "keep"), Domains(None, 9)
    assert least_size(domains, latch(x, keep)) == 1
    assert least_size(domains, sum_where(x, keep)) == 0
