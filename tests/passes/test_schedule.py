"""The schedule: deep and wide graphs, conflicts, and work that grows with the graph and no faster."""

from __future__ import annotations

import sys
from cProfile import Profile

import pytest

from benchmarks.schedule import CIRCUITS, circuit, planned
from compiler.driver import compile
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.stream import constant
from compiler.language.words import concatenate, latch
from compiler.passes.schedule import Schedule
from tests.circuits import CASES, abc, is_a, is_b, over_abc, token


def _calls(run) -> int:
    """How many Python functions a run calls: a measure of work that no other process disturbs."""
    calls = Profile(builtins=False)
    calls.runcall(run)
    return sum(entry.callcount for entry in calls.getstats())


@pytest.mark.parametrize("build", CIRCUITS, ids=lambda build: build.__name__)
def test_work_is_linear_in_the_graph(build):
    small, large = (circuit(build, size) for size in (150, 600))
    assert _calls(lambda: planned(large)) < 5 * _calls(lambda: planned(small))


@pytest.mark.parametrize("build", CIRCUITS, ids=lambda build: build.__name__)
def test_deep_graphs_do_not_hit_the_recursion_limit(build):
    planned(circuit(build, sys.getrecursionlimit() + 200))


def _check_order(plan: Schedule) -> None:
    """Every operand that stands on lanes was computed in an earlier block."""
    block_of = {s: i for i, block in enumerate(plan.blocks) for s in block}
    for stream, block in block_of.items():
        pending = list(stream.inputs)
        while pending:
            source = pending.pop()
            if source in block_of:
                served = isinstance(source.operation, ops.Relu)  # a rectifier may also be computed again in the block
                assert block_of[source] < block or served
            else:
                pending += source.inputs


@pytest.mark.quick
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_operands_come_first(case):
    for target in case.targets:
        _check_order(case.compiled(target).schedule)


def _blocks(stream, target: str = "mamba") -> int:
    return len(compile(over_abc("counted", stream), target).blocks)


def test_how_many_blocks_circuits_take():
    follows = memory.write(token.shift(1), token, policy="last").read(token)
    assert _blocks(concatenate(is_a, token)) == 0
    assert _blocks(is_a.shift(1)) == 1
    assert _blocks(is_a.shift(6)) == 2
    assert _blocks(follows) == 1
    assert _blocks(concatenate(is_a.cumsum(), latch(token, is_b))) == 1  # they share the constant column
    assert _blocks(is_a.cumsum() > is_b.cumsum()) == 2


def test_memories_with_different_columns_take_a_block_each():
    x = abc.number({"a": 1, "b": 2})
    same = [memory.write(token, value).read(token) for value in (x, is_a)]
    other = memory.write(token.shift(1), x).read(token)
    assert _blocks(concatenate(*same)) == 1
    assert _blocks(concatenate(same[0], other)) == 2


def test_what_nobody_reads_takes_no_block():
    assert _blocks((is_a.cumsum() * 0 + constant(1)).shift(0)) == 0
