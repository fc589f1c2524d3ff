"""The bounds against values worked out by hand, closed forms, and measurements of the notes."""

from math import comb, log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verify.bounds import (
    SizeBound,
    code_length,
    code_length_upper,
    information_bound_bits,
    mqar_theorem2,
    mqar_theorem4,
)


@pytest.mark.parametrize(
    "count, length",
    [
        (1, 2),
        (2, 2),
        (3, 4),
        (6, 4),
        (7, 6),
        (20, 6),
        (21, 8),
        (256, 12),
        (512, 12),
        (924, 12),
        (925, 14),
        (200_000, 22),
    ],
)
def test_code_length_by_hand(count, length):
    assert code_length(count) == length


@settings(deadline=None)
@given(st.integers(1, 10**30))
def test_code_length_is_the_least_even_length_that_suffices(count):
    p = code_length(count)
    assert p % 2 == 0 and comb(p, p // 2) >= count
    assert p == 2 or comb(p - 2, p // 2 - 1) < count


@pytest.mark.parametrize("p", range(0, 400, 2))
def test_code_length_never_exceeds_its_closed_form(p):
    """One symbol more than length p can hold is the worst case for length p + 2; the upper bound grows with count."""
    count = comb(p, p // 2) + 1
    assert code_length(count) == p + 2 <= code_length_upper(count)


def test_the_closed_form_is_finite_at_one_symbol():
    assert code_length_upper(1) == 3 and code_length_upper(512) == pytest.approx(9 + log2(9) / 2 + 3)


def test_theorem_sizes_of_the_built_circuits():
    """kappa = 16, V = 512: sizes measured on real modules in the notes (Theorem 2: d = 29, N = 16)."""
    assert mqar_theorem2(16, 512) == SizeBound(d_model=29, d_state=16)
    assert mqar_theorem4(16, 512) == SizeBound(d_model=193, d_state=1)
    assert mqar_theorem4(1, 2) == SizeBound(d_model=4, d_state=1)


@settings(deadline=None)
@given(st.integers(1, 10**4), st.integers(1, 10**6))
def test_theorems_order_as_the_paper_says(kappa, vocab):
    """Theorem 4 trades lanes for state."""
    two, four = mqar_theorem2(kappa, vocab), mqar_theorem4(kappa, vocab)
    assert four.d_state == 1 <= two.d_state
    assert two.d_model <= four.d_model + 1


def test_information_bound():
    assert information_bound_bits(16, 512) == 144
    assert information_bound_bits(5, 1) == 0


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: code_length(0), "count = 0 .* smallest count that works is 1"),
        (lambda: code_length_upper(0), "count = 0"),
        (lambda: mqar_theorem2(0, 2), "kappa = 0 .* smallest kappa that works is 1"),
        (lambda: mqar_theorem2(2, 0), "vocab = 0"),
        (lambda: mqar_theorem4(0, 2), "kappa = 0"),
        (lambda: information_bound_bits(0, 2), "kappa = 0"),
    ],
)
def test_impossible_arguments_say_what_would_work(call, message):
    with pytest.raises(ValueError, match=message):
        call()
