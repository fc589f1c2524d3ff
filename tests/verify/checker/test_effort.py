"""A search for a proof ends: after a count of steps, with a sentence; and sums take time with what is added."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from compiler.driver import compile
from constructions.copy_dp.own_problem import OwnProblem
from constructions.copy_dp.problem import DPProblem
from verify.checker import check as checks
from verify.checker.check import check
from verify.checker.meaning.relations import deciding
from verify.checker.values import effort
from verify.checker.values.tables import Ramp, ramp_sum


def sums(missing: int, largest: int) -> DPProblem:
    """Running sums of letters, the first of which adds to `missing`."""
    return DPProblem(
        name="sums",
        letters="ab",
        inputs=(2,),
        cells=[(0,), (1,)],
        reads=lambda i: [(0, i)],
        needs=lambda i: [(i - 1,)],
        missing=missing,
        largest=largest,
        transition=lambda cell, letters, values: values[0] + letters[0],
        plain=lambda cell, letters, values: values[0] + letters[0],
    )


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("own") / "sums"
    construction = OwnProblem(sums(3, 6))
    compile(construction.circuit(), construction.target).save(directory)
    return directory


def taken(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of the parts of a proof, in the order in which they are asked: task, arithmetic, meaning."""
    efforts: list[effort.Effort] = []

    @contextmanager
    def kept(weights: int) -> Iterator[effort.Effort]:
        with effort.limited(weights) as one:
            efforts.append(one)
            yield one

    with monkeypatch.context() as patch:
        patch.setattr(checks, "limited", kept)
        assert check(directory).accepted
    return [one.steps for one in efforts]


def test_a_search_that_goes_on_is_stopped_by_its_count(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, arithmetic, meaning = taken(small, monkeypatch)
    assert not task and 100 < arithmetic < effort.LEAST_STEPS and 100 < meaning < effort.LEAST_STEPS
    monkeypatch.setattr(effort, "STEPS_OF_A_WEIGHT", 0)
    limited = effort.limited

    def granted(*budgets: int) -> checks.Verdict:
        left = iter(budgets)

        def one(weights: int) -> AbstractContextManager[effort.Effort]:
            monkeypatch.setattr(effort, "LEAST_STEPS", next(left))
            return limited(weights)

        monkeypatch.setattr(checks, "limited", one)
        return check(small)

    assert granted(0, arithmetic, meaning).accepted
    second = 1  # step of the second proof, without sums that are added up at once
    for steps in (1, arithmetic // 2, arithmetic - 1):
        assert f"stopped after {steps} steps, which is its budget" in (granted(0, steps, second).arithmetic or "")
    for steps in (1, meaning // 2, meaning - 1):
        found = granted(0, arithmetic, steps, second)
        assert found.arithmetic is None and f"stopped after {steps} steps, which is its budget" in (found.meaning or "")


def test_what_it_counts_does_not_depend_on_the_run(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert taken(small, monkeypatch) == taken(small, monkeypatch)


@pytest.mark.parametrize("shape", [(9, 14), (14, 9), (8, 8)])
def test_sums_that_decide(shape: tuple[int, int]) -> None:
    """What vanishes on them vanishes on all rows, and few entries are taken as they are."""
    rng = np.random.default_rng(0)
    for sparse in (False, True):
        for _ in range(20):
            columns = rng.integers(-2, 3, shape) * (rng.random(shape) < (0.15 if sparse else 0.9)).astype(float)
            found = deciding(columns)
            weights = np.zeros((len(found), shape[1]))
            for i, (row, entries) in enumerate(found):
                assert columns[row].any(), "a row that the sum is part of"
                weights[i, list(entries)] = [float(w) for w in entries.values()]
            rank = np.linalg.matrix_rank
            assert rank(np.vstack([columns, weights])) == (rank(weights) if len(weights) else 0)
            if np.count_nonzero(columns) <= shape[1]:
                assert np.count_nonzero(weights) == np.count_nonzero(columns)


def test_the_sum_of_ramps_is_their_sum_at_every_integer() -> None:
    """Also where they have other ends: each goes on as straight as it ends."""
    rng = random.Random(0)
    for _ in range(300):
        terms = []
        for _ in range(rng.randint(2, 5)):
            xs = sorted({rng.randint(-6, 8) for _ in range(rng.randint(1, 6))})
            terms.append((Fraction(rng.randint(-3, 3), 2), Ramp(xs, [Fraction(rng.randint(-4, 4), 4) for _ in xs])))
        found = ramp_sum(terms)
        for x in range(min(r.xs[0] for _, r in terms), max(r.xs[-1] for _, r in terms) + 1):
            assert found.at(x) == sum(w * r.at(x) for w, r in terms)
        assert found.key == Ramp(found.xs, found.ys).key, "no breakpoint that is none"


def test_sums_of_many_ramps_look_at_each_breakpoint_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    at = Ramp.at
    monkeypatch.setattr(Ramp, "at", lambda self, x: looked.append(x) or at(self, x))
    ramps = [Ramp([0, k, k + 1, 2000], [Fraction(0), Fraction(0), Fraction(1), Fraction(1)]) for k in range(1, 1001)]
    ramp_sum([(Fraction(1), ramp) for ramp in ramps])
    assert len(looked) <= 2 * len(ramps)
