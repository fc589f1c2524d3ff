"""The layout of the public benchmark for MQAR: its slots, its filler, and which memory solves it."""

from dataclasses import replace

import numpy as np
import pytest

from tests.verify.mqar import PUBLIC, gather
from verify.tasks import IGNORED
from verify.tasks.mqar import POLICIES, BenchmarkLayout, mqar_oracle


@pytest.mark.parametrize("filler", ["neutral", "vocabulary"])
def test_benchmark_sequences_keep_the_layout(filler):
    layout = replace(PUBLIC, filler=filler)
    tokens, labels = gather(layout.random(1000, seed=0))
    keys, values = tokens[:, :32:2], tokens[:, 1:32:2]
    assert keys.min() >= 1 and keys.max() <= 255 and values.min() >= 256 and values.max() <= 511
    assert all(len(set(row)) == 16 for row in [*keys.tolist(), *values.tolist()])
    asked = labels != IGNORED
    assert (asked.sum(axis=1) == 16).all() and not asked[:, :32].any() and not asked[:, 1::2].any()
    assert (np.sort(tokens[asked].reshape(1000, 16), axis=1) == np.sort(keys, axis=1)).all()
    for row, bound, query in zip(tokens.tolist(), zip(keys.tolist(), values.tolist()), labels.tolist()):
        pairs = dict(zip(*bound))
        assert all(label in (IGNORED, pairs.get(token)) for token, label in zip(row, query))
    free = tokens[:, 32:][~asked[:, 32:]]
    if filler == "neutral":
        assert not free.any()
    else:
        counts = np.bincount(free, minlength=512)
        assert len(counts) == 512 and counts.min() / counts.mean() > 0.7 and counts.max() / counts.mean() < 1.3


def test_benchmark_slots_follow_the_power_law():
    """The first pair draws its slot by the plain weights; the others can only be later on average."""
    layout = BenchmarkLayout(20, 20, 60, pairs=4, power=0.5)
    tokens, labels = gather(layout.random(40_000, seed=0))
    asks_first_key = (tokens == tokens[:, :1]) & (labels != IGNORED)
    slot = (asks_first_key.argmax(axis=1) - layout.context) // 2
    weights = layout.power * np.arange(1, layout.slots + 1) ** (layout.power - 1)
    expected = weights / weights.sum()
    measured = np.bincount(slot, minlength=layout.slots) / len(slot)
    assert np.abs(measured - expected).max() < 5 * np.sqrt(expected.max() / len(slot))


def test_benchmark_slots_are_drawn_one_after_the_other():
    """Two pairs, three slots: P(i then j) = w_i w_j / (1 - w_i)."""
    layout = BenchmarkLayout(2, 2, 10, pairs=2, power=0.01)
    tokens, labels = gather(layout.random(40_000, seed=0))
    places = [((tokens == tokens[:, c : c + 1]) & (labels != IGNORED)).argmax(axis=1) // 2 - 2 for c in (0, 2)]
    w = np.arange(1, 4) ** -0.99
    w /= w.sum()
    for i, j in ((0, 1), (0, 2), (1, 0), (2, 1)):
        assert abs(((places[0] == i) & (places[1] == j)).mean() - w[i] * w[j] / (1 - w[i])) < 0.012


def test_only_the_first_write_solves_the_public_benchmark():
    """Share of sequences right in all 16 queries; 10,000 sequences at seed 0 give 1.0000, 0.5374 and 0.5363."""
    tokens, labels = gather(PUBLIC.random(2000, seed=0))
    right = {}
    for write in POLICIES:
        rows = zip(tokens.tolist(), labels.tolist())
        right[write] = np.mean([solved(mqar_oracle(row, 255, 256, write), asked) for row, asked in rows])
    assert right["first"] == 1
    assert 0.50 < right["sum"] <= right["last"] < 0.58


def solved(answers, labels):
    """Whether every query has its label for answer."""
    return all(label in (IGNORED, answer) for answer, label in zip(answers, labels))


@pytest.mark.parametrize("filler", ["neutral", "vocabulary"])
def test_benchmark_adversarial_cases_are_there_and_solved_by_the_first_write(filler):
    layout = BenchmarkLayout(8, 8, 40, pairs=4, filler=filler)
    batches = {b.case: b for b in layout.adversarial()}
    everywhere = {
        "earliest queries",
        "latest queries",
        "last keys and lowest values",
        "minimum length",
        "one pair only",
    }
    with_noise = {
        "key before each query",
        "value after each query",
        "filler rebinds before the queries",
        "filler repeats the context",
    }
    assert set(batches) == (everywhere | with_noise if filler == "vocabulary" else everywhere)
    for batch in batches.values():
        asked = batch.labels != IGNORED
        assert asked.any(axis=1).all() and not asked[:, 1::2].any()
        for row, labels in zip(batch.tokens.tolist(), batch.labels.tolist()):
            assert solved(mqar_oracle(row, 8, 8, "first"), labels)
    if filler == "vocabulary":
        row, labels = (
            getattr(batches["filler rebinds before the queries"], part)[0].tolist() for part in ("tokens", "labels")
        )
        assert not solved(mqar_oracle(row, 8, 8, "last"), labels)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"length": 15}, "length = 15 .* pairs = 4 .* smallest length that works is 16"),
        ({"pairs": 9}, "pairs = 9 .* largest pairs that works is 8"),
        ({"vocab": 3}, "pairs = 4 .* vocab = 3; the largest pairs that works is 3"),
        ({"power": 0.0}, "power = 0.0"),
        ({"filler": "values"}, "filler = 'values' .* 'neutral', 'vocabulary'"),
    ],
)
def test_impossible_benchmark_layouts_say_what_would_work(arguments, message):
    with pytest.raises(ValueError, match=message):
        BenchmarkLayout(**{"kappa": 8, "vocab": 8, "length": 40, "pairs": 4, **arguments})
