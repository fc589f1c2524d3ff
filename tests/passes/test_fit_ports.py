"""Every operand fits its port: by a rule of the test's own, with the same values, or refused with the reason."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from compiler.context import Context
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream
from compiler.language.words import concatenate, dot, latch
from compiler.lowering.fitter import MOST_CARRIED
from compiler.passes.fit_ports import fit_ports
from compiler.targets import target_of
from tests.circuits import abc, is_a, is_b, over_abc, token

LETTERS = np.random.default_rng(0).integers(0, 3, (6, 24))
REACH = 3  # positions that a convolution of four taps sees back
VALUE = abc.number({"a": 4, "b": 1, "c": 0}, name="value")
SIGNED = abc.number({"a": 2, "b": -3, "c": 0}, name="signed")
COUNTS = token.cumsum()
TWO_LAGS = (VALUE + COUNTS[0].shift(1) + 2).relu()
EVERYWHERE = ("mamba", "mamba2", "mamba-delta-t", "s4d")
SELECTIVE = EVERYWHERE[:3]

# Core circuits of which some operands fit no port as they stand, and the targets that compute them.
STREAMS = {
    "far in a sum": (token.shift(8).cumsum(), EVERYWHERE),
    "two rows at two lags": ((COUNTS[0] + 2 * COUNTS[1].shift(1)).cumsum(), EVERYWHERE),
    "past at a gate": (VALUE * COUNTS[1].shift(2), EVERYWHERE),
    "two signed factors": (SIGNED * (COUNTS[0] - COUNTS[1]), EVERYWHERE),
    "past in the output": (concatenate(COUNTS.shift(1), token.shift(5)), EVERYWHERE),
    "rectifier of two rows": (concatenate(TWO_LAGS, TWO_LAGS.shift(4)), EVERYWHERE),
    "far at a step": (latch(VALUE, is_b.shift(7)), SELECTIVE),
    "sum at a step": (latch(COUNTS[0].shift(1) + VALUE, 1 - (1 - COUNTS[1].shift(2)).relu()), SELECTIVE),
    "far keys": (memory.outer_sum(VALUE, write=token.shift(9), read=token), SELECTIVE),
    "signed keys": (memory.outer_sum(VALUE, write=SIGNED, read=token[0] - token[1].shift(5)), SELECTIVE),
    "inner product": (dot(token.shift(4), COUNTS), EVERYWHERE),
}
ON = [(stream, target) for stream, targets in STREAMS.values() for target in targets]
NAMES = [f"{name}-{target}" for name, (_, targets) in STREAMS.items() for target in targets]
each = pytest.mark.parametrize(("stream", "target"), ON, ids=NAMES)


def _fitted(stream: Stream, target: str, length: int = 24) -> tuple[Circuit, Context]:
    circuit = over_abc("fitted", stream, length)
    context = Context.of(circuit, target_of(target))
    return fit_ports(circuit, context)


# The rule of the ports, asked of dense matrices -----------------------------------------------------


def _lagged(stream: Stream) -> dict[tuple[Stream, int], np.ndarray]:
    """{(atom, lag): dense (width × atom width)}."""
    operation, parts = stream.operation, defaultdict(lambda: 0)
    if isinstance(operation, ops.Shift):
        return {(atom, lag + operation.k): m for (atom, lag), m in _lagged(stream.inputs[0]).items()}
    if not isinstance(operation, ops.Linear):
        return {(stream, 0): np.eye(stream.width)}
    for matrix, source in zip(operation.matrices, stream.inputs, strict=True):
        for key, part in _lagged(source).items():
            parts[key] = parts[key] + matrix.toarray() @ part
    return {key: part for key, part in parts.items() if part.any()}


def _one_row(stream: Stream) -> bool:
    """Whether each number is, a constant aside, taps times one row: of rank one over lags."""
    parts = {(a, k): m for (a, k), m in _lagged(stream).items() if k or not isinstance(a.operation, ops.Constant)}
    if any(lag > REACH for _, lag in parts):
        return False
    atoms = list(dict.fromkeys(atom for atom, _ in parts))
    for i in range(stream.width):
        rows = [
            np.concatenate([parts[atom, lag][i] if (atom, lag) in parts else np.zeros(atom.width) for atom in atoms])
            for lag in range(REACH + 1)
            if atoms
        ]
        if rows and np.linalg.matrix_rank(np.array(rows)) > 1:
            return False
    return True


def _ramps(stream: Stream) -> bool:
    """Whether each number is at most one present rectifier times a positive weight, so that it needs no row."""
    parts = _lagged(stream)
    rectified = all(isinstance(atom.operation, ops.Relu) and not lag for atom, lag in parts)
    weights = np.hstack(list(parts.values())) if parts else np.zeros((1, 1))
    return rectified and bool((weights >= 0).all() and ((weights != 0).sum(axis=1) <= 1).all())


def _fits(operand: Stream, port: str, context: Context) -> bool:
    if port == "written":
        return _ramps(operand) or (_one_row(operand) and context.domains.of(operand).lo >= 0)
    return all(lag <= (REACH if port == "linear" else 0) for _, lag in _lagged(operand))


def _misfits(circuit: Circuit, context: Context) -> list[tuple[Stream, str]]:
    """(operand, port) for each operand that does not fit; a rectifier takes one row, the output present lanes."""
    asked: list[tuple[Stream, str]] = []
    for made in circuit.streams:
        gadget = context.target.gadget(made.operation)
        if isinstance(made.operation, ops.Relu):
            asked.append((made.inputs[0], "row"))
        elif gadget is not None:
            asked += gadget.operands(made, context.target)
    asked.append((circuit.output, "lanes"))
    return [
        (operand, port)
        for operand, port in asked
        if not (_one_row(operand) if port == "row" else _fits(operand, port, context))
    ]


@each
def test_every_operand_fits_its_port(stream: Stream, target: str):
    fitted, context = _fitted(stream, target)
    assert _misfits(over_abc("as written", stream), context) and _misfits(fitted, context) == []


@each
def test_the_fitted_circuit_has_the_same_values(stream: Stream, target: str):
    fitted, _ = _fitted(stream, target)
    expected = interpret(over_abc("as written", stream), LETTERS)[stream]
    assert expected.any() and np.array_equal(interpret(fitted, LETTERS)[fitted.output], expected)


@pytest.mark.parametrize(("lag", "blocks"), [(1, 1), (3, 1), (4, 2), (9, 3), (10, 4)])
def test_the_past_is_carried_by_a_block_for_each_three_positions(lag: int, blocks: int):
    fitted, _ = _fitted(COUNTS[0].shift(lag), "mamba")
    assert sum(isinstance(s.operation, ops.Relu) for s in fitted.streams) == blocks
    signed, _ = _fitted(SIGNED.shift(lag), "mamba")
    assert sum(isinstance(s.operation, ops.Relu) for s in signed.streams) == 2 * blocks  # as a pair


def test_what_fits_is_left_as_it_is():
    fits = concatenate(COUNTS, latch(VALUE.shift(3), is_b.shift(2)), (VALUE + 2 * VALUE.shift(1) - 3).relu())
    assert _fitted(fits, "mamba")[0].output is fits
    assert _fitted(concatenate(fits, TWO_LAGS), "mamba")[0].output is not fits
    assert _fitted(fits, "mamba2")[0].output is not fits  # Δ sees present lanes only


def test_a_lag_beyond_every_sequence_is_0():
    fitted, _ = _fitted(concatenate(COUNTS.shift(24), token.shift(30)), "mamba")
    assert not any(isinstance(s.operation, ops.Relu) for s in fitted.streams)
    assert not interpret(fitted, LETTERS)[fitted.output].any()


def test_a_lag_of_more_blocks_than_are_allowed_is_refused():
    most = REACH * MOST_CARRIED
    assert most == 1536
    with pytest.raises(CompileError, match=r"read 1537 positions later, which takes a block for each 3; 1536 are the"):
        _fitted(VALUE.shift(most + 1), "mamba", length=4000)


def test_what_a_target_lacks_is_refused_with_every_reason():
    with pytest.raises(CompileError) as refused:
        _fitted(concatenate(latch(VALUE, is_a), memory.outer_sum(VALUE, write=SIGNED, read=token[0])), "s4d")
    assert "latch: its Δ does not see the input, so nothing can be erased" in str(refused.value)
    assert "keys that are flags and queries of at least 0 only" in str(refused.value)


def test_a_negative_number_is_refused_where_only_rectified_ones_pass():
    with pytest.raises(CompileError, match="signed"):
        _fitted(SIGNED.cumsum(), "mamba")
