"""Counts are bounded by the heaviest walk of the input language: never too low, and on most small languages
attained.
"""

from __future__ import annotations

import numpy as np

from compiler.analysis import heaviest_walk as module
from compiler.analysis import walks
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


def test_a_walk_that_is_never_reset_counts_what_it_can_pass_by():
    """In 1000 steps two of three are letters; `;` comes 333 times."""
    assert _most(count(letter, reset=letter & mark), three) == 667
    assert _most(count(mark, reset=letter & mark), three) == 333


def test_a_reset_that_is_not_certain_resets_nothing():
    doubtful = (rows.is_in(["a"]).cumsum() * rows.is_in(["b"]).cumsum()) > 5
    assert _most(count(letter, reset=doubtful), three) == 667


def test_a_flag_without_a_bound_gives_no_bound():
    """Infinity beside what no walk reaches would be no number, and no number is above any bound."""
    weight = ((np.array([0.0, np.inf]),), (np.array([0.0, 0.0]),))
    endless = walks.Step(1, 1, 0, 0, (), weight)
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


def test_too_many_walks_leave_the_bound_of_the_masses(monkeypatch):
    monkeypatch.setattr(walks, "MOST_STEPS", 2)
    assert _most(count(letter, reset=mark), three) == 1000


def test_too_much_work_leaves_the_bound_of_the_masses(monkeypatch):
    monkeypatch.setattr(module, "_MOST_WORK", 100)
    assert _most(count(letter, reset=letter & mark), three) == 1000
    assert _most(count(letter, reset=mark), three) == 1000
