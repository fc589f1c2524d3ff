"""From circuits to blocks: on every target the block IR, the interpreter and the oracles agree exactly."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compiler.compiled import Compiled, run_blocks
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language.circuit import Circuit
from compiler.targets import target_names
from tests import random_circuits
from tests.circuits import CASES, Case, logits, mistakes, words
from tests.spread import some

COMPILED = [pytest.param(case, target, id=f"{case.name}-{target}") for case in CASES for target in case.targets]
REFUSED = [pytest.param(case, target, id=f"{case.name}-{target}") for case in CASES for target in case.refused]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_interpreter_agrees_with_the_oracle(case: Case):
    circuit = case.build()
    for tokens in words(case, circuit):
        outputs = interpret(circuit, tokens)[circuit.output]
        assert mistakes(case, circuit, tokens, outputs) == []


@pytest.mark.parametrize(("case", "target"), COMPILED)
def test_blocks_agree_with_the_interpreter_lane_by_lane(case: Case, target: str):
    circuit, compiled = case.build(), case.compiled(target)
    for tokens in words(case, circuit):
        _check_equal(circuit, compiled, tokens)


@pytest.mark.parametrize(("case", "target"), REFUSED)
def test_refusals_name_the_operation_and_the_reason(case: Case, target: str):
    """Where Gated DeltaNet refuses none: a circuit without a sum over the past is named in `case.ADDING_NOTHING`."""
    with pytest.raises(CompileError, match=case.refused[target]):
        compile(case.build(), target)


def test_every_case_says_what_every_target_does_with_it():
    for case in CASES:
        assert {*case.targets, *case.refused} == set(target_names()), case.name


def _check_equal(circuit: Circuit, compiled: Compiled, tokens: np.ndarray) -> None:
    expected = interpret(circuit, tokens)[circuit.output].astype(float)
    assert np.array_equal(logits(compiled, tokens), expected)
    assert np.array_equal(compiled.interpret(tokens), expected)
    last = run_blocks(compiled, tokens)[-1]
    assert np.array_equal(last, compiled.lane_values(tokens))


@pytest.mark.parametrize("target", target_names())
@settings(max_examples=len(some(range(100), 0.04)), deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_random_circuits(target: str, data):
    """Exact on every random circuit, or refused with a CompileError."""
    circuit = random_circuits.build(lambda n: data.draw(st.integers(0, n - 1)))
    tokens = random_circuits.random_tokens(np.random.default_rng(0), 12)
    try:
        compiled = compile(circuit, target)
    except CompileError:
        return
    _check_equal(circuit, compiled, tokens)


def test_taps_of_unequal_lags_are_exact_in_float32():
    """3 and 1 are no multiples of each other, but both of one row of integers."""
    from tests.circuits import abc, over_abc

    x = abc.number({"a": 2, "b": 1})
    circuit = over_abc("taps", (3 * x + x.shift(1) - 5 * x.shift(2) - 2).relu())
    compiled = compile(circuit, "mamba")
    (block,) = compiled.blocks
    assert np.array_equal(block.features.taps.astype(np.float32), block.features.taps)
    _check_equal(circuit, compiled, words(CASES[0], circuit)[-1])
