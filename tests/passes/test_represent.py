"""Every rewriting is an identity: a circuit and what the passes make of it mean the same, in exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.context import Context
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.words import concatenate
from compiler.passes.check import check
from compiler.passes.fit_ports import fit_ports
from compiler.passes.represent import represent
from compiler.targets import target_names, target_of
from tests import random_circuits
from tests.circuits import CASES, FILES, Case, words
from tests.spread import some


def _represented(circuit: Circuit, target: str = "mamba") -> tuple[Circuit, Context]:
    check(circuit)
    context = Context.of(circuit, target_of(target))
    return represent(circuit, context)


def _same(circuit: Circuit, core: Circuit, tokens: np.ndarray) -> None:
    before, after = (interpret(c, tokens)[c.output] for c in (circuit, core))
    assert (before == after).all()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_shared_circuits_keep_their_meaning(case: Case):
    circuit = case.build()
    core, context = _represented(circuit)
    assert all(s.operation.core or s.operation.free for s in core.streams)
    for tokens in words(case, circuit):
        _same(circuit, core, tokens)
    assert all(
        context.domains.of(s.inputs[0]).lo >= 0
        for s in core.streams
        if isinstance(s.operation, (ops.Cumsum, ops.Latch, ops.MemoryRead))
    )


@pytest.mark.parametrize("target", target_names())
@settings(max_examples=len(some(range(60), 0.02)), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_circuits_keep_their_meaning(target: str, data):
    """After represent, and again after fit."""
    circuit = random_circuits.build(lambda n: data.draw(st.integers(0, n - 1)))
    tokens = random_circuits.random_tokens(np.random.default_rng(0), 8)
    try:
        core, context = _represented(circuit, target)
        _same(circuit, core, tokens)
        _same(circuit, fit_ports(core, context)[0], tokens)
    except CompileError:
        pass


def test_functions_of_one_token_fold_into_the_embedding():
    from tests.circuits import is_a, is_b, over_abc, token

    number = token.lookup([3, 0, 1])
    folded = concatenate(is_a | ~is_b, number > 1, number * number, (number - 1).relu())
    core, _ = _represented(over_abc("folded", folded))
    assert {type(s.operation) for s in core.streams} <= {ops.Embed, ops.Linear}


def test_functions_of_one_past_token_fold_too():
    from tests.circuits import is_a, is_b, over_abc

    core, _ = _represented(over_abc("folded", is_a.shift(1).shift(1) | is_b.shift(2)))
    assert {type(s.operation) for s in core.streams} == {ops.Embed, ops.Shift}


def test_new_streams_keep_the_line_they_come_from():
    from tests.circuits import counters, over_abc

    core, _ = _represented(over_abc("where", counters[0] > counters[1]))
    assert {s.origin.split(":")[0] for s in core.streams} <= {*FILES, "test_represent.py"}
