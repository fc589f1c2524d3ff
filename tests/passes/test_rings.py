"""Far shifts: from a ring where that takes fewer blocks, and the same values whichever way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import compiler
from compiler.artifact.package import bare
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens, numbers
from compiler.language.stream import Stream
from compiler.language.types import Int, Real
from compiler.language.words import concatenate, lti
from tests.circuits import abc, over_abc, token

LETTERS = Alphabet.of(x=16)
letters = Tokens(LETTERS)


def _blocks(stream: Stream, length: int = 200, **options) -> int:
    return len(compiler.compile(over_abc("delay", stream, length), **options).blocks)


def _latches(stream: Stream, length: int = 200, **options) -> int:
    compiled = compiler.compile(over_abc("delay", stream, length), **options)
    return sum(isinstance(s.operation, ops.Latch) for s in compiled.core.streams)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("k", [13, 64, 100])
def test_a_far_token_takes_four_blocks_and_is_right_on_the_real_module(k: int, target: str):
    circuit = Circuit(
        "delay", readout_one_hot(letters.one_hot().shift(k), LETTERS), InputLanguage.everything(LETTERS, 300)
    )
    compiled = compiler.compile(circuit, target)
    assert len(compiled.blocks) == 4
    words = np.random.default_rng(k).integers(0, 16, (3, 300))
    scores = compiled.interpret(words)
    assert (scores[:, :k] == 0).all() and (scores[:, k:].argmax(axis=-1) == words[:, :-k]).all()
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(words)).numpy(), scores)


@pytest.mark.parametrize("target, blocks", [("mamba", 4), ("mamba2", 4), ("mamba-delta-t", 3), ("s4d", 22)])
def test_a_target_without_banks_keeps_the_chain(target: str, blocks: int):
    assert _blocks(token.shift(64), target=target) == blocks


@pytest.mark.parametrize(("length", "latched"), [(4_000, False), (4_200, True)])
def test_sums_of_the_remainder_that_float32_does_not_hold_are_latched(length: int, latched: bool):
    """They reach length², about, and float32 holds them to 2^24."""
    circuit = over_abc("delay", token.shift(64), length)
    compiled = compiler.compile(circuit)
    assert any(s.name.startswith("latch") for block in compiled.schedule.blocks for s in block) == latched
    words = np.full((1, length), 1)
    words[0, [0, length - 66, length - 65]] = 2, 2, 0
    scores = compiled.interpret(words)
    assert scores[0, [64, -2, -1]].argmax(axis=-1).tolist() == [2, 2, 0] and (scores[0, :64] == 0).all()
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(words)).numpy(), scores)


def test_signed_and_late_values_go_round_the_same_ring():
    late = (abc.number({"a": 1, "b": -2}).cumsum() * abc.is_in(["c"]).cumsum()).shift(20)
    circuit = over_abc("late", concatenate(late, late.shift(30), token.shift(20).shift(20)), 90)
    compiled = compiler.compile(circuit)
    words = np.random.default_rng(0).integers(0, 3, (2, 90))
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(words)).numpy(), compiled.interpret(words))


def test_a_chain_stays_where_it_is_as_short():
    assert _latches(token.shift(12)) == 0 and _blocks(token.shift(12)) == 4
    assert _latches(token.shift(13)) > 0
    assert _latches(token.shift(12), target="mamba2") == 0


def test_a_chain_stays_where_the_format_does_not_hold_the_ramps():
    """4·N·(N / 65 + 1) ramps must stay in the exact range: float32 holds them to N = 16,000 or so, bfloat16
    hardly any.
    """
    assert _latches(token.shift(64), dtype="bfloat16") == 0
    assert _latches(token.shift(64), 15_000) > 0
    assert _latches(token.shift(64), 20_000) == 0


def test_a_filter_of_many_lags_and_a_real_number_stay_chains():
    assert _latches(lti(abc.is_in(["a"]), [1] * 40)) == 0
    many = concatenate(*(token.shift(k) for k in range(13, 70)))
    assert _latches(many) == 0
    real = Circuit("real", numbers(Real(0, 1), "x").shift(20), length=60)
    assert not any(isinstance(s.operation, ops.Latch) for s in compiler.compile(real).core.streams)
    whole = Circuit("whole", numbers(Int(-3, 3), "x").shift(20), length=60)
    assert any(isinstance(s.operation, ops.Latch) for s in compiler.compile(whole).core.streams)


def test_a_shift_past_every_sequence_is_zero():
    assert _blocks(concatenate(token.shift(64)), 64) == 0


def test_no_work_grows_with_the_promised_length():
    assert _blocks(token.shift(2), 10**15) == 1
