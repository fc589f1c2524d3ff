"""The MQAR tasks against definitions written anew here: what is right, and how many cases there are."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.verify.mqar import PUBLIC, by_definition, gather, shown
from verify.tasks import IGNORED, Batch
from verify.tasks.mqar import POLICIES, AllStrings, BenchmarkLayout, PaperLayout, all_strings, mqar_oracle

SMALL = [
    PaperLayout(2, 2, 6),
    PaperLayout(2, 2, 7, filler="mixed"),
    PaperLayout(3, 1, 7, filler="neutral", pairs=2),
    PaperLayout(2, 2, 7, repeat_queries=True, queries=3, write="last"),
    PaperLayout(2, 2, 7, repeat_queries=True, queries=3, write="sum"),
    PaperLayout(2, 2, 8, rebind=True, pairs=3, queries=2, write="last"),
    PaperLayout(3, 1, 8, rebind=True, repeat_queries=True, pairs=3, queries=2),
    PaperLayout(1, 1, 3),
    PaperLayout(1, 1, 5, repeat_queries=True, queries=3),
    BenchmarkLayout(3, 2, 9, pairs=2),
    BenchmarkLayout(2, 2, 8, pairs=2, filler="vocabulary"),
    BenchmarkLayout(1, 1, 4, pairs=1, filler="vocabulary"),
    AllStrings(1, 1, 4, write="last"),
    AllStrings(2, 2, 5, write="first"),
    AllStrings(2, 2, 5, write="sum"),
]

LARGE = [
    PaperLayout(16, 512, 100),
    PaperLayout(16, 64, 100, filler="mixed", repeat_queries=True, queries=40, write="last"),
    PaperLayout(8, 64, 60, rebind=True, pairs=12, queries=8, write="last"),
    PaperLayout(8, 64, 60, pairs=4, queries=2, filler="neutral"),
    replace(PUBLIC, filler="neutral"),
    PUBLIC,
    AllStrings(4, 4, 40),
]


# The oracle


@settings(deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 4), st.sampled_from(sorted(POLICIES)))
def test_the_oracle_meets_the_definition(data, kappa, vocab, write):
    tokens = data.draw(st.lists(st.integers(0, kappa + vocab), max_size=30))
    assert mqar_oracle(tokens, kappa, vocab, write) == by_definition(tokens, kappa, write)


@pytest.mark.parametrize("write", POLICIES)
def test_the_oracle_meets_the_definition_on_every_short_string(write):
    for tokens in product(range(5), repeat=6):
        assert mqar_oracle(tokens, 2, 2, write) == by_definition(tokens, 2, write)


def test_the_policies_differ_on_a_rebound_key():
    tokens = [1, 3, 1, 4, 1]
    answers = {write: mqar_oracle(tokens, 2, 2, write) for write in POLICIES}
    assert answers == {
        "first": [None, None, 3, None, 3],
        "last": [None, None, 3, None, 4],
        "sum": [None, None, 3, None, None],
    }


@pytest.mark.parametrize("tokens", [[5], [-1]])
def test_the_oracle_refuses_unknown_tokens(tokens):
    with pytest.raises(ValueError, match=r"outside 0\.\.4"):
        mqar_oracle(tokens, 2, 2, "first")


def test_the_oracle_refuses_an_unknown_policy():
    with pytest.raises(ValueError, match="'first', 'last', 'sum'"):
        mqar_oracle([1], 2, 2, "max")


# Every task


@pytest.mark.parametrize("task", SMALL + LARGE, ids=shown)
def test_random_sequences_depend_on_the_seed_only(task):
    tokens, labels = gather(task.random(300, seed=7, batch_size=300))
    assert tokens.dtype == labels.dtype == np.int64 and tokens.shape == labels.shape == (300, task.length)
    for batch_size in (1, 7, 299, 1000):
        batches = list(task.random(300, seed=7, batch_size=batch_size))
        assert all(len(b) == batch_size for b in batches[:-1])
        again = gather(batches)
        assert np.array_equal(again[0], tokens) and np.array_equal(again[1], labels)
    assert np.array_equal(gather(task.random(20, seed=7))[0], tokens[:20])


def test_chunks_do_not_show_in_random_sequences():
    # At most 1024 sequences are drawn at a time, so both calls cross a boundary.
    tokens, _ = gather(PUBLIC.random(2100, seed=3, batch_size=64))
    assert np.array_equal(tokens, gather(PUBLIC.random(2100, seed=3, batch_size=2100))[0])
    assert len(np.unique(tokens, axis=0)) == 2100


def test_seeds_differ():
    assert not np.array_equal(gather(PUBLIC.random(5, seed=0))[0], gather(PUBLIC.random(5, seed=1))[0])


@pytest.mark.parametrize("task", SMALL, ids=shown)
def test_exhaustive_yields_as_many_distinct_sequences_as_the_formula_says(task):
    rows = np.concatenate(gather(task.exhaustive(batch_size=1000)), axis=1)
    assert len(rows) == len(np.unique(rows, axis=0)) == task.exhaustive_count()


@pytest.mark.parametrize("task", [t for t in SMALL if t.exhaustive_count() < 4000], ids=shown)
def test_random_sequences_lie_in_the_exhaustive_domain(task):
    every = {row.tobytes() for row in np.concatenate(gather(task.exhaustive()), axis=1)}
    assert all(row.tobytes() in every for row in np.concatenate(gather(task.random(500, seed=1)), axis=1))


@pytest.mark.parametrize("task", SMALL, ids=shown)
def test_exhaustive_does_not_depend_on_the_batch_size(task):
    some, other = gather(task.exhaustive(batch_size=17)), gather(task.exhaustive(batch_size=1024))
    assert np.array_equal(some[0], other[0]) and np.array_equal(some[1], other[1])


def test_exhaustive_is_lazy():
    huge = PaperLayout(16, 512, 100)
    assert huge.exhaustive_count() > 10**100
    assert len(next(huge.exhaustive(batch_size=5))) == 5


@pytest.mark.parametrize("task", SMALL + LARGE, ids=shown)
def test_labels_are_what_the_definition_says(task):
    batches = [next(task.random(50, seed=5)), next(task.exhaustive(50)), *task.adversarial()]
    write = getattr(task, "write", "first")
    for batch in batches:
        for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist()):
            answers = by_definition(tokens, task.kappa, write)
            assert all(label in (IGNORED, answer) for label, answer in zip(labels, answers)), batch.case


@pytest.mark.parametrize("task", SMALL + LARGE, ids=shown)
def test_adversarial_cases_are_named_once_and_stay_in_the_alphabet(task):
    batches = list(task.adversarial())
    cases = [b.case for b in batches]
    assert len(set(cases)) == len(cases) >= 5 and all(cases)
    for batch in batches:
        assert batch.tokens.dtype == np.int64 and 1 <= batch.tokens.shape[1] <= task.length
        assert batch.tokens.min() >= 0 and batch.tokens.max() < task.alphabet_size


def test_a_batch_refuses_labels_of_another_shape():
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        Batch(np.zeros((1, 2), dtype=np.int64), np.zeros((1, 3), dtype=np.int64))


@pytest.mark.parametrize("task", [PUBLIC, SMALL[0]], ids=shown)
@pytest.mark.parametrize("arguments", [(0, 0, 1), (1, -1, 1), (1, 0, 0)])
def test_random_refuses_impossible_arguments_at_the_call(task, arguments):
    with pytest.raises(ValueError, match="the smallest .* that works is"):
        task.random(*arguments)


def test_exhaustive_refuses_an_empty_batch_at_the_call():
    with pytest.raises(ValueError, match="the smallest batch_size that works is 1"):
        PUBLIC.exhaustive(batch_size=0)


# All strings


def test_all_strings_are_all():
    assert list(all_strings(3, 4)) == list(product(range(3), repeat=4))


@pytest.mark.parametrize("write", POLICIES)
def test_every_answerable_key_of_a_string_is_asked(write):
    task = AllStrings(2, 2, 5, write=write)
    tokens, labels = gather(task.exhaustive())
    for row, answers in zip(tokens.tolist(), labels.tolist()):
        assert answers == [IGNORED if a is None else a for a in by_definition(row, 2, write)]


@pytest.mark.parametrize("arguments, message", [((0, 3), "alphabet_size = 0"), ((3, 0), "length = 0")])
def test_impossible_strings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        all_strings(*arguments)
