"""The product alone: signs, zeros, and one factor that multiplies many numbers."""

from __future__ import annotations

import pytest

from compiler.language.words import concatenate
from tests.gadgets.harness import COUNTED, SIGNED, agrees, counted, signed

ALL = ("mamba", "mamba2", "s4d", "mamba-delta-t")


def _sums(word, values):
    return [sum(values[x] for x in word[: t + 1]) for t in range(len(word))]


@pytest.mark.parametrize(
    ("left", "right"), [(counted, counted), (counted, signed), (signed, counted), (signed, signed)]
)
def test_a_sum_times_a_number(left, right):
    values = {id(counted): COUNTED, id(signed): SIGNED}
    a, b = values[id(left)], values[id(right)]

    def oracle(word):
        return [[n * b[x]] for n, x in zip(_sums(word, a), word, strict=True)]

    agrees(left.cumsum() * right, oracle, ALL, "Product")


def test_one_number_times_two():
    def oracle(word):
        return [[n * SIGNED[x], n * COUNTED[x]] for n, x in zip(_sums(word, COUNTED), word, strict=True)]

    agrees(counted.cumsum() * concatenate(signed, counted), oracle, ALL, "Product")
