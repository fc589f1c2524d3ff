"""The tasks of token selection: their counts, their labels, and that their cases keep the conditions."""

import numpy as np
import pytest

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
