"""The tasks of token selection: their counts, their labels, and that their cases keep the conditions."""

import numpy as np
import pytest

from verify.tasks.ngrams import BAR, BEGIN, END, FIRST, NgramLookup
from verify.tasks.selection import Recall, Selection, UniqueInduction
from verify.tasks.solvers.copying import NgramCopySolver, has_conflict, has_repeat
from verify.tasks.task import IGNORED

TASKS = [
    Recall(3, 2, 3),
    Recall(3, 2, 2, distinct=True),
    UniqueInduction(3, 4),
    Selection("angle", 4, 2, 3),
    Selection("plane", 1, 2, 3),
    Selection("signs", 2, 2, 3),
    NgramLookup(2, 2, 4),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.describe())
def test_exhaustive_batches_are_as_many_as_said_and_all_different(task):
    rows = [tuple(row) for batch in task.exhaustive(64) for row in batch.tokens.tolist()]
    assert len(rows) == len(set(rows)) == task.exhaustive_count()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.describe())
def test_random_batches_repeat_with_the_seed(task):
    first, again = (next(iter(task.random(5, seed=3))) for _ in range(2))
    assert (first.tokens == again.tokens).all() and first.tokens.shape == (5, task.length)


def test_recall_gives_the_value_of_the_key():
    """`c 2 a 5 d 1 b 4 a` is 5, the paper's example, with keys a … d as 0 … 3 and value v as 4 + v."""
    assert Recall(4, 6, 4).answer([2, 6, 0, 9, 3, 5, 1, 8, 0]) == 9


def test_induction_gives_the_one_follower():
    """`a c b d e c` is b; where two followers differ nobody asks; a place just before is followed by itself."""
    assert UniqueInduction.labels([0, 2, 1, 3, 4, 2])[-1] == 1
    assert UniqueInduction.labels([0, 1, 0, 2, 0])[-1] == IGNORED
    assert UniqueInduction.labels([0, 0]) == [IGNORED, 0]


def test_selection_takes_the_nearest_and_asks_nobody_about_ties():
    task = Selection("plane", 1, 2, 3)  # (−1, 0), (0, −1), (0, 1), (1, 0)
    query = 4 * 2
    assert task.answer([0 * 2 + 1, 3 * 2 + 0, query + 3]) == 0
    assert task.answer([1 * 2 + 1, 2 * 2 + 0, query + 3]) == IGNORED
    assert task.answer([1 * 2 + 1, 2 * 2 + 1, query + 3]) == 1


def test_angles_are_compared_around_the_circle():
    task = Selection("angle", 8, 2, 3)
    assert task.answer([7 * 2 + 1, 2 * 2 + 0, 8 * 2 + 0]) == 1  # 7 is one step from 0, and 2 is two


def test_conflicts_are_repeats_with_other_followers():
    assert has_repeat("abab", 2) and not has_conflict("abab", 3)
    assert has_conflict("abac", 1) and not has_conflict("abac", 2)
    assert not has_conflict("ab", 1) and has_conflict("aa", 1)  # behind the second a comes the end
    assert NgramCopySolver(2, "ab", 2).chain(("^", "a", "b", "|")) == ["a", "b", "."]


def test_random_recall_keeps_its_conditions():
    batch = next(iter(Recall(3, 4, 6).random(40, 0)))
    for row in batch.tokens:
        value_of: dict[int, int] = {}
        for key, value in zip(row[:-1:2], row[1::2], strict=True):
            assert value_of.setdefault(int(key), int(value)) == value
        assert int(row[-1]) in value_of
    distinct = next(iter(Recall(6, 4, 5, distinct=True).random(40, 0)))
    assert all(len(np.unique(row[:-1:2])) == 5 for row in distinct.tokens)


def by_looking_back(tokens: list[int], n: int) -> list[int]:
    """What `NgramLookup` says of each place, by comparing it with every earlier one."""

    def context(t: int) -> list[int]:
        since = max(s for s in range(t + 1) if tokens[s] in (BEGIN, BAR))
        return [BAR] * (t - since < n) + tokens[max(since + 1, t + 1 - n) : t + 1]

    out = []
    for t in range(len(tokens)):
        seen = [tokens[s] for s in range(1, t + 1) if context(s - 1) == context(t)]
        ranked = sorted({(seen.count(token), token) for token in seen}, reverse=True)
        tied = not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0])
        asked = t > (len(tokens) - 2) // 2
        out.append(IGNORED if tied or not asked else END if ranked[0][1] == BAR else ranked[0][1])
    return out


@pytest.mark.parametrize(("n", "vocab", "word"), [(1, 2, 4), (2, 2, 5), (3, 2, 6), (2, 3, 4)])
def test_the_answers_of_ngrams_are_those_of_looking_back(n, vocab, word):
    for tokens, labels in NgramLookup(n, vocab, word).rows():
        assert labels == by_looking_back(list(tokens), n)
        copy, conflict = [*tokens[word + 2 :], END], has_conflict([f"x{t}" for t in tokens[1 : word + 1]], n)
        assert conflict == (labels[word + 1 :] != copy)  # wrong exactly where a context has two continuations


def test_long_words_without_repeats_are_copied():
    for n, vocab, word in ((1, 5, 5), (2, 4, 16), (3, 3, 20)):
        rows = next(iter(NgramLookup(n, vocab, word).random(6, 0)))
        for tokens, labels in list(zip(rows.tokens.tolist(), rows.labels.tolist(), strict=True))[1::2]:
            assert not has_repeat([f"{t} " for t in tokens[1 : word + 1]], n)
            assert labels[word + 1 :] == [*tokens[word + 2 :], END] and min(tokens[1 : word + 1]) >= FIRST


def test_induction_over_few_words_has_one_earlier_place():
    rows = next(iter(UniqueInduction(4, 30).random(8, 0)))
    for row, labels in list(zip(rows.tokens.tolist(), rows.labels.tolist(), strict=True))[::2]:
        assert row.count(row[-1]) == 2 and labels[-1] == row[row.index(row[-1]) + 1]
