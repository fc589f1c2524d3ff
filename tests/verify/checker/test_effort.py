"""A search for a proof ends: after a count of steps, with a sentence; and sums take time with what is added."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler import Alphabet, Circuit, InputLanguage, Stream, Tokens, emit
from compiler.driver import compile
from compiler.language.data import to_data
from constructions.copy_dp.own_problem import OwnProblem
from constructions.copy_dp.problem import DPProblem
from tests.verify.checker.checkpoints import write
from verify.checker import check as checks
from verify.checker.check import check
from verify.checker.meaning.relations import deciding
from verify.checker.values import effort
from verify.checker.values.tables import Ramp, ramp_sum
from verify.checker.values.windows import Letters, TooLarge, join


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


PARTS = ("prove_answers", "prove_arithmetic", "compare")


def taken(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of a proof so far behind each of its parts, in the order in which they are asked: task, arithmetic,
    meaning."""
    efforts: list[effort.Effort] = []
    found: list[int] = []

    @contextmanager
    def kept(weights: int) -> Iterator[effort.Effort]:
        with effort.limited(weights) as one:
            efforts.append(one)
            yield one

    def counted(part: Callable[..., Any]) -> Callable[..., Any]:
        def run(*operands: Any) -> Any:
            result = part(*operands)
            found.append(efforts[-1].steps)
            return result

        return run

    with monkeypatch.context() as patch:
        patch.setattr(checks, "limited", kept)
        for part in PARTS:
            patch.setattr(checks, part, counted(getattr(checks, part)))
        assert check(directory).accepted
    assert len(efforts) == 2, "one budget for the task, and one for arithmetic and meaning together"
    return found


def test_a_search_that_goes_on_is_stopped_by_its_count(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task, arithmetic, meaning = taken(small, monkeypatch)
    assert not task and 100 < arithmetic < meaning - 100 < effort.LEAST_STEPS
    monkeypatch.setattr(effort, "STEPS_OF_A_WEIGHT", 0)
    tried: list[bool] = []
    prove_arithmetic = checks.prove_arithmetic
    monkeypatch.setattr(checks, "prove_arithmetic", lambda c, t: tried.append(t) or prove_arithmetic(c, t))

    def granted(steps: int) -> checks.Verdict:
        monkeypatch.setattr(effort, "LEAST_STEPS", steps)
        return check(small)

    assert granted(meaning).accepted
    for steps in (1, arithmetic // 2, arithmetic - 1):
        assert f"stopped after {steps} steps, which is its budget" in (granted(steps).arithmetic or "")
    for steps in (arithmetic, (arithmetic + meaning) // 2, meaning - 1):
        found = granted(steps)
        assert found.arithmetic is None and f"stopped after {steps} steps, which is its budget" in (found.meaning or "")
    assert tried == [True] + [True, False] * 6, "each way has a budget of its own"


@pytest.fixture
def windows(tmp_path: Path) -> Callable[..., Path]:
    """A checkpoint of no use whose circuit is a sum of products of functions of three letters each.

    letters: how many there are; products: how many are added up, each of six letters in a row.
    """

    def made(letters: int, products: int) -> Path:
        names = [*(f"l{i}" for i in range(letters)), "y", "n"]
        alphabet = Alphabet.of(*names)
        x = Tokens(alphabet)
        number = x.number({f"l{i}": i + 1 for i in range(letters)})
        far = [number.shift(k) for k in range(6)]

        def seen(first: int, less: int) -> Stream:
            parts = [(letters + 1) ** i * far[first + i] for i in range(3)]
            return (parts[0] + parts[1] + parts[2] - less).relu()

        total = sum((1 + i) * (seen(0, 5 + i) * seen(3, 7 + 2 * i)) for i in range(products))
        language = InputLanguage.of(alphabet, "any", [("any", "any", tuple(names[:letters]))], 12, "letters")
        directory = write(
            tmp_path / "c", Circuit("none", emit(alphabet, (x.is_in("y"), "y"), otherwise="n"), language), "mamba"
        )
        other = to_data(Circuit("none", emit(alphabet, (total > 0, "y"), otherwise="n"), language))
        (directory / "circuit.json").write_text(json.dumps(other))
        return directory

    return made


def test_functions_of_many_letters_end_by_the_same_count(
    windows: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen products of windows took 108 processor seconds: nothing counted what their tables cost."""
    monkeypatch.setattr(effort, "LEAST_STEPS", 1 << 15)  # of which so few functions of single letters take some hundred
    begun = time.process_time()
    assert "which is its budget" in (check(windows(8, 16)).meaning or "")
    assert time.process_time() - begun < 20


def test_a_function_of_too_many_letters_is_refused_before_it_is_formed() -> None:
    """Its table would take 35 GiB; that it is too large was seen when it was there."""
    a, b = (Letters({lag: np.arange(41) for lag in lags}, np.ones((41,) * 3)) for lags in ((0, 1, 2), (3, 4, 5)))
    with pytest.raises(TooLarge, match="a function of 6 letters has 4750104241 cases"):
        join(a, b, lambda p, q: pytest.fail("it is formed"))


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
