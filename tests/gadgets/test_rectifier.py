"""The rectifier alone: relu of rows of lanes and their past, and what a rectified number may not be."""

from __future__ import annotations

import pytest

from tests.gadgets.harness import COUNTED, SIGNED, agrees, counted, signed

ALL = ("mamba", "mamba2", "s4d", "mamba-delta-t")


@pytest.mark.parametrize("shift", [-5, 0, 4])
def test_relu_of_a_difference(shift: int):
    def oracle(word):
        counts = [sum(COUNTED[x] for x in word[: t + 1]) for t in range(len(word))]
        return [[max(0, SIGNED[x] - n + shift)] for x, n in zip(word, counts, strict=True)]

    agrees((signed - counted.cumsum() + shift).relu(), oracle, ALL, "Rectifier")


def test_relu_of_two_lags_of_one_row():
    def oracle(word):
        past = [0, *(SIGNED[x] for x in word)]
        return [[max(0, 2 * past[t + 1] - past[t])] for t in range(len(word))]

    agrees((2 * signed - signed.shift(1)).relu() + 0 * signed, oracle, ALL, "Rectifier")
