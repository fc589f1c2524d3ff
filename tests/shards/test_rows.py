"""Rows of a verification: what cannot be together in one is refused, and what a run gives never is."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from constructions.checkpoints.sharded_row import Failure, Row, differs, parsed
from verify.check import Verification, check
from verify.tasks.task import IGNORED, Batch

RIGHT = Row(10, 20, 20, 0, 10, True, True, 3.0, None)
WRONG = Row(10, 20, 17, 2, 8, False, False, -1.0, Failure("random", [1, 0, 1], 2))


@pytest.mark.parametrize("row", [RIGHT, WRONG, replace(RIGHT, queries=0, correct=0, margin=None)])
def test_what_can_be_is_taken_and_comes_back(row: Row) -> None:
    row.check(10, 4, 2)
    assert parsed(json.loads(json.dumps(asdict(row)))) == row == Row.of(row.verification())


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (replace(RIGHT, sequences=9), "sequences is 9, and the shard has 10"),
        (replace(RIGHT, queries=41, correct=41), r"queries is 41, and 0 … 40 is possible"),
        (replace(RIGHT, queries=-1, correct=-1), "queries is -1"),
        (replace(RIGHT, correct=21), "correct is 21 of 20 queries"),
        (replace(RIGHT, correct=-1), "correct is -1"),
        (replace(RIGHT, wrong_inside=1), "wrong_inside is 1 of 0 wrong answers"),
        (replace(WRONG, wrong_inside=-1), "wrong_inside is -1 of 3"),
        (replace(RIGHT, exact_sequences=11), "exact_sequences is 11 of 10"),
        (replace(RIGHT, exact_sequences=9), "0 queries are wrong and 1 sequences have a wrong one"),
        (replace(WRONG, exact_sequences=6), "3 queries are wrong and 4 sequences"),
        (replace(RIGHT, within=False), "bit_exact is true and within is false"),
        (replace(RIGHT, failure=WRONG.failure), "a failure stands there"),
        (replace(WRONG, failure=None), "no failure stands there"),
        (replace(RIGHT, margin=0.0), "margin is 0 with 20 of 20"),
        (replace(WRONG, margin=1.0), "margin is 1 with 17 of 20"),
        (replace(RIGHT, queries=0, correct=0), "margin is 3 with 0 of 0"),
        (replace(WRONG, failure=Failure("", [0], 0)), "no name"),
        (replace(WRONG, failure=Failure("a\nb", [0], 0)), "no name"),
        (replace(WRONG, failure=Failure("a", [], 0)), "its failure has 0 tokens"),
        (replace(WRONG, failure=Failure("a", [0] * 5, 0)), "its failure has 5 tokens"),
        (replace(WRONG, failure=Failure("a", [2], 0)), "of 0 … 1 are possible"),
        (replace(WRONG, failure=Failure("a", [-1], 0)), "of 0 … 1 are possible"),
        (replace(WRONG, failure=Failure("a", [0, 1], 2)), "at position 2 of 2"),
        (replace(WRONG, failure=Failure("a", [0, 1], -1)), "at position -1 of 2"),
    ],
)
def test_what_cannot_be_is_refused(row: Row, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        row.check(10, 4, 2)


@pytest.mark.parametrize("seed", range(20))
def test_every_run_gives_a_row_that_can_be(seed: int) -> None:
    """Scores at random, some infinite or no number, beside others; each query may be right or wrong."""
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 3, (6, 4))
    labels = np.where(rng.random((6, 4)) < 0.5, IGNORED, rng.integers(0, 3, (6, 4)))
    expected = rng.integers(-3, 4, (6, 4, 3)).astype(np.float32)
    other = expected + np.float32(rng.choice([1, np.nan, np.inf, -np.inf]))
    given = np.where(rng.random((6, 4, 3)) < 0.2 * (seed % 3), other, expected)
    bound = 0.0 if seed % 2 else 0.5
    found = check(lambda ids: given[: len(ids)], lambda ids: expected[: len(ids)], [Batch(tokens, labels)], bound=bound)
    row = Row.of(found)
    row.check(6, 4, 3)
    assert parsed(json.loads(json.dumps(asdict(row), allow_nan=False))) == row
    again = row.verification()
    assert again == replace(found, margin=again.margin) and (
        np.isfinite(found.margin) <= (again.margin == found.margin)
    )


def test_two_runs_of_a_shard_are_compared() -> None:
    assert differs(RIGHT, RIGHT, 0.0) is None
    assert differs(replace(RIGHT, margin=2.0), RIGHT, 0.0) == "margin = 2.0, and now 3.0"
    assert differs(RIGHT, WRONG, 0.0) == "correct = 20, and now 17"
    near = replace(RIGHT, margin=3.5, bit_exact=False)
    assert differs(near, RIGHT, 0.125) is None and differs(near, RIGHT, 0.1) == "margin = 3.5, and now 3.0"
    assert differs(WRONG, replace(WRONG, margin=-1.5), 1.0) == "margin = -1.0, and now -1.5"


def test_a_sum_of_rows_is_the_verification() -> None:
    assert sum((row.verification() for row in (RIGHT, WRONG)), start=Verification()) == Verification(
        20, 40, 37, 18, False, -1.0, ("random", [1, 0, 1], 2), False, wrong_inside=2
    )
