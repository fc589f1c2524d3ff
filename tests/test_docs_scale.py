"""docs/scale.md shows what was measured."""

from __future__ import annotations

import json

import pytest

from benchmarks import history
from benchmarks.natural_sizes import COMMANDS, DATA, PAGE, shown, table


def test_the_page_shows_the_rows_that_were_measured() -> None:
    rows = json.loads(DATA.read_text("utf-8"))
    assert shown(PAGE.read_text("utf-8")) == table(rows)
    assert rows and {row["name"] for row in rows} <= set(COMMANDS)
    assert all(COMMANDS[row["name"]] in row["command"] for row in rows)


def test_the_page_shows_the_last_line_of_the_history_whose_exponents_follow_from_its_ratios() -> None:
    lines = history.LINES.read_text("utf-8").splitlines()
    line = history.last()
    assert history.shown(PAGE.read_text("utf-8")) == history.table(line)
    assert (PAGE.parent / history.PICTURE).stat().st_size > 10_000
    for curve in (curve for each in lines for curve in json.loads(each)["curves"]):
        against, sizes, expected, _ = history.CURVES[curve["name"]]
        assert (curve["against"], tuple(curve["sizes"]), curve["expected"]) == (against, sizes, expected)
        assert curve["exponent"] == round(history.exponent(curve["sizes"], curve["ratios"]), 2)


def test_an_exponent_is_the_slope_on_both_logarithms() -> None:
    assert history.exponent([1, 10, 100], [1, 100, 10_000]) == pytest.approx(2)
    assert history.exponent([2, 4, 8], [1, 2, 3]) < 1


def test_a_plot_has_each_curve_beside_what_is_expected() -> None:
    axes = history.picture(history.last()).axes
    assert [a.get_title() for a in axes] == list(history.CURVES)
    assert all(len(a.lines) == 2 for a in axes)
