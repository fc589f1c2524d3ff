"""Blocks and head: lane by lane what the streams are, the head as written, and weights that no float holds."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.context import Context
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.ir.block import SelectiveBlock
from compiler.language import memory
from compiler.language.stream import Stream
from compiler.language.words import concatenate, latch
from compiler.lowering.lanes import Lanes
from compiler.passes.allocate import allocate
from compiler.passes.lower import lower
from compiler.passes.schedule import Schedule, schedule
from compiler.targets import target_of
from tests.circuits import abc, is_a, is_b, is_c, over_abc, token

LETTERS = np.random.default_rng(0).integers(0, 3, (6, 12))
VALUE = abc.number({"a": 4, "b": 1, "c": 0}, name="value")
COUNTS = token.cumsum()
RAMP = (COUNTS[0] - 2 * COUNTS[1] + 1).relu()
KEPT = latch(VALUE, is_b)
LAST = memory.outer_sum(VALUE, write=token.shift(1), read=token)
EVERYWHERE = ("mamba", "mamba2", "mamba-delta-t", "s4d")
SELECTIVE = EVERYWHERE[:3]

# What blocks compute as they stand (core operations that fit their ports), and where.
STREAMS = {
    "sums": (COUNTS, EVERYWHERE),
    "rectified sums": (concatenate(RAMP, (RAMP - 3).relu()), EVERYWHERE),
    "product": (COUNTS[2] * VALUE, EVERYWHERE),
    "latch": (KEPT, SELECTIVE),
    "sum of latched": ((KEPT + VALUE.shift(2).relu()).cumsum(), ("mamba", "mamba-delta-t")),
    "memory": (LAST, ("mamba", "mamba-delta-t")),
    "two states": (concatenate(LAST, COUNTS, RAMP * is_c), ("mamba",)),
}
ON = [(stream, target) for stream, targets in STREAMS.values() for target in targets]
NAMES = [f"{name}-{target}" for name, (_, targets) in STREAMS.items() for target in targets]


def _lowered(stream: Stream, target: str = "mamba") -> tuple[Schedule, Lanes, tuple[SelectiveBlock, ...], np.ndarray]:
    circuit = over_abc("lowered", stream)
    context = Context.of(circuit, target_of(target))
    plan = schedule(circuit, context)
    lanes = allocate(plan)
    blocks, head = lower(plan, lanes, context)
    return plan, lanes, blocks, head.toarray()


def _run(lanes: Lanes, blocks: tuple[SelectiveBlock, ...]) -> list[np.ndarray]:
    """The residual before the first block and after each."""
    after = [lanes.embedding.toarray()[LETTERS]]
    for block in blocks:
        after.append(after[-1] + block.run(after[-1]))
    return after


@pytest.mark.parametrize(("stream", "target"), ON, ids=NAMES)
def test_each_block_writes_the_values_of_its_streams_and_nothing_else(stream: Stream, target: str):
    plan, lanes, blocks, _ = _lowered(stream, target)
    residual = _run(lanes, blocks)
    values = interpret(plan.circuit, LETTERS, keep=[s for block in plan.blocks for s in block])
    assert len(blocks) == len(plan.blocks) > 0
    for operations, before, after in zip(plan.blocks, residual, residual[1:], strict=False):
        expected = before.copy()
        for made in operations:
            held = lanes.index[made] >= 0
            assert not before[..., lanes.index[made][held]].any()
            expected[..., lanes.index[made][held]] = values[made][..., held]
        assert np.array_equal(after, expected)


@pytest.mark.parametrize(("stream", "target"), ON, ids=NAMES)
def test_the_head_reads_the_output_from_the_last_residual(stream: Stream, target: str):
    _, lanes, blocks, head = _lowered(stream, target)
    expected = interpret(over_abc("output", stream), LETTERS)[stream]
    assert expected.any() and np.array_equal(_run(lanes, blocks)[-1] @ head.T, expected)


def test_two_blocks_against_plain_integers():
    """relu(#a − 2·#b + 1) on the c's, and the sum of the letters' values."""
    worth = {0: 4, 1: 1, 2: 0}
    stream = concatenate(RAMP * is_c, VALUE.cumsum())
    _, lanes, blocks, head = _lowered(stream)
    for word, rows in zip(LETTERS.tolist(), _run(lanes, blocks)[-1] @ head.T, strict=True):
        for t, letter in enumerate(word):
            seen = word[: t + 1]
            ramp = max(0, seen.count(0) - 2 * seen.count(1) + 1)
            assert rows[t].tolist() == [ramp * (letter == 2), sum(worth[x] for x in seen)]


def test_head_rows_are_the_weights_of_the_output():
    _, lanes, _, head = _lowered(concatenate(2 * COUNTS[1] - VALUE / 4 + 3, COUNTS[1] + COUNTS[2]))
    rows = [{name: w for name, w in zip(lanes.names, row, strict=True) if w} for row in head.tolist()]
    assert rows == [
        {"token.cumsum()[1]": 2, "value": -0.25, "one": 3},
        {"token.cumsum()[1]": 1, "token.cumsum()[2]": 1},
    ]


def test_a_linear_circuit_is_a_head_alone():
    _, lanes, blocks, head = _lowered(3 * VALUE - 2 * is_a)
    assert blocks == () and (_run(lanes, blocks)[-1] @ head.T)[LETTERS == 0].tolist() == [[10]] * (LETTERS == 0).sum()


@pytest.mark.parametrize(
    ("wrap", "named"),
    [(lambda s: s, "is_a"), (Stream.relu, "relu"), (Stream.cumsum, "cumsum")],
    ids=["head", "relu", "sum"],
)
def test_a_weight_that_no_float_holds_is_refused_with_its_operation(wrap, named: str):
    """`is_a` and `token[0]` share a lane, so their weights fold there and no earlier: 2^53 + 1."""
    with pytest.raises(CompileError, match=f"{named}.*fold to 9007199254740993, which no float64 holds"):
        _lowered(wrap(2.0**53 * is_a + token[0]))


def test_columns_with_a_weight_that_no_float_holds_are_refused():
    """A row of C adds the ramps of a one-hot up, of which neighbours have weights of sizes far apart."""
    fine = 2.0**-84
    rows = np.array([[3, 5 * fine, 0, -fine, 5 * fine], [fine, 0, 0, 3 * fine, 0]])
    near = abc.number({"a": 2, "b": 1, "c": 1})
    with pytest.raises(CompileError, match=r"block \d+: its weights fold to .*, which no float64 holds"):
        compile(over_abc("columns", memory.outer_sum(near, write=token[:2], read=rows @ near.one_hot(5))), "mamba")
