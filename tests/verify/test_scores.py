"""Scoring each distinct row once finds what scoring every position finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from verify.check import check
from verify.scores import DistinctRows, Split, at_every_position
from verify.tasks.task import IGNORED, Batch

TABLE = np.array([[0, 1, 5], [2, 0, 7], [4, 4, 0], [1, 1, 2]], dtype=np.float32)
HEAD = np.array([[1, 0, 2], [0, 1, 0], [3, 0, 1], [0, 0, 4]], dtype=np.float32).T


def split(table: np.ndarray = TABLE, head: np.ndarray = HEAD) -> Split:
    return Split(lambda tokens: table[tokens], lambda rows: rows @ head)


def batch(seed: int = 0) -> Batch:
    tokens = np.random.default_rng(seed).integers(0, 4, (5, 40))
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


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rows", [0, 3, 100])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_both_ways_find_the_same_in_many_batches(monkeypatch, name: str, rows: int) -> None:
    """Rows are remembered from batch to batch, or forgotten; answers that are asked for may be wrong ones."""
    monkeypatch.setattr("verify.distinct._ROWS", rows)
    model, draw = MODELS[name], np.random.default_rng(7)
    batches = [Batch(np.minimum(b.tokens, most), b.labels) for b, most in zip(map(batch, range(4)), (1, 3, 1, 3))]
    for labels in (b.labels for b in batches):
        labels[:] = np.where(draw.random(labels.shape) < 0.1, draw.integers(0, 4, labels.shape), labels)
    for some in (batches[:1], batches[1:], batches):
        assert check(model, split(), some) == check(whole(model), whole(split()), some)


def test_a_fault_that_only_a_later_batch_meets_is_found_at_each_of_its_positions() -> None:
    """Token 2 is scored right in the first batch, and wrong wherever token 3 stands before it."""

    def rows(tokens: np.ndarray) -> np.ndarray:
        behind = np.zeros(tokens.shape, bool)
        behind[:, 1:] = (tokens[:, :-1] == 3) & (tokens[:, 1:] == 2)
        return TABLE[tokens] + behind[..., None].astype(np.float32)

    first = Batch(np.full((2, 40), 2), np.full((2, 40), IGNORED))
    found = [
        check(replace(split(), rows=rows), split(), some) for some in ([first], [first, batch()], [batch(), first])
    ]
    assert [each.passed for each in found] == [True, False, False]
    assert found[1].failure == found[2].failure == check(whole(replace(split(), rows=rows)), split(), [batch()]).failure


def test_each_distinct_row_is_scored_once_and_its_positions_are_all() -> None:
    scored = []
    model = Split(lambda tokens: TABLE[tokens], lambda rows: (scored.append(len(rows)), rows @ HEAD)[1])
    rows, tokens = DistinctRows([model], split()), batch().tokens
    met = rows.meet(tokens)
    ((expected, (found,)),) = met.new
    ((all_expected, (all_found,)),) = at_every_position([split()], split(), tokens).new
    assert len(expected) == 4 and max(scored) <= 16 and met.known == 0
    assert (found[met.row] == all_found).all() and (expected[met.row] == all_expected).all()
    assert (met.again(0, np.arange(40, 60)) == all_found[40:60]).all()
    later = rows.meet(batch(1).tokens)
    assert later.known == 4 and not list(later.new)
    assert (found[later.row] == TABLE[batch(1).tokens].reshape(-1, 3) @ HEAD).all()


def test_a_head_that_reads_more_than_it_says_is_scored_whole() -> None:
    """Its entries are said to be 0 and 1, and it reads the third as well."""
    lying = replace(split(), read=(np.array([0, 1]), lambda rows: rows @ HEAD[:2]))
    met = DistinctRows([lying], split()).meet(batch().tokens)
    ((expected, _),) = met.new
    assert len(met.row) == batch().tokens.size == len(expected)
    assert check(lying, split(), [batch()]) == check(split(), split(), [batch()])


def test_a_number_that_no_weight_reads_and_that_is_not_finite_is_found() -> None:
    """0 times infinity is no number, in the one batch that has it; those before and after are right."""
    head = HEAD * np.array([[1], [1], [0]], np.float32)

    def rows(tokens: np.ndarray) -> np.ndarray:
        found = TABLE[tokens]
        found[tokens[:, 0] == 3, :, 2] = np.inf
        return found

    def batch_of(*first: int) -> Batch:
        tokens = (np.arange(20) + np.array(first)[:, None]) % 4
        return Batch(tokens, (TABLE[tokens] @ head).argmax(-1))

    finite = Split(lambda tokens: TABLE[tokens], lambda rows: rows @ head)
    model = replace(finite, rows=rows, read=(np.array([0, 1]), lambda rows: rows @ head[:2]))
    plain, late, early, right = batch_of(0, 1), batch_of(1, 3), batch_of(3, 1), batch_of(2, 1)
    with np.errstate(invalid="ignore"):
        for batches in ([plain, right], [late], [plain, early, right], [plain, late, right]):
            found = check(model, finite, batches)
            assert found.bit_exact == (batches == [plain, right])
            assert found == check(whole(model), finite, batches)


def test_rows_come_in_parts_that_fit_the_cache(monkeypatch) -> None:
    seen = []
    model = Split(lambda tokens: (seen.append(len(tokens)), TABLE[tokens])[1], lambda rows: rows @ HEAD, widest=3)
    monkeypatch.setattr("verify.scores._IN_CACHE", 2 * 40 * 3)
    assert (model(batch().tokens) == split()(batch().tokens)).all() and seen == [2, 2, 1]
    assert check(model, split(), [batch()]) == check(split(), split(), [batch()])
