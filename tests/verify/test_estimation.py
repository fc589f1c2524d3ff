"""Rates by counting waves, the balance of Theorem 4.6, and estimators that really reach the exponent."""

import re
from inspect import getdoc, isfunction
from itertools import product
from math import log2

import numpy as np
import pytest

from verify import estimation


def _level(r: int) -> int:
    """s of a wave by its definition: ⌊2^(s−1)⌋ ≤ |r| < 2^s."""
    return next(s for s in range(40) if int(2 ** (s - 1)) <= abs(r) < 2**s)


@pytest.mark.parametrize("kind", estimation.KINDS)
@pytest.mark.parametrize("smoothness", [(1.0,), (1.0, 2.0), (0.5, 1.0, 1.5)])
def test_waves_are_counted_as_they_are(kind, smoothness) -> None:
    terms, reach = (2.5, range(-64, 65)) if len(smoothness) < 3 else (1.5, range(-8, 9))
    joined = {"mixed": sum, "anisotropic": max}[kind]
    gamma = lambda s: joined(a * b for a, b in zip(smoothness, s, strict=True))
    levels = {r: _level(r) for r in reach}
    inside = sum(gamma([levels[r] for r in index]) <= terms for index in product(reach, repeat=len(smoothness)))
    assert inside == estimation.kept_waves(terms, smoothness, kind)


@pytest.mark.parametrize(
    ("kind", "smoothness"), [("mixed", (1.0, 2.0, 3.0)), ("anisotropic", (1.0, 2.0, 4.0)), ("anisotropic", (3.0,))]
)
def test_kept_waves_grow_like_two_to_t_over_a_plus(kind, smoothness) -> None:
    a_plus = estimation.effective_smoothness(smoothness, kind)
    grown = log2(estimation.kept_waves(48, smoothness, kind) / estimation.kept_waves(24, smoothness, kind)) / 24
    assert grown == pytest.approx(1 / a_plus, rel=0.02)


def test_the_balance_of_theorem_46() -> None:
    for a_plus in (0.3, 1.0, 2.5):
        for n in (10, 10**4, 10**9):
            terms = estimation.terms_for(n, a_plus)
            assert (
                2 ** (-2 * terms)
                == pytest.approx(2 ** (terms / a_plus) / n)
                == pytest.approx(estimation.rate(n, a_plus))
            )
    assert estimation.exponent(1) == pytest.approx(2 / 3) and estimation.exponent(1e9) == pytest.approx(1)


def test_parameters_of_theorem_45_are_waves_up_to_powers_of_t() -> None:
    for a_plus in (0.5, 1.0):
        grown = log2(estimation.sizes(400, 1.0, a_plus)["S"] / estimation.sizes(200, 1.0, a_plus)["S"]) / 200
        assert grown == pytest.approx(1 / a_plus + 4 / 200)  # T^4 doubles four times


def test_assumptions() -> None:
    assert estimation.effective_smoothness([3, 1, 2], "mixed") == 1
    assert estimation.effective_smoothness([2, 2], "anisotropic") == 1
    assert estimation.weak_norm([1, 2, 3], 1.0) == 1 and estimation.weak_norm([1, 1], 1.0) == 2
    with pytest.raises(ValueError, match="may occur once only"):
        estimation.effective_smoothness([1, 1], "mixed")
    with pytest.raises(ValueError, match="above 0"):
        estimation.effective_smoothness([], "anisotropic")


@pytest.mark.parametrize("tokens", [2, 10, 200])
def test_the_most_important_token_is_picked(tokens) -> None:
    rng, gap, error = np.random.default_rng(tokens), 0.1, 1e-3
    chi = estimation.pick_sharpness(tokens, gap, error)
    importance = rng.uniform(-1, 1 - gap, (500, tokens))
    importance[:, 0] = 1
    importance[::2, 1:] = 1 - gap  # all of them right at the gap
    value = rng.uniform(-1, 1, (500, tokens))
    soft = np.exp(chi * (importance - 1))
    off = np.abs((soft * value).sum(1) / soft.sum(1) - value[:, 0])
    bound = estimation.pick_error(tokens, gap, chi)
    assert (off <= bound * np.ptp(value, 1) + 1e-15).all() and bound <= error


def test_the_second_token_is_not_found_by_subtracting() -> None:
    """In float32 what is left of e^(χμ_1)·v_1 is rounding; leaving the token out finds the second."""
    chi = estimation.pick_sharpness(3, 0.2, 1e-8)
    importance, value = np.array([1.0, 0.8, 0.2]), np.array([0.3, -0.7, 0.9])
    weight = np.exp(chi * (importance - 1)).astype(np.float32)
    terms = (weight * value.astype(np.float32)).astype(np.float32)
    assert estimation.peeled_rest(0.2, chi) < np.finfo(np.float32).eps
    with np.errstate(invalid="ignore"):
        peeled = (terms.sum(dtype=np.float32) - terms[0]) / (weight.sum(dtype=np.float32) - weight[0])
    left_out = terms[1:].sum() / weight[1:].sum()
    assert not abs(peeled - value[1]) < 0.1 and abs(left_out - value[1]) < 1e-5


def test_every_statement_that_is_named_is_told_as_reconstructed() -> None:
    """All of their formulas are lost in the text that was read."""
    names = lambda text: set(re.findall(r"\b[4FJ]\.\d", text))
    functions = [
        value for value in vars(estimation).values() if isfunction(value) and value.__module__ == estimation.__name__
    ]
    named = set().union(*(names(getdoc(told) or "") for told in (estimation, *functions)))
    assert {"4.3", "4.5", "4.6", "F.1", "J.2"} <= named
    assert named <= names(" ".join(estimation.RECONSTRUCTED))


def test_the_shape_of_the_risk() -> None:
    assert estimation.risk(0.1, 50, 1000, 0.01, 1, 2) == pytest.approx(0.01 + 5 * 0.05 + 0.03)
