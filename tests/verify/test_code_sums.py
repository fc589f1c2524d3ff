"""The rate of wrong answers under random key codes against sums over all codes and values, made in other ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, permutations, product
from math import comb, prod
from pathlib import Path

import numpy as np
import pytest

from constructions.selectivity.mqar import MQAR
from verify.code_sums import exact_failure, failure_bound
from verify.random_codes import all_keys, failure_rate, key_code_for, value_words


def key_words(length: int, kind: str) -> list[tuple[int, ...]]:
    words = product((-1, 1), repeat=length)
    return [w for w in words if kind == "jl" or sum(w) == 0]


def by_hand(vocab: int, length: int, kappa: int, kind: str) -> Fraction:
    """Every ordered choice of distinct keys and every choice of values: a query of the first key."""
    values, wrong, count = [tuple(map(int, w)) for w in value_words(vocab)], 0, 0
    often = Counter(
        tuple(sum(a * b for a, b in zip(keys[0], key, strict=True)) for key in keys)
        for keys in permutations(key_words(length, kind), kappa)
    )
    for overlap, times in often.items():
        for stored in product(values, repeat=kappa):
            read = [sum(rho * v[i] for rho, v in zip(overlap, stored, strict=True)) for i in range(len(values[0]))]
            score = {v: sum(a * b for a, b in zip(read, v, strict=True)) for v in values}
            wrong += times * any(s >= score[stored[0]] for v, s in score.items() if v != stored[0])
            count += times
    return Fraction(wrong, count)


SMALL = [
    *((v, 4, 2, "balanced") for v in (1, 2, 3, 6, 7, 20)),
    *((v, 4, 3, "balanced") for v in (2, 3, 6)),
    *((v, 6, 2, "balanced") for v in (2, 6, 9)),
    (2, 6, 3, "balanced"),
    *((v, 3, 2, "jl") for v in (2, 4, 6)),
    *((v, 3, 3, "jl") for v in (2, 6)),
    (3, 2, 4, "jl"),
    (2, 4, 3, "jl"),
]  # values, entries of a key, keys, kind


@pytest.mark.parametrize("vocab, length, kappa, kind", SMALL)
def test_of_few_codes_the_rate_is_the_sum_over_all(vocab: int, length: int, kappa: int, kind: str) -> None:
    expected = by_hand(vocab, length, kappa, kind)
    assert exact_failure(value_words(vocab), length, kappa, kind) == expected
    found = failure_rate(vocab, length, kappa, kind)
    assert found.exact and found.rate == float(expected)
    assert failure_bound(value_words(vocab), length, kappa, kind) >= expected


def test_mqar_md_says_what_is_summed_and_how_near_the_rest_is() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "mqar.md").read_text("utf-8").split())
    assert f"{key_code_for(0.01, 512, 16)} signs at κ = 16" in page
    assert "of κ = 2 with V = 512 and N = 8, say, or of κ = 4 with V = 8 and N = 8." in page
    assert failure_rate(512, 8, 2).exact and failure_rate(8, 8, 4).exact
    rare = failure_rate(924, 120, 4)
    assert (
        "one in 10⁹, of κ = 4 and N = 120, is found within 4 % too" in page and rare.error <= 0.04 * rare.rate < 4e-11
    )
    assert "two or three times the rate where failures are rare" in page
    assert all(
        1.5 <= f.at_most / f.rate <= 3.5 for f in (failure_rate(512, n, k) for n, k in ((32, 4), (48, 8), (64, 16)))
    )


def test_mqar_md_says_that_free_signs_need_not_be_lemma_4s() -> None:
    page = " ".join((Path(__file__).parents[2] / "docs" / "mqar.md").read_text("utf-8").split())
    codes = MQAR(kappa=8, code="jl", guarantee="random", arch="mamba2").drawn_codes()
    assert codes is not None and (codes["epsilon"], codes["coherence"], codes["length"]) == (1.0, 0.5, 8 * 3)
    assert "`epsilon` is then 1" in page and "for κ = 8 the first draw has a coherence of 1/2" in page


def test_two_known_sums() -> None:
    assert by_hand(6, 4, 2, "balanced") == Fraction(1, 6) and by_hand(6, 6, 2, "balanced") == Fraction(5, 114)


@pytest.mark.parametrize("vocab, kappa", [(2, 2), (6, 2), (7, 2), (2, 3)])
@pytest.mark.parametrize("kind", ["balanced", "jl"])
@pytest.mark.parametrize("rate", [0.15, 0.04])
def test_a_wanted_rate_is_kept_by_the_sum_over_all(vocab: int, kappa: int, kind: str, rate: float) -> None:
    length = key_code_for(rate, vocab, kappa, kind)
    if kappa == 2:
        assert by_hand(vocab, length, kappa, kind) <= rate
    else:
        assert sum(p * wrong_given(overlap, length, 2) for overlap, p in chances(length, kappa, kind)) <= rate


@pytest.mark.parametrize("least", range(2, 15))
def test_a_least_length_keeps_the_rate_too(least: int) -> None:
    """A longer code may fail more often than a shorter one: what reaches a rate is looked for from `least` on."""
    assert key_code_for(0.3, 2, 3, least=least) >= least
    assert exact_failure(value_words(2), key_code_for(0.3, 2, 3, least=least), 3, "balanced") <= 0.3


def chances(length: int, kappa: int, kind: str) -> Iterator[tuple[tuple[int, ...], float]]:
    """(|overlaps| of distinct keys with one key, how likely they are), where an answer can be wrong."""
    ways: Counter[int] = Counter()
    if kind == "balanced":
        ways.update({abs(4 * a - length): 0 for a in range(length // 2)})
        for a in range(length // 2):
            ways[abs(4 * a - length)] += comb(length // 2, a) ** 2
    else:
        for a in range(length):
            ways[abs(2 * a - length)] += comb(length, a)
    everything = comb(all_keys(length, kind) - 1, kappa - 1)
    for overlap in combinations_with_replacement(sorted(ways), kappa - 1):
        if sum(overlap) >= length:
            yield overlap, prod(comb(ways[one], n) for one, n in Counter(overlap).items()) / everything


def wrong_given(overlap: tuple[int, ...], length: int, lanes: int) -> float:
    """P(wrong | overlaps) of the full book of `lanes` lanes, by counting tables of ±1 whose rows are balanced.

    A column is what the others store in one lane. With m the least sum of an upper lane, the answer is right where all
    lower lanes are below m + 2N. The coefficient of Π z_s^(lanes/2) is taken by roots of unity.
    """
    others, half, around = len(overlap), lanes // 2, lanes + 1
    root = np.exp(2j * np.pi * np.arange(around) / around)
    columns = []
    for bits in product((0, 1), repeat=others):
        grid = np.ones((around,) * others, complex)
        for s, bit in enumerate(bits):
            grid = grid * (root**bit).reshape([-1 if s == k else 1 for k in range(others)])
        columns.append((sum(rho * (2 * bit - 1) for rho, bit in zip(overlap, bits, strict=True)), grid))
    nothing = np.zeros((around,) * others, complex)
    right = 0.0
    for least in {value for value, _ in columns}:
        from_here = sum((g for value, g in columns if value >= least), nothing)
        above = sum((g for value, g in columns if value > least), nothing)
        below = sum((g for value, g in columns if value < least + 2 * length), nothing)
        right += np.fft.fftn((from_here**half - above**half) * below**half)[(half,) * others].real / around**others
    return 1 - right / comb(lanes, half) ** others


@pytest.mark.parametrize("vocab, length, kappa, kind", [s for s in SMALL if s[0] in (2, 6, 20) and s[2] < 4])
def test_lanes_counted_are_lanes_by_hand(vocab: int, length: int, kappa: int, kind: str) -> None:
    lanes = value_words(vocab).shape[1]
    total = sum(p * wrong_given(overlap, length, lanes) for overlap, p in chances(length, kappa, kind))
    assert total == pytest.approx(float(by_hand(vocab, length, kappa, kind)), abs=1e-12)


@pytest.mark.parametrize(
    "lanes, length, kappa, kind",
    [(12, 8, 4, "balanced"), (12, 8, 4, "jl"), (12, 6, 3, "jl"), (4, 30, 3, "balanced"), (6, 46, 3, "balanced")]
    + [(12, 60, 3, "balanced"), (12, 16, 4, "balanced"), (12, 20, 4, "jl"), (12, 40, 4, "balanced")]
    + [(12, 64, 4, "balanced"), (12, 120, 4, "balanced"), (12, 24, 5, "balanced")]
    + [(12, 4, 3, "balanced"), (12, 3, 3, "jl")],  # of these codes some independent words would be alike
)
def test_an_estimate_is_near_the_sum_over_all(lanes: int, length: int, kappa: int, kind: str) -> None:
    """Down to one wrong answer in 10^9: within twice the error that it states, and that is at most a tenth."""
    expected = sum(p * wrong_given(overlap, length, lanes) for overlap, p in chances(length, kappa, kind))
    found = failure_rate(comb(lanes, lanes // 2), length, kappa, kind)
    if found.exact:
        assert found.rate == pytest.approx(expected, rel=1e-6)
        return
    assert abs(found.rate - expected) <= 2 * found.error + 0.005 * expected, (found, expected)
    assert found.error <= 0.1 * expected <= expected <= found.at_most


def one_pair(length: int, kappa: int, lanes: int = 12) -> float:
    """How often one lane reaches another: as a sum over all overlaps, added up one key after the other."""
    return sum(p * swapped(overlap, length, lanes) for overlap, p in chances(length, kappa, "balanced"))


def swapped(overlap: tuple[int, ...], length: int, lanes: int) -> float:
    """P(Σ ρ e ≥ N); e is 0 where two of the lanes are equal."""
    sums, differ = {0: 1.0}, lanes / 2 / (lanes - 1)
    for one in overlap:
        following: dict[int, float] = {}
        for value, share in sums.items():
            for sign, part in ((0, 1 - differ), (1, differ / 2), (-1, differ / 2)):
                following[value + sign * one] = following.get(value + sign * one, 0.0) + share * part
        sums = following
    return sum(share for value, share in sums.items() if value >= length)


@pytest.mark.parametrize("kappa, length", [(4, 120), (5, 40), (5, 80), (5, 100), (6, 60)])
def test_rare_failures_lie_between_one_pair_of_lanes_and_all(kappa: int, length: int) -> None:
    """And the bound is the sum over all 36 pairs, in distinct words up to the chance that two are alike."""
    pair, found = one_pair(length, kappa), failure_rate(924, length, kappa)
    assert pair <= found.rate <= 36 * pair
    assert 36 * pair * (1 - 1e-6) <= found.at_most <= 36 * pair * 1.01


@pytest.mark.parametrize("vocab", [512, 924])
@pytest.mark.parametrize("kappa, length, kind", [(8, 24, "balanced"), (16, 12, "jl"), (16, 64, "balanced")])
def test_an_estimate_is_the_mean_over_codes_of_more_keys(vocab: int, kappa: int, length: int, kind: str) -> None:
    """Of part of a book and of all of it: against codes of distinct words drawn here, and read lane by lane."""
    rng, values, rates = np.random.default_rng(3), value_words(vocab).astype(int), []
    book = {tuple(v) for v in values.tolist()}
    for _ in range(400):
        while True:
            keys = rng.choice([-1, 1], (kappa, length))
            if kind == "balanced":
                keys = rng.permuted(np.tile([-1, 1], (kappa, length // 2)), axis=1)
            if len({tuple(k) for k in keys.tolist()}) == kappa:
                break
        stored = values[rng.integers(vocab, size=(20, kappa))]
        read = np.einsum("s,bsp->bp", keys @ keys[0], stored)
        if len(book) == 924:
            low = np.where(stored[:, 0] > 0, read, 10**6).min(axis=1)
            rates.append((np.where(stored[:, 0] < 0, read, -(10**6)).max(axis=1) >= low).mean())
        else:
            scores = read @ values.T
            rates.append(((scores >= (read * stored[:, 0]).sum(axis=1)[:, None]).sum(axis=1) > 1).mean())
    found, spread = failure_rate(vocab, length, kappa, kind), 2.6 * np.std(rates) / 20
    assert not found.exact and abs(np.mean(rates) - found.rate) <= spread + found.error
    assert np.mean(rates) <= found.at_most + spread


def test_words_are_all_counted_once() -> None:
    """Where most independent words would be alike, distinct ones are drawn: 16 of the 20 of six entries."""
    found = failure_rate(20, 6, 10)
    rng, keys, values, wrong = np.random.default_rng(0), np.array(key_words(6, "balanced")), value_words(20), []
    for _ in range(4000):
        live, stored = rng.permutation(len(keys))[:10], values[rng.integers(20, size=10)].astype(int)
        scores = (keys[live] @ keys[live[0]]) @ stored @ values.T.astype(int)
        own = (stored[0] * ((keys[live] @ keys[live[0]]) @ stored)).sum()
        wrong.append((scores >= own).sum() > 1)
    assert abs(found.rate - np.mean(wrong)) <= 2 * found.error + 0.02


def test_a_long_ring_is_as_good_as_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the lattice is too long, twelve standard deviations of it and a bound beyond give the same."""
    whole = failure_bound(value_words(924), 64, 8, "balanced")
    monkeypatch.setattr("verify.code_sums._LATTICE", 8)
    assert whole <= failure_bound(value_words(924), 64, 8, "balanced") * (1 + 1e-9) <= whole * (1 + 1e-6)


def test_overlaps_are_counted_as_pairs_of_words() -> None:
    for kind in ("balanced", "jl"):
        words = key_words(6, kind)
        counted = Counter(abs(sum(a * b for a, b in zip(*pair, strict=True))) for pair in combinations(words, 2))
        total, found = sum(counted.values()), Counter()
        for overlap, p in chances(6, 2, kind):
            found[overlap[0]] += p
        assert found[6] == pytest.approx(counted[6] / total)
