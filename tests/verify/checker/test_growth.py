"""The work of a proof of recall grows with the keys, not with their square: counted, so that every machine agrees."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.checkpoints import write
from verify.checker.check import check
from verify.checker.values import tables, values, windows


def _counted(owner: Any, name: str, counts: dict[str, int]) -> Any:
    """A patch of a function that counts its calls."""
    function = getattr(owner, name)
    counts[f"{owner.__name__}.{name}"] = 0

    def counting(*operands: Any) -> Any:
        counts[f"{owner.__name__}.{name}"] += 1
        return function(*operands)

    return patch.object(owner, name, counting)


def _work(directory: Path, params: dict) -> dict[str, int]:
    """How many functions of letters are formed, of one or of several, and how many common divisors are found."""
    saved, counts = write(directory, CONSTRUCTIONS["mqar"](**params).circuit(), "mamba"), dict[str, int]()
    places = (tables.Table, "__init__"), (windows.Letters, "__init__"), (values, "divisor_of")
    with _counted(*places[0], counts), _counted(*places[1], counts), _counted(*places[2], counts):
        assert check(saved).weights is None
    return counts


@pytest.mark.parametrize("write_policy", ["sum", "first"])
def test_twice_the_keys_are_twice_the_work(write_policy, tmp_path):
    shared = {"vocab": 16, "layout": "benchmark", "write": write_policy}
    one, two = (_work(tmp_path / f"{kappa}", {"kappa": kappa} | shared) for kappa in (12, 24))
    assert any(one.values()) and all(two[place] <= 2.2 * one[place] for place in one), (one, two)
