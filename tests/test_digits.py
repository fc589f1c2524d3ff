"""Numbers of reports: what stands as a bound holds with the digits that are printed."""

from __future__ import annotations

import re
from fractions import Fraction
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from compiler import digits
from constructions.checkpoints.built import build
from constructions.command.reporting import _flat, table_of
from constructions.copy_dp.copy_vectors import CopyVectors
from constructions.truths.commands import told

ROOT = Path(__file__).parents[1]
ROUNDED = re.compile(r"\{[^{}]*bound[^{}:]*:[.\d]*[gef]\}")
BOUNDS = (2.8133e-06, 1.1006, 0.0020448, 1.0, 24.0)


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", ["bound", "largest_bound", "module_bound", "its bound, 39 roundings", "log_covering"])
def test_a_bound_is_printed_at_its_size_or_above(bound: float, name: str) -> None:
    """In the tables of commands, in their reports, and in those of `construct truths`."""
    text = StringIO()
    Console(file=text, width=200).print(table_of([{name: bound}], (name,), tight=True))
    printed = [text.getvalue().split()[-1], _flat({name: bound})[0][1]]
    if bound > 1e-9:
        printed.append(dict(told({name: bound}))[name])
    assert all(Fraction(bound) <= Fraction(number) <= Fraction(bound) * 101 / 100 for number in printed), printed


def test_other_numbers_are_printed_to_nearest_and_lower_bounds_below() -> None:
    assert digits.named("error", 2.8133e-06) == digits.named("bound_fails", 2.8133e-06) == "2.81e-06"
    assert digits.named("lower_bound", 2.8173e-06) == "2.81e-06" and digits.named("error", 2.8173e-06) == "2.82e-06"


@pytest.mark.parametrize(
    ("share", "printed"), [(1.0, "100"), (0.9999999, "99.99"), (0.640625, "64.06"), (0.0, "0"), (0.12109375, "12.11")]
)
def test_all_are_right_only_where_all_are(share: float, printed: str) -> None:
    assert digits.percent(share, 4) == printed


def test_no_sentence_rounds_a_bound_to_nearest() -> None:
    """Each goes through `compiler.digits`."""
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for folder in ("compiler", "constructions", "verify", "conformance")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if ROUNDED.search(line)
    ]
    assert found == []


def test_copy_md_has_the_bound_of_the_promise() -> None:
    bound = build(CopyVectors(n=16)).compiled.error_bound
    assert f"({digits.at_most(bound, 2)} for M = 1 and N = 16;" in (ROOT / "docs" / "copy.md").read_text("utf-8")
