"""Scoring each distinct row once finds what scoring every position finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from verify.check import check
from verify.scores import Split, at_every_position, distinct, of_distinct_rows
from verify.tasks.task import IGNORED, Batch

TABLE = np.array([[0, 1, 5], [2, 0, 7], [4, 4, 0], [1, 1, 2]], dtype=np.float32)
HEAD = np.array([[1, 0, 2], [0, 1, 0], [3, 0, 1], [0, 0, 4]], dtype=np.float32).T


def split(table: np.ndarray = TABLE, head: np.ndarray = HEAD) -> Split:
    return Split(lambda tokens: table[tokens], lambda rows: rows @ head)


def batch() -> Batch:
    tokens = np.random.default_rng(0).integers(0, 4, (5, 40))
    scores = TABLE[tokens] @ HEAD
    labels = np.where(np.arange(40) % 3 == 0, scores.argmax(-1), IGNORED)
    return Batch(tokens, labels)


def whole(model: Split):
    return lambda tokens: model(tokens)


MODELS = {
    "right": split(),
    "one row": split(TABLE + np.eye(4, 3, dtype=np.float32) * (np.arange(4) == 2)[:, None]),
    "one weight of the head": split(head=HEAD + np.eye(3, 4, k=2, dtype=np.float32)),
    "not a number": split(TABLE * np.where(np.arange(4) == 1, np.nan, 1).astype(np.float32)[:, None]),
    "infinite": split(TABLE * np.where(np.arange(4) == 1, np.inf, 1).astype(np.float32)[:, None]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_both_ways_find_the_same(name: str) -> None:
    model = MODELS[name]
    once, every = check(model, split(), [batch()]), check(whole(model), whole(split()), [batch()])
    assert once == every
    assert (once.passed and once.bit_exact) == (name == "right")


def test_each_distinct_row_is_scored_once_and_its_positions_are_all() -> None:
    scored = []
    model = Split(lambda tokens: TABLE[tokens], lambda rows: (scored.append(len(rows)), rows @ HEAD)[1])
    tokens = batch().tokens
    (found,) = of_distinct_rows([model], split(), tokens)
    (expected,) = at_every_position([split()], split(), tokens)
    assert len(found.expected) == 4 and max(scored) <= 16
    order = np.argsort(found.where)
    assert (found.where[order] == np.arange(tokens.size)).all()
    assert (found.found[0][found.row][order] == expected.found[0]).all()


def test_a_head_that_reads_more_than_it_says_is_scored_whole() -> None:
    """Its entries are said to be 0 and 1, and it reads the third as well."""
    lying = replace(split(), read=(np.array([0, 1]), lambda rows: rows @ HEAD[:2]))
    (found,) = of_distinct_rows([lying], split(), batch().tokens)
    assert len(found.where) == batch().tokens.size == len(found.expected)
    assert check(lying, split(), [batch()]) == check(split(), split(), [batch()])


def test_rows_whose_hashes_collide_stand_for_themselves(monkeypatch) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    assert len(distinct(rows, rows)[0]) == 6 and len(distinct(rows // 8)[0]) == 2
    monkeypatch.setattr("verify.scores._hashes", lambda words: np.zeros(len(words), dtype=np.uint64))
    first, row = distinct(rows)
    assert (first == np.arange(6)).all() and (row == np.arange(6)).all()
