"""The latch alone: the last value, the first, a bank of them, and the sum that does not forget."""

from __future__ import annotations

import pytest

from compiler.language.words import latch, latch_bank, sum_where
from tests.gadgets.harness import COUNTED, SIGNED, agrees, compiled, counted, is_a, one_hot, signed


def _kept(word, values, letter, first=False):
    held, seen = [], None
    for x in word:
        if x == letter and not (first and seen is not None):
            seen = values.get(x)
        held.append(seen or 0)
    return held


@pytest.mark.parametrize("targets", [("mamba", "mamba2", "mamba-delta-t")])
def test_the_last_value_before(targets):
    def oracle(word):
        held, out = 0, []
        for t, x in enumerate(word):
            if x == "a":
                held = SIGNED[word[t - 1]] if t else 0
            out.append([held])
        return out

    agrees(latch(signed.shift(1), is_a), oracle, targets)


def test_the_first_value():
    def oracle(word):
        found = next((t for t, x in enumerate(word) if x == "a"), len(word))
        held = COUNTED[word[found - 1]] if 0 < found < len(word) else 0
        return [[held if t >= found else 0] for t in range(len(word))]

    agrees(latch(counted.shift(1), is_a, first=True), oracle, ("mamba", "mamba2"), "Latch")


def test_a_bank_has_one_for_each_letter():
    def oracle(word):
        held, out = dict.fromkeys("abcd", 0), []
        for t, x in enumerate(word):
            held[x] = COUNTED[word[t - 1]] if t else 0
            out.append([held[letter] for letter in "abcd"])
        return out

    agrees(latch_bank(counted.shift(1), one_hot), oracle, ("mamba", "mamba2"), "Latch")


def test_a_sum_where_adds_and_does_not_forget():
    def oracle(word):
        past = [0, *(COUNTED[x] for x in word)]
        return [[sum(past[s] for s in range(t + 1) if word[s] == "a")] for t in range(len(word))]

    agrees(sum_where(counted.shift(1), is_a), oracle, ("mamba", "mamba2"), "Latch")


def test_a_latch_erases_and_a_sum_keeps():
    for stream, decay in ((latch(counted, is_a), "erase"), (sum_where(counted, is_a), "keep")):
        (block,) = compiled(stream).blocks
        assert decay in {str(d) for d in block.channels.decay}
