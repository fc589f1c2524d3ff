"""`rounded`: dyadic numbers near those of a table, and the largest error."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import log

import numpy as np
import pytest

from compiler import rounded


def test_every_entry_is_the_nearest_multiple_and_the_error_is_the_largest() -> None:
    table = np.log(np.arange(1, 41).reshape(8, 5) / 820)
    found = rounded(table, bits=6)
    assert found.values.shape == (8, 5)
    exact = [Fraction(value) * 64 for value in found.values.reshape(-1).tolist()]
    assert all(number.denominator == 1 for number in exact)
    moved = [
        abs(Fraction(a) - Fraction(b)) for a, b in zip(table.reshape(-1).tolist(), found.values.reshape(-1).tolist())
    ]
    assert found.error == max(moved) <= Fraction(1, 128)
    assert found.error > 0


def test_halves_go_to_even_and_dyadic_numbers_stay() -> None:
    assert rounded([0.5, 1.5, -2.5], bits=0).values.tolist() == [0, 2, -2]
    kept = rounded([0.25, -3.75], bits=2)
    assert kept.values.tolist() == [0.25, -3.75] and kept.error == 0


@pytest.mark.parametrize("bad", [[float("inf")], [float("nan")], [log(2) * 2.0**60]])
def test_what_no_table_holds_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="the table of rounded holds"):
        rounded(bad)


def test_bits_are_limited() -> None:
    with pytest.raises(ValueError, match="bits of rounded"):
        rounded([1.0], bits=41)


@pytest.mark.parametrize(
    ("table", "bits", "near"),
    [
        ([Fraction(1, 3)], 40, Fraction(round(Fraction(2**40, 3)), 2**40)),
        ([Fraction(1, 2) + Fraction(1, 2**80)], 0, 1),
        ([0.5, Fraction(2**52 + 1, 2**10)], 10, Fraction(1, 2)),
        ([Decimal("0.1")], 10, Fraction(102, 1024)),
        ([2**53], 0, 2**53),
    ],
)
def test_numbers_that_float64_rounds_are_taken_exactly(table: list, bits: int, near: Fraction) -> None:
    found = rounded(table, bits)
    assert found.values[0] == near
    assert found.error == max(abs(Fraction(a) - Fraction(b)) for a, b in zip(table, found.values.tolist()))
    assert found.error <= Fraction(1, 2 ** (bits + 1))


@pytest.mark.parametrize("bad", [[2**53 + 1], [0.5, 2**63 + 1], [10**400], [Decimal("1e999999999")], ["0.5"]])
def test_numbers_that_float64_would_hide_are_refused(bad: list) -> None:
    with pytest.raises(ValueError, match="the table of rounded holds"):
        rounded(bad, 0)
