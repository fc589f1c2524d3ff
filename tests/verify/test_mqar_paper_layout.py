"""The layout of paper A for MQAR: what its sequences promise, random, exhaustive and adversarial."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verify.mqar import by_definition, gather
from verify.tasks import IGNORED
from verify.tasks.mqar import POLICIES, PaperLayout


@st.composite
def paper_layouts(draw):
    """Layouts of all kinds, often as short as they may be."""
    kappa, vocab = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    rebind, repeat = draw(st.booleans()), draw(st.booleans())
    pairs = draw(st.integers(1, 8 if rebind else kappa))
    queries = draw(st.integers(1, 8 if repeat else pairs))
    length = 2 * pairs + queries + draw(st.integers(0, 6))
    filler, write = draw(st.sampled_from(["neutral", "values", "mixed"])), draw(st.sampled_from(sorted(POLICIES)))
    return PaperLayout(kappa, vocab, length, filler, pairs, queries, repeat, rebind, write)


def check_paper_row(layout, pairs, tokens, labels):
    """One sequence keeps every promise of the layout's docstring."""
    keys, values, tail = tokens[: 2 * pairs : 2], tokens[1 : 2 * pairs : 2], tokens[2 * pairs :]
    assert all(k in layout.keys for k in keys) and all(v in layout.values for v in values)
    assert layout.rebind or len(set(keys)) == pairs
    asked = [token for token in tail if token in layout.keys]
    assert 1 <= len(asked) <= layout.queries and set(asked) <= set(keys)
    assert layout.repeat_queries or len(set(asked)) == len(asked)
    assert all(token in layout.keys or token in layout.noise for token in tail)
    answers = by_definition(tokens, layout.kappa, layout.write)
    expected = [IGNORED if t < 2 * pairs or a is None else a for t, a in enumerate(answers)]
    assert labels == expected
    return len(asked)


@settings(max_examples=60, deadline=None)
@given(paper_layouts(), st.integers(0, 2**32))
def test_random_paper_sequences_keep_the_layout(layout, seed):
    batch = layout.draw(np.random.default_rng(seed), 20)
    for row, answers in zip(batch.tokens.tolist(), batch.labels.tolist()):
        asked = check_paper_row(layout, layout.pairs, row, answers)
        live = len(set(row[: 2 * layout.pairs : 2]))
        assert asked == (layout.queries if layout.repeat_queries else min(layout.queries, live))


@settings(max_examples=60, deadline=None)
@given(paper_layouts())
def test_adversarial_paper_sequences_keep_the_layout(layout):
    for batch in layout.adversarial():
        single = batch.case in ("one pair only", "minimum length")
        for row, labels in zip(batch.tokens.tolist(), batch.labels.tolist()):
            check_paper_row(layout, 1 if single else layout.pairs, row, labels)


def test_paper_labels_are_the_paired_values():
    layout = PaperLayout(16, 512, 100)
    tokens, labels = gather(layout.random(500, seed=0))
    assert (np.sort(tokens[:, :32:2], axis=1) == np.arange(1, 17)).all()
    assert ((labels != IGNORED).sum(axis=1) == 16).all()
    for row, answers in zip(tokens.tolist(), labels.tolist()):
        bound = dict(zip(row[:32:2], row[1:32:2]))
        assert all(answer in (IGNORED, bound.get(token)) for token, answer in zip(row, answers))


def test_paper_queries_of_few_distinct_keys_become_noise():
    layout = PaperLayout(2, 3, 40, rebind=True, pairs=12, queries=12)
    _, labels = gather(layout.random(200, seed=0))
    assert {2} <= set((labels != IGNORED).sum(axis=1)) <= {1, 2}


@pytest.mark.parametrize("length", [24, 40, 100])
def test_adjacent_queries_occur(length):
    tokens, labels = gather(PaperLayout(8, 64, length).random(400, seed=0))
    asked = labels != IGNORED
    assert (asked[:, 1:] & asked[:, :-1]).any(axis=1).mean() > 0.25
    assert asked[:, 16].any() and asked[:, -1].any()


def test_a_second_query_reads_another_value_unless_the_first_write_wins():
    """Condition (ii) that the proofs leave unsaid: (query, noise value) is stored as if it were a pair."""
    layout = PaperLayout(8, 64, 60, repeat_queries=True, queries=16)
    tokens, first = gather(layout.random(300, seed=0))
    for write in ("last", "sum"):
        same, labels = gather(replace(layout, write=write).random(300, seed=0))
        assert np.array_equal(tokens, same) and (labels != first).any(axis=1).mean() > 0.9
    once = PaperLayout(8, 64, 60)
    per_policy = [gather(replace(once, write=write).random(300, seed=0))[1] for write in POLICIES]
    assert all(np.array_equal(labels, per_policy[0]) for labels in per_policy)


def test_mixed_noise_is_half_neutral():
    tokens, labels = gather(PaperLayout(4, 64, 100, filler="mixed").random(300, seed=0))
    tail = tokens[:, 8:][labels[:, 8:] == IGNORED]
    assert 0.48 < (tail == 0).mean() < 0.52


def test_the_smallest_paper_task_has_one_sequence():
    assert [b.tokens.tolist() for b in PaperLayout(1, 1, 3).exhaustive()] == [[[1, 2, 1]]]


def test_paper_exhaustive_reaches_every_query_order_subset_and_noise():
    tokens, _ = gather(PaperLayout(2, 1, 6, filler="mixed").exhaustive())
    tails = {tuple(row[4:]) for row in tokens.tolist()}
    assert tails == {(1, 2), (2, 1), *product((1, 2), (0, 3)), *product((0, 3), (1, 2))}


@pytest.mark.parametrize(
    "change, case",
    [
        ({}, "adjacent queries"),
        ({}, "queries at the end"),
        ({}, "query after its own pair"),
        ({}, "first pair at the last position"),
        ({}, "one query only"),
        ({}, "one pair only"),
        ({}, "minimum length"),
        ({}, "all values equal"),
        ({}, "values descending"),
        ({}, "noise value after each query"),
        ({"repeat_queries": True}, "same key queried many times"),
        ({"rebind": True}, "context rebinds one key"),
    ],
)
def test_paper_adversarial_cases_are_there(change, case):
    layout = replace(PaperLayout(4, 8, 30), **change)
    batch = next(b for b in layout.adversarial() if b.case == case)
    assert (batch.labels != IGNORED).any(axis=1).all()
    attacked = {
        "adjacent queries": lambda t: all(1 <= x <= 4 for x in t[8:12]),
        "queries at the end": lambda t: all(1 <= x <= 4 for x in t[-4:]),
        "query after its own pair": lambda t: t[8] == t[6],
        "first pair at the last position": lambda t: t[-1] == t[0],
        "one query only": lambda t: sum(1 <= x <= 4 for x in t[8:]) == 1,
        "one pair only": lambda t: t[-1] == t[0] and sum(1 <= x <= 4 for x in t) == 2,
        "minimum length": lambda t: len(t) == 3,
        "all values equal": lambda t: len(set(t[1:8:2])) == 1,
        "values descending": lambda t: t[1:8:2] == sorted(t[1:8:2], reverse=True),
        "noise value after each query": lambda t: all(t[s + 1] > 4 for s in range(8, 16, 2)),
        "same key queried many times": lambda t: t[8:].count(t[0]) == 4,
        "context rebinds one key": lambda t: len(set(t[:8:2])) <= 2,
    }
    assert all(attacked[case](row) for row in batch.tokens.tolist())


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"length": 11}, r"length = 11 .* pairs = 4 and queries = 4 .* smallest length that works is 12"),
        ({"kappa": 0}, "kappa = 0 .* smallest kappa that works is 1"),
        ({"vocab": 0}, "vocab = 0 .* smallest vocab that works is 1"),
        ({"pairs": 5}, "pairs = 5 .* kappa = 4; the largest pairs that works is 4"),
        ({"pairs": 0}, "pairs = 0 .* smallest pairs that works is 1"),
        ({"queries": 5}, "queries = 5 .* pairs = 4 .* largest queries that works is 4"),
        ({"queries": 0}, "queries = 0 .* smallest queries that works is 1"),
        ({"filler": "keys"}, "filler = 'keys' .* 'neutral', 'values', 'mixed'"),
        ({"write": "max"}, "write = 'max' .* 'first', 'last', 'sum'"),
    ],
)
def test_impossible_paper_layouts_say_what_would_work(arguments, message):
    with pytest.raises(ValueError, match=message):
        PaperLayout(**{"kappa": 4, "vocab": 8, "length": 30, **arguments})
