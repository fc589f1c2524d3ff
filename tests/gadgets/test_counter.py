"""The count since a reset alone: one channel where Δ can erase and keep, two states elsewhere."""

from __future__ import annotations

from compiler.language.words import count
from tests.gadgets.harness import agrees, compiled, is_a, is_b


def _oracle(word):
    held, out = 0, []
    for x in word:
        held = 0 if x == "b" else held + (x == "a")
        out.append([held])
    return out


def test_in_one_channel():
    agrees(count(is_a, is_b), _oracle, ("mamba",), "Counter")


def test_as_a_sum_minus_its_latched_copy():
    agrees(count(is_a, is_b), _oracle, ("mamba2",), "RunningSum")


def test_the_channel_decays_faintly():
    (block,) = compiled(count(is_a, is_b)).blocks
    assert "faint" in {str(decay) for decay in block.channels.decay}
