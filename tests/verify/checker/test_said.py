"""What a task asks stands in its sentence: a claim with another parameter is said otherwise, or refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.json_places import at, places
from tests.verify.checker.test_names import ASKED, IDS
from verify.checker.formats import Rejected
from verify.checker.tasks.task import read_task

LETTERS = ["a", "b", "c", "d", "yes", "no"]
OWN = [
    {
        "name": "automaton",
        "start": "s",
        "transitions": {"s": {"a": "t", "b": "s"}, "t": {"a": "s", "b": "t"}},
        "accept": ["t"],
        "end": "c",
    },
    {"name": "lookup", "keys": ["a", "b"], "values": ["c", "d"], "which": "last", "blank": "no", "end": "yes"},
    {"name": "lookup", "keys": ["a", "b"], "values": ["c", "d"], "which": 2, "blank": None, "end": None},
    {"name": "count", "of": ["a", "c"], "since": ["b"], "answers": ["no", "no", "yes"], "end": "d"},
]


def _others(old: Any, letters: list[str]) -> list[Any]:
    if type(old) is bool:
        return [not old]
    if type(old) is int:
        return [old + 1, old - 1, 2 * old + 3]
    return [other for other in [*letters[:8], "first", "last", "sum", "only", "s", None] if other != old]


def _changed(claim: dict, letters: list[str]) -> Iterator[dict]:
    for place in places(claim):
        old = at(claim, place)
        for other in [] if isinstance(old, (dict, list)) or place == ("name",) else _others(old, letters):
            changed = deepcopy(claim)
            at(changed, place[:-1])[place[-1]] = other
            yield changed


def _said(claim: dict, letters: list[str]) -> str | None:
    try:
        return read_task(claim, letters).says
    except Rejected:
        return None


def check(claim: dict, letters: list[str]) -> None:
    said = _said(claim, letters)
    assert said is not None
    alike = [other for other in _changed(claim, letters) if _said(other, letters) == said]
    assert not alike, f"{alike[0]} is said as {claim} is: {said}"


@pytest.mark.parametrize("construction", ASKED, ids=IDS)
def test_each_parameter_of_a_construction_is_in_its_sentence(construction):
    check(json.loads(json.dumps(construction.asks())), list(construction.circuit().alphabet.tokens))


@pytest.mark.parametrize("claim", OWN, ids=lambda claim: claim["name"])
def test_each_entry_of_a_task_of_ones_own_is_in_its_sentence(claim):
    check(claim, LETTERS)
