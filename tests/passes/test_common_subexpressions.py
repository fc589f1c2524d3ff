"""Common subexpressions are one stream, and chains of flags cost one block."""

from __future__ import annotations

import numpy as np
import pytest

import compiler
from compiler.context import Context
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language.circuit import Circuit
from compiler.language.source import Tokens, numbers
from compiler.language.stream import Stream, constant
from compiler.language.types import Int
from compiler.language.words import concatenate, latch_bank
from compiler.passes.common_subexpressions import common_subexpressions
from compiler.targets import target_of
from tests.circuits import abc, counters, is_a, is_b, is_c, logits, over_abc, token


def _shared(circuit: Circuit) -> Circuit:
    return common_subexpressions(circuit, Context.of(circuit, target_of("mamba")))[0]


def test_what_is_written_twice_is_one_stream():
    def written() -> Stream:
        return (2 * Tokens(abc.alphabet).one_hot().shift(1)[[0, 2]] - 1).relu()

    shared = _shared(over_abc("twice", concatenate(written(), written())))
    once = _shared(over_abc("once", written()))
    assert len(shared.streams) == len(once.streams) + 1


def test_other_attributes_inputs_or_numeric_inputs_are_other_streams():
    x, y = numbers(Int(0, 3), "x"), numbers(Int(0, 3), "x")
    different = [
        x,
        y,
        x.shift(1),
        x.shift(2),
        y.shift(1),
        2 * x,
        3 * x,
        x.clip(0, 1),
        x.clip(0, 2),
        constant(1),
        constant(2),
    ]
    circuit = Circuit("different", concatenate(*different), length=4)
    assert len(_shared(circuit).streams) == len(circuit.streams)


def test_the_circuit_as_written_is_left_alone():
    circuit = over_abc("twice", concatenate(counters[0] + 1, is_a.cumsum() + 1))
    before = [(s, s.inputs, s.name, s.origin) for s in circuit.streams]
    compiler.compile(circuit)
    assert [(s, s.inputs, s.name, s.origin) for s in circuit.streams] == before


def test_memories_whose_keys_are_written_twice_share_a_block():
    def read(value: Stream) -> Stream:
        flag = (counters[0] > 1) & is_b.shift(1)
        return memory.write(Tokens(abc.alphabet).one_hot().shift(1), value, when=flag).read(
            Tokens(abc.alphabet).one_hot()
        )

    one, two = (compiler.compile(over_abc("reads", s)) for s in (read(is_a), concatenate(read(is_a), read(is_c))))
    assert len(two.blocks) == len(one.blocks)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_a_bank_that_is_also_read_behind_a_gate_keeps_its_lanes(target: str):
    """A memory of the last values is a bank behind a gate; the same bank read outright is another."""
    bank = latch_bank(counters[0], token)
    last = memory.write(token, counters[0], policy="last").read(token.shift(1))
    compiled = compiler.compile(over_abc("bank", concatenate(bank, last), 8), target)
    tokens = compiled.source.language.sample(20, 8, seed=0)
    assert np.array_equal(
        logits(compiled, tokens), interpret(compiled.source, tokens)[compiled.source.output].astype(float)
    )


# Chains of flags -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 3, 7, 64, 150])
def test_chains_of_flags_are_one_block_deep(length: int):
    flags = [counters[0] > i % 5 for i in range(length)]
    both, either = flags[0], flags[0]
    for i, flag in enumerate(flags[1:]):
        both, either = both & (flag | is_b), either | (flag & ~(is_c | (counters[1] == i % 3)))
    compiled = compiler.compile(over_abc("chain", concatenate(both, either), 6))
    assert len(compiled.blocks) <= (4 if length <= 64 else 8)
    tokens = np.array(list(compiled.source.language.strings(5)))
    assert np.array_equal(
        logits(compiled, tokens), interpret(compiled.source, tokens)[compiled.source.output].astype(float)
    )
