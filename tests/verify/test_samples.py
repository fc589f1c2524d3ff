"""Which sequences are run: hard ones first, within the budget, and the report counts those that are not."""

from __future__ import annotations

import numpy as np
import pytest

from constructions.command.display import _left_out
from verify.check import Verification
from verify.samples import Cost, affordable, chosen_batches, spread
from verify.tasks.mqar.paper import PaperLayout
from verify.tasks.task import Batch, HardCase


def cases(*sizes: int, length: int = 1) -> list[HardCase]:
    """Cases of so many sequences of ascending numbers."""
    made = [np.repeat(np.arange(n)[:, None], length, axis=1) for n in sizes]
    return [HardCase.of(Batch(tokens, np.zeros_like(tokens), str(len(tokens)))) for tokens in made]


@pytest.mark.parametrize(
    ("most", "counts"),
    [(100, [1, 2, 50]), (53, [1, 2, 50]), (13, [1, 2, 10]), (3, [1, 1, 1]), (2, [1, 1, 0]), (0, [0] * 3)],
)
@pytest.mark.parametrize("length", [1, 7])
def test_many_hard_sequences_are_spread_over_their_cases(most: int, counts: list[int], length: int) -> None:
    rows = spread(cases(1, 2, 50, length=length), most * length + length // 2)
    assert [len(each) for each in rows] == counts
    if counts[2] > 1:
        assert rows[2][0] == 0 and rows[2][-1] == 49 and len(set(rows[2])) == counts[2]


def test_short_cases_are_run_where_long_ones_are_beyond_the_budget() -> None:
    mixed = [*cases(5, length=100), *cases(4, length=3)]
    assert [len(rows) for rows in spread(mixed, 20)] == [0, 1]
    assert [len(rows) for rows in spread(mixed, 103)] == [1, 1]


@pytest.mark.parametrize("products", [0, 1 << 22, 1 << 30, 1 << 40])
def test_the_budget_is_kept_and_what_is_left_out_is_counted(products: int) -> None:
    task = PaperLayout(kappa=8, vocab=64, length=64, filler="mixed")
    hard = sum(map(len, task.adversarial()))
    cost = Cost(73, products)
    chosen = chosen_batches(task, "auto", 10_000, 0, cost)
    run = list(chosen.batches)
    random = sum(len(batch) for batch in run if not batch.case)
    assert sum(map(len, run)) == chosen.count and random >= 1
    assert chosen.left_out == hard - (chosen.count - random) and chosen.not_drawn == 10_000 - random
    assert sum(batch.tokens.size for batch in run) <= max(cost.affordable, task.length)
    assert (chosen.left_out == chosen.not_drawn == 0) == (products <= 1 << 20)
    if chosen.count > random:
        assert run[0].case
    assert chosen_batches(task, "random", 100, 0, cost).count == hard + 100
    assert 1 <= affordable(task, 1000, cost, 1 / 8) <= max(1, cost.affordable // 8 // task.length)


def test_only_the_chosen_hard_sequences_are_labelled(monkeypatch) -> None:
    task, labelled = PaperLayout(kappa=64, vocab=64, length=256), []
    labels = PaperLayout.labels
    monkeypatch.setattr(PaperLayout, "labels", lambda *given: (labelled.append(1), labels(*given))[1])
    run = list(chosen_batches(task, "auto", 1, 0, Cost(129, 1 << 28)).batches)
    hard = sum(len(batch) for batch in run if batch.case)
    assert hard < 20 < 100 < sum(case.count for case in task.hard_cases())
    assert len(labelled) == hard + 1  # a thousand random ones are drawn at once, and the one that is wanted answered


def test_the_chosen_ones_are_those_of_the_whole_case() -> None:
    task = PaperLayout(kappa=5, vocab=6, length=20, filler="values")
    for case, whole in zip(task.hard_cases(), task.adversarial(), strict=True):
        rows = [case.count - 1, 0]
        some = case.batch(rows)
        assert (case.name, case.count, case.length) == (whole.case, len(whole), whole.tokens.shape[1])
        assert (some.tokens == whole.tokens[rows]).all() and (some.labels == whole.labels[rows]).all()


def test_the_report_says_how_many_were_not_run_and_why() -> None:
    whole, some = Verification(sequences=5), Verification(sequences=5, left_out=2060, not_drawn=9_999)
    report = {"verification": {"tasks": {"a": whole.to_json(), "b": some.to_json()}}}
    (said,) = _left_out(report)
    assert said.startswith("task 2: 2,060 adversarial and 9,999 random sequences not run") and "2^40" in said
