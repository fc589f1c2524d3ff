"""No function of the checker rounds without a reason; circuits of extreme numbers are read as they are written."""

from __future__ import annotations

import platform
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.verify.checker.extremes import circuit, judged, language
from tests.verify.checker.rounding import FOLDER, ROUNDS, of_circuits, unknown, watched
from tests.verify.checker.test_rounded import world_of
from verify.checker.arithmetic.totals import over_edges
from verify.checker.values.exact import above, sum_sides

_SEEN = platform.machine() == "x86_64" and platform.system() == "Linux"
flags = pytest.mark.skipif(not _SEEN, reason="the flag of inexact results is read from glibc on x86-64")


@pytest.mark.parametrize("seed", range(40))
def test_circuits_of_extreme_numbers(seed):
    rng = random.Random(seed)
    told = judged(circuit(rng), language(rng))
    assert told["read"] + told["refused"] >= 6


@flags
def test_no_function_rounds_without_a_reason():
    assert not unknown(of_circuits(6, 1000))


@flags
def test_what_rounds_is_seen():
    """In Python's division of whole numbers, and in NumPy's sums."""
    for rounds, name in (
        (lambda: above(Fraction(1, 3)), "values/exact.py:above"),
        (lambda: sum_sides(np.array([1.0]), np.array([2.0**-60])), "values/exact.py:sum_sides"),
    ):
        found: Counter[str] = Counter()
        with watched(found):
            rounds()
        assert found[name] and not unknown(found)


@flags
def test_what_does_not_round_is_not_seen():
    found: Counter[str] = Counter()
    with watched(found):
        sum_sides(np.array([1.0]), np.array([2.0**-50]))
        over_edges(world_of(2), np.array([[0.1], [2.5]]))
    assert not found


@flags
def test_a_function_without_a_reason_is_named():
    """A graph that adds up steps of a third."""
    found: Counter[str] = Counter()
    with watched(found):
        world_of(2).language.graph.added(np.array([[0.0], [1.0 / 3]]))
    assert unknown(found) == ["values/language.py:Graph.added.<locals>.<lambda>"]


def test_reasons_are_of_functions_that_there_are():
    for place in ROUNDS:
        file, _, name = place.partition(":")
        text = Path(FOLDER, file).read_text("utf-8")
        parts = [part for part in name.split(".") if part and "<" not in part]
        assert all(f"def {part}(" in text or f"class {part}" in text for part in parts)
