"""Additive memories that are written once: proved where nothing else fits, and otherwise as they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import compiler
from compiler import run
from compiler.artifact.package import bare
from compiler.context import Context
from compiler.errors import CompileError
from compiler.language import memory
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import count, present
from compiler.passes.once import once
from compiler.targets import target_of

LETTERS = Alphabet.of("|", "a", "b", "c")
x = Tokens(LETTERS)
bar, letter = x.is_in(["|"]), x.is_in(["a", "b", "c"])
VALUES = {"a": 200, "b": 100, "c": 50}
LONG = 1 << 18


def _copied(before_the_bar: bool) -> Circuit:
    """The number at the present place of the text before the bar, from an additive memory over very long texts."""
    place = count(letter, reset=bar)
    when = letter & ~present(bar) if before_the_bar else letter
    text = memory.write((place - 1).one_hot(6), x.number(VALUES), when=when)
    edges = [("text", "text", ["a", "b", "c"]), ("text", "after", ["|"]), ("after", "after", ["a", "b", "c", "|"])]
    return Circuit("text", text.read(place.one_hot(6)), InputLanguage.of(LETTERS, "text", edges, LONG, "texts"))


def _plain(word: list[str]) -> list[int]:
    text: list[int] = []
    place, after, out = 0, False, []
    for token in word:
        place, after = (0, True) if token == "|" else (place + 1, after)
        if token != "|" and not after:
            text.append(VALUES[token])
        out.append(text[place] if place < min(6, len(text)) else 0)
    return out


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_a_long_text_is_copied_from_an_additive_memory(target: str, monkeypatch: pytest.MonkeyPatch):
    circuit = _copied(True)
    with monkeypatch.context() as untried, pytest.raises(CompileError, match="quanta"):
        untried.setattr(run, "STRATEGIES", ())
        compiler.compile(circuit, target)
    compiled = compiler.compile(circuit, target)
    words = circuit.language.sample(40, 30, seed=0)
    expected = [_plain([LETTERS.tokens[i] for i in word]) for word in words]
    with torch.no_grad():
        scores = bare(compiled)(torch.from_numpy(words)).numpy()[..., 0]
    assert np.array_equal(scores, expected) and np.array_equal(compiled.interpret(words)[..., 0], expected)


def test_a_memory_that_may_be_written_twice_stays_refused():
    circuit = _copied(False)
    assert once(circuit) is circuit
    with pytest.raises(CompileError, match="quanta"):
        compiler.compile(circuit)


def _is_memory(stream: Stream) -> bool:
    return isinstance(stream.operation, ops.MemoryRead)


def test_what_fits_is_left_alone():
    short = _copied(True)
    short = Circuit("text", short.output, short.language.with_length(64))
    policies = [s.operation.policy for s in compiler.compile(short).source.streams if _is_memory(s)]
    assert policies == ["sum"]
    proved = once(short)
    assert [s.operation.policy for s in proved.streams if _is_memory(s)] == ["once"]
    bounds = [Context.of(c, target_of("mamba")).domains.of(c.output).hi for c in (short, proved)]
    assert bounds[1] == 200 < bounds[0]
