"""Counts are bounded by the heaviest path of the input language: never too low, and on most small languages
attained.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compiler.analysis import heaviest_path as module
from compiler.analysis import paths
from compiler.analysis.domains import Domains
from compiler.interpreter import interpret
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import count
from tests import random_languages
from tests.random_languages import every_string

ROWS = Alphabet.of("a", "b", ";")
rows = Tokens(ROWS)
letter, mark = rows.is_in(["a", "b"]), rows.is_in([";"])
three = InputLanguage.of(
    ROWS,
    "one",
    [("one", "two", ["a", "b"]), ("two", "three", ["a", "b"]), ("three", "one", [";"])],
    1000,
    "two letters, a mark",
)


def _most(stream: Stream, language: InputLanguage) -> float:
    return float(Domains(language, language.max_length).of(stream).hi)


def test_a_row_of_two_letters_counts_to_two():
    assert _most(count(letter, reset=mark), three) == 2
    assert _most(count(rows.is_in(["a"]), reset=mark), three) == 2


def test_a_path_that_is_never_reset_counts_what_it_can_pass_by():
    """In 1000 steps two of three are letters; `;` comes 333 times."""
    assert _most(count(letter, reset=letter & mark), three) == 667
    assert _most(count(mark, reset=letter & mark), three) == 333


def test_a_reset_that_is_not_certain_resets_nothing():
    doubtful = (rows.is_in(["a"]).cumsum() * rows.is_in(["b"]).cumsum()) > 5
    assert _most(count(letter, reset=doubtful), three) == 667


def test_a_flag_without_a_bound_gives_no_bound():
    """Infinity beside what no path reaches would be no number, and no number is above any bound."""
    weight = ((np.array([0.0, np.inf]),), (np.array([0.0, 0.0]),))
    endless = paths.Step(1, 1, 0, 0, (), weight)
    assert module._heaviest([endless], 10) == np.inf


def test_random_counts_over_random_languages():
    rng = np.random.default_rng(0)

    def choose(n: int) -> int:
        return int(rng.integers(n))

    tight = 0
    for _ in range(120):
        language, flag = random_languages.language(choose), random_languages.flags(choose)
        counted = count(flag(), reset=flag())
        circuit = Circuit("count", counted, language)
        reached = max((interpret(circuit, batch)[counted].max() for batch in every_string(language)), default=0)
        most = _most(counted, language)
        assert reached <= most, (language.edges, counted)
        tight += reached == most
    assert tight >= 100


def test_too_many_paths_leave_the_bound_of_the_totals(monkeypatch):
    monkeypatch.setattr(paths, "MOST_STEPS", 2)
    assert _most(count(letter, reset=mark), three) == 1000


def test_too_much_work_leaves_the_bound_of_the_totals(monkeypatch):
    monkeypatch.setattr(module, "_MOST_WORK", 100)
    monkeypatch.setattr(module, "_MOST_SQUARED", 0)
    assert _most(count(letter, reset=letter & mark), three) == 1000
    assert _most(count(letter, reset=mark), three) == 1000


def _random_steps(rng: np.random.Generator, nodes: int) -> list[paths.Step]:
    steps = []
    for _ in range(1 + int(rng.integers(3 * nodes))):
        source, target, weight, reset = (int(rng.integers(n)) for n in (nodes, nodes, 3, 4))
        steps.append(paths.Step(source, target, 0, 0, (), (((0, weight),), ((int(reset == 0), 1),))))
    return steps


def test_squares_count_what_rounds_count(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(0)
    for _ in range(200):
        nodes = 1 + int(rng.integers(5))
        steps, length = _random_steps(rng, nodes), nodes**2 + 1 + int(rng.integers(100))
        squared = module._heaviest(steps, length)
        monkeypatch.setattr(module, "_MOST_SQUARED", 0)
        assert module._heaviest(steps, length) == squared
        monkeypatch.undo()


def test_a_count_over_very_long_sequences_is_bounded_at_once():
    """10^6 rounds would take a minute; without the squares no bound is found in the work that is allowed."""
    million = replace(three, max_length=10**6)
    assert _most(count(mark, reset=letter & mark), million) == 333_333
