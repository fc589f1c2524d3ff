"""All paths of a circuit together take work that is linear in the circuit, however many operations ask for some."""

from __future__ import annotations

import random

import pytest

from compiler import Alphabet, InputLanguage, Stream, Tokens, any_of, count, latch
from compiler.analysis import paths
from compiler.analysis.domains import Domains
from compiler.analysis.paths import Work

ALPHABET = Alphabet.of(*"abcd")
LANGUAGE = InputLanguage.everything(ALPHABET, 64)


def counts(number: int) -> list[Stream]:
    """Counts whose flags hang on many latches, so that each has a large product of its own."""
    draw = random.Random(number)
    flags = [Tokens(ALPHABET).is_in([letter]) for letter in "abcd"]
    for _ in range(20):
        flags.append(latch(draw.choice(flags), draw.choice(flags)))
    return [count(any_of(*draw.sample(flags, 8)), reset=any_of(*draw.sample(flags, 3))) for _ in range(number)]


@pytest.fixture()
def stepped(monkeypatch):
    """The lanes that were stepped."""
    taken, step = [0], paths._Product._step

    def counting(self, memories, rows):
        taken[0] += self.lanes
        return step(self, memories, rows)

    monkeypatch.setattr(paths._Product, "_step", counting)
    return taken


@pytest.mark.parametrize("number", [20, 80])
def test_many_counts_take_what_their_circuit_may(stepped, monkeypatch, number):
    monkeypatch.setattr(Work, "LEAST", 1 << 11)
    monkeypatch.setattr(Work, "FOR_A_STREAM", 1 << 4)
    domains = Domains(LANGUAGE, LANGUAGE.max_length)
    asked = counts(number)
    for stream in asked:
        assert 0 <= domains.of(stream).lo <= domains.of(stream).hi <= 64, "bounds stay true where work runs out"
    most = Work.LEAST + Work.FOR_A_STREAM * len(domains._known)
    assert most // 10 < stepped[0] <= most, "the work runs out here, and no more is taken"


def test_a_single_count_may_be_followed_to_its_end(stepped):
    flag, other = (Tokens(ALPHABET).is_in([letter]) for letter in "ab")
    domains = Domains(LANGUAGE, LANGUAGE.max_length)
    assert domains.of(count(flag & ~flag.shift(1), reset=other)).hi == 32, "every other position at most"
    assert 0 < stepped[0] < Work.LEAST // 100
