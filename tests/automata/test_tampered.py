"""Changed checkpoints of automata: what is still proved of them is true, and what is false is found to be so."""

from __future__ import annotations

import json
import random

import pytest

from tests.automata import tampered
from tests.automata.tampered import CHANGES, UNPROVED, case, counted
from tests.spread import some
from verify.checker.formats import Rejected
from verify.checker.tasks.names import Names
from verify.checker.tasks.task import read_task

CLAIM = {
    "name": "automaton",
    "start": "even",
    "transitions": {"even": {"a": "odd", "b": "even"}, "odd": {"a": "even", "b": "odd"}},
    "classes": {"even": "yes", "odd": "no"},
    "end": None,
}


def test_nothing_false_is_proved_of_a_changed_checkpoint():
    count = len(some(range(20), 0.15, least=8))
    found = counted(30, count)
    assert found["failures"] == [] and found["verdicts"]["rejected"] >= count / 2
    assert sum(found["verdicts"].values()) == count and set(found["kinds"]) == set(CHANGES)


def test_an_answer_that_is_false_is_found(monkeypatch):
    """A proof that believed everything would be seen."""
    numbers = iter(range(10))
    monkeypatch.setattr(tampered, "_proved", lambda directory: True)
    outcomes = [case(number) for number in numbers]
    assert any(one["verdict"] == "false" and "is right at position" in one["failure"] for one in outcomes)


def test_a_checkpoint_that_is_not_proved_unchanged_says_nothing(monkeypatch):
    tampered._built.cache_clear()
    monkeypatch.setattr(tampered, "_proved", lambda directory: False)
    assert case(3)["verdict"] == UNPROVED
    tampered._built.cache_clear()


def test_every_change_changes_something():
    """Each kind, ten times: the files or the weights are other ones."""
    files, weights, _ = tampered._built("flip-flop", "mamba")
    for number, change in ((n, c) for n in range(10) for c in (tampered._weight, tampered._letters, tampered._table)):
        edited, other = json.loads(files), {key: tensor.clone() for key, tensor in weights.items()}
        change(edited, other, random.Random(number))
        assert edited != json.loads(files) or any((other[key] != weights[key]).any() for key in weights)


def _stated(**changed):
    return read_task(CLAIM | changed, ["a", "b", "c", "yes", "no"])


def test_the_language_holds_the_letters_that_the_table_names_and_no_others():
    """Two letters that change names leave a table over letters that are never written."""
    letters, ids = ["a", "b", "c", "yes", "no"], Names(["a", "b", "c", "yes", "no"]).these
    _stated().check_letters(letters, ids(["a", "b"]))
    with pytest.raises(Rejected, match="names 'a', which no sequence of the language holds"):
        _stated().check_letters(letters, ids(["b"]))
    with pytest.raises(Rejected, match="the letter 'c' stands in the language, and the task has no place for it"):
        _stated().check_letters(letters, ids(["a", "b", "c"]))
    table = CLAIM["transitions"] | {"odd": {"a": "even", "b": "odd", "c": "odd"}}
    _stated(transitions=table).check_letters(letters, ids(["a", "b", "c"]))
