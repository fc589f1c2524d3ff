"""Logits are exact sums: all rows of the head at once say what each row says alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from verify.checker.arithmetic import model
from verify.checker.files import Matrix
from verify.checker.formats import FORMATS, Rejected
from verify.checker.values.language import Edge, Language
from verify.checker.values.values import World, constant

MOST = (1 << 24) - 1


def checked(format: str, lanes: list[int], rows: list[list[float]], monkeypatch) -> list[str]:
    """The rows that are looked at one by one; Rejected where one is no exact sum."""
    alone: list[str] = []
    exact_sum = model.exact_sum
    monkeypatch.setattr(
        model, "exact_sum", lambda world, terms, what: (alone.append(what), exact_sum(world, terms, what))[1]
    )
    edge = Edge("any", "any", np.ones(3, dtype=bool), False, True)
    world = World(Language(3, "any", (edge,), 9), FORMATS[format])
    weights = np.array(rows, dtype=float)
    places = np.nonzero(weights)
    head = Matrix(weights.shape, *places, weights[places])
    model._check_head(world, [constant(Fraction(lane)) for lane in lanes], head)
    return alone


def test_signs_are_seen_without_a_look_at_each_row(monkeypatch) -> None:
    assert not checked("float32", [MOST, MOST, -MOST], [[1, -1, 0], [-1, 1, 0], [0, 1, 1], [0, 0, -1]], monkeypatch)


@pytest.mark.parametrize("row", [[1, 1, 0], [-1, -1, 0], [1, 0, -1], [-1, 0, 1], [2, 0.5, 0], [0, 3, 0]])
def test_a_row_that_leaves_the_exact_range_is_found_among_others(row: list[float], monkeypatch) -> None:
    with pytest.raises(Rejected, match="logit 1 can reach"):
        checked("float32", [MOST, MOST, -MOST], [[1, 0, 0], row, [0, 1, 0]], monkeypatch)


def test_a_row_with_a_unit_of_its_own_is_judged_by_it(monkeypatch) -> None:
    assert checked("float32", [1 << 30, 1, 0], [[1, 0, 0], [0, 1, 0]], monkeypatch) == ["logit 0"]


def test_an_overflow_in_few_units_is_found(monkeypatch) -> None:
    with pytest.raises(Rejected, match=r"float16 ends at 6.55e\+04"):
        checked("float16", [1 << 15], [[2.0]], monkeypatch)
    with pytest.raises(Rejected, match=r"needs multiples of 2\^-25"):
        checked("float16", [1], [[2.0**-25]], monkeypatch)
