"""The traits of operations: what the passes may assume of each, shown on values; and what they do with one that
declares nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import compiler
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.operations import Sees
from compiler.language.stream import Stream
from compiler.language.types import Bool
from tests.circuits import is_a, is_b, over_abc
from tests.language.test_operations import OPERATIONS, _inputs


@dataclass(frozen=True)
class Parity(ops.Operation):
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
    "stream", [Stream(Parity(), (is_a,)), Stream(Parity(), (is_a,)) | is_b, Stream(Nand(), (is_a, is_b))]
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
