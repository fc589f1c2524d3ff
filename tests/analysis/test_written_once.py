"""policy="once": what the prover accepts is written once in every string of the language; what is not, is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import compiler
from compiler.analysis import paths
from compiler.analysis.domains import Domains
from compiler.analysis.written_once import doubt
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import memory, output
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens, numbers, position
from compiler.language.stream import Stream, constant
from compiler.language.types import Int, OneHot
from compiler.language.words import concatenate, count, latch, present, select
from tests import random_languages
from tests.random_languages import every_string, letters
from tests.spread import some

# Random memories over random languages ------------------------------------------------------------------------------

KEYS = [
    lambda p, choose: (p().cumsum() - choose(2)).one_hot(4),
    lambda p, choose: p().cumsum().shift(1).one_hot(4),
    lambda p, choose: (p().cumsum() + p().cumsum()).one_hot(4),
    lambda p, choose: (p().cumsum() - p().cumsum()).one_hot(4),
    lambda p, choose: count(p(), p()).one_hot(4),
    lambda p, choose: (2 * count(p(), p()) + p().cumsum()).one_hot(6),
    lambda p, choose: (count(p(), p()) + (2 + choose(4)) * p().cumsum()).one_hot(8),
    lambda p, choose: (position() - latch(position(), p())).one_hot(5),
    lambda p, choose: (position() - 1).one_hot(6).shift(choose(3)),
    lambda p, choose: p().cumsum().one_hot(4) & p(),
    lambda p, choose: letters.one_hot().shift(choose(3)),
    lambda p, choose: letters.one_hot(["a", "c"]) & p(),
    lambda p, choose: (letters.one_hot() & p()).shift(1),
    lambda p, choose: latch(letters.one_hot(), p()),
    lambda p, choose: (p() & constant(1)).one_hot(2),
]


def _random(choose) -> tuple[InputLanguage, Stream, Stream, Stream]:
    """(language, read, key, when)."""
    language, flag = random_languages.language(choose), random_languages.flags(choose, made=2)
    key = KEYS[choose(len(KEYS))](flag, choose)
    when = flag() & flag() if choose(3) else flag()
    return language, memory.write(key, letters.one_hot(), when, "once").read(key), key, when


def _most_writes(language: InputLanguage, key: Stream, when: Stream) -> int:
    """The most writes of one slot in any string. Counts of a few letters: floats hold them all."""
    written = key * when
    circuit = Circuit("", written, language)
    sums = [interpret(circuit, batch, dtype=float)[written].sum(axis=1).max() for batch in every_string(language)]
    return int(max(sums, default=0))


def test_whenever_it_says_once_no_string_writes_a_slot_twice():
    rng = np.random.default_rng(1)

    def choose(n: int) -> int:
        return int(rng.integers(n))

    proved = once = 0
    tried = some(range(400), 0.006)
    for _ in tried:
        language, read, key, when = _random(choose)
        reason = doubt(read, Domains(language, language.max_length))
        most = _most_writes(language, key, when)
        once += most <= 1
        if reason is None:
            proved += 1
            assert most <= 1, (language.edges, key, when)
    assert once < 0.95 * len(tried) and proved >= 0.6 * once, (proved, once)


# What dynamic programming needs -------------------------------------------------------------------------------------

TEXT = Alphabet.of("a", "b", "|", ";")
text = Tokens(TEXT)
letter, bar = text.is_in(["a", "b"]), text.is_in(["|"])
place = count(letter, reset=bar)
copies = InputLanguage.of(
    TEXT,
    "word",
    [("word", "word", ["a", "b"]), ("word", "copy", ["|"]), ("copy", "copy", ["a", "b"])],
    200,
    "a word, a bar, its copy",
)
rows = InputLanguage.of(
    TEXT, "row", [("row", "row", ["a", "b"]), ("row", "row", ["|"])], 200, "words, each with a bar behind it"
)


def _doubt(key: Stream, when: Stream | None, language: InputLanguage | None) -> str | None:
    read = memory.write(key, constant(1), when, "once").read(key)
    return doubt(read, Domains(language, language.max_length if language else 9))


def test_a_count_that_is_reset_before_the_second_visit_writes_once_in_the_first():
    before = ~present(bar)
    assert _doubt(place.one_hot(9), letter & before, copies) is None
    assert "need not rise" in _doubt(place.one_hot(9), letter, copies)
    assert "need not rise" in _doubt(place.one_hot(9), letter, rows)
    assert _doubt(place.one_hot(9), letter & before, rows) is None
    assert "a | b" in _doubt(place.one_hot(9), letter, InputLanguage.of(
        TEXT, "a", [("a", "bar", ["a"]), ("bar", "b", ["|"]), ("b", "end", ["b"])], 9, ""
    ))  # fmt: skip


@pytest.mark.quick
def test_a_reset_that_the_other_counts_outgrow_is_a_rise():
    two_words = InputLanguage.of(
        TEXT,
        "a0",
        [("a0", "a1", ["a"]), ("a1", "a2", ["a"]), *((f"a{i}", "b0", ["|"]) for i in range(3))]
        + [("b0", "b1", ["b"]), ("b1", "b2", ["b"])],
        5,
        "two words of at most two letters",
    )
    assert _doubt((place + 3 * bar.cumsum()).one_hot(99), letter, two_words) is None
    assert "need not rise" in _doubt((place + bar.cumsum()).one_hot(99), letter, two_words)


def test_a_write_must_rise_with_the_count():
    every = constant(1)
    assert _doubt(letter.cumsum().one_hot(9), letter, rows) is None
    assert "need not rise" in _doubt(letter.cumsum().one_hot(9), every, rows)
    assert _doubt(position().one_hot(9), every, rows) is None
    assert _doubt((position() - 1).one_hot(9).shift(1), every, rows) is None
    assert _doubt((2 * position() + letter.cumsum()).one_hot(9), every, rows) is None
    assert "no count that only grows" in _doubt((letter.cumsum() - bar.cumsum()).one_hot(9), letter, rows)


def test_a_condition_that_nobody_can_foresee_may_be_counted_itself():
    doubtful = (letter.cumsum() * bar.cumsum()) > 3
    assert _doubt(doubtful.cumsum().one_hot(9), doubtful, rows) is None
    assert _doubt(doubtful.cumsum().one_hot(9), doubtful & letter, rows) is None
    assert _doubt((doubtful & letter).cumsum().one_hot(9), letter & doubtful, rows) is None
    assert "need not rise" in _doubt((doubtful & letter).cumsum().one_hot(9), doubtful, rows)
    assert "need not rise" in _doubt(doubtful.cumsum().one_hot(9), letter, rows)


def test_numbers_may_be_stored_by_their_place():
    key = position().one_hot(9)
    assert _doubt(key, None, None) is None
    x = numbers(Int(-3, 3), "x")
    assert "only grows" in _doubt(x.one_hot(3), None, None)
    assert "slot 0 twice" in _doubt(numbers(OneHot(2), "k"), None, None)


PAIRS = Alphabet.of("?", k=3, v=2)
pairs = Tokens(PAIRS)
asked = InputLanguage.of(
    PAIRS,
    "key",
    [("key", "value", "k", True), ("value", "key", "v"), ("key", "ask", ["?"]), ("ask", "ask", "k")],
    60,
    "distinct keys with values, then questions",
)
bound = pairs.is_in("k").shift(1) & pairs.is_in("v")


def test_a_token_of_a_distinct_edge_is_written_once_though_it_is_asked_often():
    key = pairs.one_hot("k")
    assert _doubt(key.shift(1), bound, asked) is None
    assert "'k0' from being written twice along 'key' → 'value', 'ask' → 'ask'" in _doubt(key, pairs.is_in("k"), asked)
    assert "make the edge distinct" in _doubt(key.shift(1), bound, InputLanguage.everything(PAIRS, 9))


def test_two_tokens_of_one_slot_are_two_writes():
    both = pairs.one_hot("k")[[0, 1]]
    shared = concatenate(both.sum(), pairs.one_hot("k")[2])
    assert _doubt(shared.retyped(OneHot(2)).shift(1), bound, asked) is not None


def test_too_many_paths_are_refused_with_the_limit(monkeypatch):
    monkeypatch.setattr(paths, "MOST_STEPS", 2)
    assert "more than 2 steps" in _doubt(place.one_hot(9), letter & ~present(bar), copies)


# In circuits ------------------------------------------------------------------------------------------------------


def _recall(policy: str, length: int) -> Circuit:
    key, value = pairs.one_hot("k"), pairs.one_hot("v")
    read = memory.write(key.shift(1), value, bound, policy).read(key)
    return Circuit("recall", output.readout_one_hot(read, PAIRS, "v"), asked.with_length(length))


def test_it_keeps_the_type_and_a_bound_that_does_not_grow():
    circuit = _recall("once", 100_000)
    (read,) = [s for s in circuit.streams if s.operation.symbol == "memory[once]"]
    assert read.type == OneHot(2)
    domain = Domains(circuit.language, 100_000).of(read)
    assert domain.hi == 1 and domain.l1 == 1


@pytest.mark.parametrize("target", ["mamba", "mamba2", "mamba-delta-t", "s4d"])
def test_it_compiles_where_a_sum_does(target: str):
    compiled = compiler.compile(_recall("once", 40), target, dtype="bfloat16" if target == "mamba" else "float32")
    word = [PAIRS.tokens.index(t) for t in ("k1", "v1", "k0", "v0", "?", "k0", "k1", "k0")]
    got = compiled.interpret(np.array([word]))[0]
    assert [PAIRS.tokens[int(row.argmax())] for row in got[5:]] == ["v0", "v1", "v0"]


def test_what_is_not_proved_is_refused_with_the_reason_and_the_line():
    key = pairs.one_hot("k")
    read = memory.write(key.shift(1), pairs.one_hot("v"), bound, "once").read(key)
    circuit = Circuit("recall", output.readout_one_hot(read, PAIRS, "v"), InputLanguage.everything(PAIRS, 9))
    with pytest.raises(
        CompileError, match=r"test_written_once.py:\d+\): its key is a token, .* make the edge distinct"
    ):
        compiler.compile(circuit)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_a_query_of_several_slots_reads_the_sum_of_what_each_was_given_once(target: str):
    """Two words under one count: letter i of the first minus letter i of the second, by one read of two slots."""
    two_words = InputLanguage.of(
        TEXT,
        "a0",
        [("a0", "a1", ["a", "b"]), ("a1", "a2", ["a", "b"]), ("a2", "b0", ["|"])]
        + [("b0", "b1", ["a", "b"]), ("b1", "b2", ["a", "b"]), ("b2", "b2", [";"])],
        40,
        "two words of two letters",
    )
    rank = text.number({"a": 1, "b": 2}, "letter")
    signed = select(present(bar), -rank, rank)
    key = (place + 3 * bar.cumsum()).one_hot(6)
    asked = text.is_in([";"]).cumsum()
    read = memory.write(key, signed, letter, "once").read(concatenate(asked.one_hot(3), asked.one_hot(3)))
    assert Domains(two_words, 40).of(read).hi == 4, "two slots of at most 2 each, however long the sequence"
    compiled = compiler.compile(
        Circuit("pairs", output.readout_integer(read, TEXT, {"a": -1, "|": 0, "b": 1}), two_words), target
    )
    got = compiled.interpret(np.array([[TEXT.tokens.index(t) for t in "ab|bb;;;"]]))[0]
    assert [TEXT.tokens[int(row.argmax())] for row in got[5:7]] == ["a", "|"]
    stack = compiler.bare(compiled)
    ids = torch.tensor([[TEXT.tokens.index(t) for t in "ab|bb;;;"]])
    assert np.array_equal(stack(ids).detach().numpy()[0], got)
