"""Memories in two digits: the same answers from fewer columns, for every policy, key and query; or a refusal."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import compiler
from compiler.artifact import package
from compiler.artifact.package import bare
from compiler.errors import CompileError
from compiler.exactness.compare import Miscompiled
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import concatenate, count, present
from compiler.passes.represent import digits
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.lists import LongestIncreasingSubsequence
from constructions.copy_dp.words import EditDistance
from tests.circuits import over_abc

MIXERS = ["mamba", "mamba2"]
KEYS, VALUES = 11, 4
LETTERS = Alphabet.of("_", k=KEYS, v=VALUES)
x = Tokens(LETTERS)
key, is_value = x.one_hot("k"), x.is_in("v")
number = x.number({f"v{i}": 2 * i - 3 for i in range(VALUES)}, "number")  # −3, −1, 1, 3


def _plain(policy: str, words: np.ndarray, lag: int, when: bool) -> np.ndarray:
    """A dictionary: what stands under the present key, values written under the key `lag` positions before them."""
    said = np.zeros(words.shape)
    for word, out in zip(words, said, strict=True):
        held: dict[int, int] = {}
        for t, token in enumerate(word):
            at = word[t - lag] if t >= lag else 0
            worth = 2 * (token - 1 - KEYS) - 3 if token > KEYS else 0
            if 1 <= at <= KEYS and (token > KEYS or not when):
                if policy == "sum":
                    held[at] = held.get(at, 0) + worth
                else:
                    held.setdefault(at, worth)
            out[t] = held.get(token, 0) if 1 <= token <= KEYS else 0
    return said


def _runs(circuit: Circuit, target: str, most: int, words: np.ndarray) -> tuple[np.ndarray, compiler.Compiled]:
    compiled = compiler.compile(circuit, target, max_d_state=most)
    assert max(block.d_state for block in compiled.blocks) <= most
    with torch.no_grad():
        scores = bare(compiled)(torch.from_numpy(words)).numpy()
    assert np.array_equal(scores, compiled.interpret(words))
    return scores, compiled


@pytest.mark.parametrize("target", MIXERS)
@pytest.mark.parametrize("most", [1, 3, 4, 10])
@pytest.mark.parametrize("policy", ["sum", "first"])
def test_a_memory_under_tokens_is_a_dictionary(policy: str, most: int, target: str):
    read = memory.write(key.shift(1), number, is_value, policy).read(key)
    words = np.random.default_rng(most).integers(0, LETTERS.size, (30, 25))
    scores, _ = _runs(Circuit("dict", read, InputLanguage.everything(LETTERS, 25)), target, most, words)
    assert np.array_equal(scores[..., 0], _plain(policy, words, 1, True))


@pytest.mark.parametrize("target", MIXERS)
@pytest.mark.parametrize("policy", ["sum", "first"])
def test_without_a_condition_every_key_writes(policy: str, target: str):
    read = memory.write(key.shift(2), number, policy=policy).read(key)
    words = np.random.default_rng(1).integers(0, LETTERS.size, (30, 25))
    scores, _ = _runs(Circuit("dict", read, InputLanguage.everything(LETTERS, 25)), target, 4, words)
    assert np.array_equal(scores[..., 0], _plain(policy, words, 2, False))


@pytest.mark.parametrize("target", MIXERS)
@pytest.mark.parametrize("offset", [0, -2, 3])
def test_a_memory_under_places_reads_nothing_outside(offset: int, target: str):
    """Ten slots for places that run from before the first to beyond the last one, asked one place later."""
    at = is_value.cumsum() + offset
    text = memory.write(at.one_hot(10), x.one_hot("v"), when=is_value & ~present(x.is_in(["_"])), name="text")
    back = x.is_in("k").cumsum()
    circuit = Circuit("places", text.read(back.one_hot(10)), InputLanguage.everything(LETTERS, 24))
    words = np.random.default_rng(2).integers(1, LETTERS.size, (30, 24))
    words[:15, 18] = 0
    scores, _ = _runs(circuit, target, 4, words)
    for word, out in zip(words, scores, strict=True):
        held: dict[int, list[int]] = {}
        written = keys = 0
        ended = False
        for t, token in enumerate(word):
            ended = ended or token == 0
            written, keys = written + (token > KEYS), keys + (1 <= token <= KEYS)
            if token > KEYS and not ended and 0 <= written + offset < 10:
                held.setdefault(written + offset, [0] * VALUES)[token - 1 - KEYS] += 1
            assert np.array_equal(out[t], held.get(keys, [0] * VALUES) if keys < 10 else [0] * VALUES)


@pytest.mark.parametrize("target", MIXERS)
def test_a_query_of_two_slots_reads_both(target: str):
    """One memory for the letters of two words, as in edit distance: the sum of a read for each."""
    circuit = EditDistance(length=3).circuit()
    words = circuit.language.sample(20, 12, seed=0)
    plain = compiler.compile(circuit, target)
    scores, split = _runs(circuit, target, 3, words)
    assert np.array_equal(scores, plain.interpret(words))
    assert sum(isinstance(s.operation, ops.GatedRead) for s in split.core.streams) == 2


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("target", MIXERS)
def test_copying_by_place_in_every_dtype(target: str, dtype: str):
    circuit = Copy(n=20, vocab=3, form="place").circuit()
    compiled = compiler.compile(circuit, target, dtype, max_d_state=5)
    words = circuit.language.sample(20, 20, seed=0)
    model = bare(compiled).to(getattr(torch, dtype))
    with torch.no_grad():
        scores = model(torch.from_numpy(words)).float().numpy()
    assert np.array_equal(scores, compiled.interpret(words))
    assert max(block.d_state for block in compiled.blocks) == 5
    state = sum(compiled.context.target.state_entries(block) for block in compiled.blocks)
    assert state == 20 * 3 + 1  # N·d and the count


def test_a_thousand_places_and_sixteen_letters_fit_32_columns():
    """The specification's case: d_state at most 64, the state at most twice N·d."""
    compiled = compiler.compile(Copy(n=1024, vocab=16, form="place").circuit(), max_d_state=64)
    widest = max(package.packaged_sizes(compiled), key=lambda size: size.d_inner * size.d_state)
    assert (len(compiled.blocks), widest.d_inner, widest.d_state) == (3, 578, 32)  # as docs/copy.md says
    held = sum(size.d_inner * size.d_state for size in package.packaged_sizes(compiled))
    assert held <= 2 * 1024 * 16
    words = compiled.source.language.sample(2, 300, seed=0)
    with torch.no_grad():
        scores = bare(compiled)(torch.from_numpy(words)).numpy()
    names = compiled.source.alphabet.tokens
    for row, out in zip(words, scores, strict=True):
        said = [names[token].split("@") for token in row]
        for t, (_, place) in enumerate(said):
            wanted = said[int(place) - 1][0] if int(place) <= t + 1 else "."
            assert names[out[t].argmax()] == wanted


def test_more_than_256_slots_are_split_unless_more_columns_are_asked_for():
    letters = Alphabet.of(k=300)
    tokens = Tokens(letters)
    read = memory.write(tokens.one_hot("k").shift(1), tokens.number({"k0": 1, "k299": 2})).read(tokens.one_hot("k"))
    circuit = Circuit("many", read, InputLanguage.everything(letters, 9))
    assert max(block.d_state for block in compiler.compile(circuit).blocks) == 32
    assert max(block.d_state for block in compiler.compile(circuit, max_d_state=300).blocks) == 300
    assert max(block.d_state for block in compiler.compile(circuit, "mamba-delta-t").blocks) == 300


def _codes(most: int | None = None) -> compiler.Compiled:
    from compiler.language.codebook import random_balanced

    code = x.code("k", random_balanced(KEYS, 12, seed=0), "code")
    read = memory.write(code.shift(1), is_value).read(code)
    return compiler.compile(Circuit("codes", read, InputLanguage.everything(LETTERS, 9)), max_d_state=most)


def test_what_cannot_be_split_is_refused_with_the_columns_that_would_do():
    with pytest.raises(CompileError, match="it has 12 slots, max_d_state is 4, .* one-hot; 12 columns would do"):
        _codes(4)
    assert max(block.d_state for block in _codes(12).blocks) == 12
    with pytest.raises(CompileError, match="cannot be split"):
        compiler.compile(LongestIncreasingSubsequence(length=3, values=9).circuit(), max_d_state=3)
    with pytest.raises(CompileError, match="s4d has no gated memories"):
        compiler.compile(over_abc("s4d", _abc_memory(), 9), "s4d", max_d_state=2)
    with pytest.raises(ValueError, match="max_d_state is 0, and it must be at least 1"):
        compiler.compile(over_abc("none", _abc_memory(), 9), max_d_state=0)


def _abc_memory() -> Stream:
    from tests.circuits import is_a, token

    return memory.write(token, is_a).read(token)


def test_other_states_with_more_columns_than_asked_for_are_refused():
    from compiler.language.words import dot
    from tests.circuits import abc

    many = abc.number({"a": 1, "b": 2, "c": 3})
    wide = concatenate(*(many.cumsum() for _ in range(3)))
    with pytest.raises(CompileError, match="its state has 3 columns, and max_d_state is 2; 3 would do"):
        compiler.compile(over_abc("dot", dot(wide, wide), 9), max_d_state=2)


def test_a_bank_that_ignores_the_high_digit_is_found(monkeypatch: pytest.MonkeyPatch):
    """Planted: every channel stores every value."""
    right = digits._bank
    monkeypatch.setattr(digits, "_bank", lambda rewriter, stored, written: right(rewriter, stored, 0 * written + 1))
    read = memory.write(key.shift(1), number, is_value).read(key)
    with pytest.raises(Miscompiled):
        compiler.compile(Circuit("dict", read, InputLanguage.everything(LETTERS, 25)), max_d_state=4)


def test_a_query_under_a_late_condition_reads_nothing_where_it_fails():
    since = count(x.is_in("k"), reset=x.is_in(["_"]))
    asked = since.one_hot(9) & present(x.is_in(["v0"]))
    read = memory.write(since.one_hot(9), number).read(asked)
    words = np.random.default_rng(3).integers(0, LETTERS.size, (20, 20))
    scores, compiled = _runs(Circuit("late", read, InputLanguage.everything(LETTERS, 20)), "mamba", 3, words)
    plain = compiler.compile(compiled.source, max_d_state=9)
    assert np.array_equal(scores, plain.interpret(words))


def test_a_checkpoint_remembers_how_many_columns_were_allowed(tmp_path):
    from constructions.checkpoints.saved import rebuild, verify_checkpoint

    read = memory.write(key.shift(1), number, is_value, "first").read(key)
    circuit = Circuit("own", _scores(read), InputLanguage.everything(LETTERS, 12))
    compiler.compile(circuit, max_d_state=3).save(tmp_path / "own")
    built = rebuild(tmp_path / "own")
    assert built.compiled.max_d_state == 3
    assert verify_checkpoint(tmp_path / "own", samples=5).good


def _scores(read: Stream) -> Stream:
    from compiler.language.output import readout_integer

    return readout_integer(read, LETTERS, {f"v{i}": 2 * i - 3 for i in range(VALUES)})
