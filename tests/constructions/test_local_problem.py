"""m-local problems of one's own, over nothing but the index or over the letters of a word."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from compiler import maximum, minimum
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import proof_of
from constructions.command.cli import app
from constructions.copy_dp.local_inputs import OwnLocalOnLetters
from constructions.copy_dp.local_problem import LocalProblem
from constructions.copy_dp.own_problem import OwnLocal
from tests.constructions.own_problems import named_on_the_page


def ways(stairs: int, steps: tuple[int, ...]) -> int:
    """By listing them."""
    return sum(ways(stairs - step, steps) for step in steps if step <= stairs) if stairs else 1


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_an_m_local_problem(arch: str):
    """Every prompt of the page's problem, on the real modules; by listing, as far as that goes."""
    stairs = named_on_the_page("STAIRS")
    chain = stairs.solver().chain(("40", ";"))
    assert chain[:19] == [str(ways(i, (1, 2, 5)) % 7) for i in range(19)] and len(chain) == 42
    built = build(OwnLocal(stairs, arch=arch))
    results = artifact.verify(built, built.stack(), "exhaustive", 1, seed=0)
    assert artifact.passed(built, results) and results.popitem()[1].sequences >= 41


def most_carried(houses: tuple[int, ...]) -> int:
    """By all choices of houses."""
    taken = product((0, 1), repeat=len(houses))
    allowed = (choice for choice in taken if not any(a and b for a, b in zip(choice, choice[1:])))
    return max(sum(coins for coins, one in zip(houses, choice) if one) for choice in allowed)


@pytest.mark.parametrize(("arch", "proved"), [("mamba", True), ("mamba2", False)])
def test_weights_with_a_maximum_are_proved_only_on_mamba(arch: str, proved: bool):
    """As docs/dp.md says of this problem: on Mamba-2 they are only tested."""
    found, said = proof_of(build(OwnLocalOnLetters(named_on_the_page("LOOT"), arch=arch)))
    assert found["parts"]["meaning"] == proved and said.startswith("proved" if proved else "only tested"), said


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_an_m_local_problem_that_reads_its_input(arch: str):
    """Every word of up to 4 letters on the real modules, against all choices."""
    loot = replace(named_on_the_page("LOOT"), terms=range(1, 5))
    solver = loot.solver()
    for word in (word for length in range(1, 5) for word in product(range(4), repeat=length)):
        prefixes = [str(most_carried(word[: i + 1])) for i in range(len(word))]
        assert solver.chain((*("abcd"[coins] for coins in word), ";")) == [*prefixes, "."]
    assert solver.count() == len(list(solver.prompts())) == 4 + 16 + 64 + 256
    built = build(OwnLocalOnLetters(loot, arch=arch))
    results = artifact.verify(built, built.stack(), "exhaustive", 1, seed=0)
    assert artifact.passed(built, results) and results.popitem()[1].sequences >= 340


def alternating(most, least, values, beside):
    """The least of the greatest of the least of … of some numbers."""
    found = values[0]
    for i, value in enumerate(values):
        found = most(found, value + beside[i]) if i % 2 else least(found, value + beside[i] + 1)
    return least(found, 7)


@pytest.mark.parametrize("letters", ["", "abc"])
def test_an_m_local_problem_of_thirteen_blocks_is_proved(letters: str):
    """A DPProblem as deep is not: the search stops at its budget (the page)."""
    deep = {"reach": 3, "terms": range(1, 5), "letters": letters, "reads": range(0, -7, -1), "blank": 0}
    twice = lambda values: [values[i % 3] for i in range(7)]
    given = deep if letters else {"reach": 8, "terms": 6}
    rule = (
        (lambda most, least: lambda index, values, read: alternating(most, least, twice(values), read))
        if letters
        else (lambda most, least: lambda index, values: alternating(most, least, values, [index == 0] * 8))
    )
    problem = LocalProblem("deep", largest=7, transition=rule(maximum, minimum), plain=rule(max, min), **given)
    built = build((OwnLocalOnLetters if letters else OwnLocal)(problem))
    assert len(built.compiled.blocks) == 13
    assert proof_of(built)[1].startswith("proved from the weights: every score is the circuit's")
    results = artifact.verify(built, built.stack(), "random", 5, seed=0)
    assert artifact.passed(built, results)


def test_letters_before_and_behind_a_place_are_read():
    """The letter before, the one behind and none: `blank`."""
    both = lambda index, values, letters: letters[0] + 3 * letters[1]
    wide = LocalProblem("wide", 1, 3, 8, both, both, letters="xyz", reads=(-1, 1), blank=2)
    built = build(OwnLocalOnLetters(wide))
    chain = wide.solver().chain(("x", "y", "z", ";"))
    assert chain == [str(2 + 3 * 1), str(0 + 3 * 2), str(1 + 3 * 2), "."]
    results = artifact.verify(built, built.stack(), "exhaustive", 1, seed=0)
    assert artifact.passed(built, results)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"letters": "ab1"}, "letters has '1', and they must be different texts"),
        ({"letters": "aa"}, "letters has 'a', and they must be different texts"),
        ({"letters": ["a", 3]}, "letters has 3, and they must be different texts"),
        ({"letters": "a;"}, "letters has ';', and they must"),
        ({"letters": 5}, "letters is 5, and a text, or a list of texts, is needed"),
        ({"letters": range(1, 10**9)}, "letters has 1, and they must"),
        ({"largest": 10**9}, "largest = 1000000000 is too large"),
        ({"reads": ()}, r"reads is \(\) \(tuple\), and 1 to 16 entries work"),
        ({"reads": range(2**70)}, "and 1 to 16 entries work"),
        ({"reads": ("x",)}, "an entry of reads"),
        ({"terms": range(3)}, "words of 1 letter or more are needed"),
        ({"terms": range(3, 3)}, "words of 1 letter or more are needed"),
        (
            {"terms": range(1, 10**9)},
            r"terms is range\(1, 1000000000\) .* at most 2048 letters are tried",
        ),
        ({"terms": range(1, 2**70)}, "and words of at most 2048 letters are tried"),
        ({"terms": 2049}, "terms is 2049, and words of at most 2048 letters are tried"),
        ({"transition": lambda index, values: 0}, "its transition"),
        (
            {"transition": lambda index, values, letters: letters[1]},
            r"it reads letters\[1\], and with reads = \(0,\) there is letters\[0\] only",
        ),
    ],
)
def test_local_problems_over_letters_that_do_not_fit(changed: dict, reason: str):
    with pytest.raises((ValueError, TypeError), match=reason):
        OwnLocalOnLetters(replace(named_on_the_page("LOOT"), **changed)).circuit()


@pytest.mark.parametrize(
    ("terms", "said"),
    [(3, "3 letters"), (range(3, 4), "3 letters"), (range(1, 2), "1 letter"), (range(1, 4), "1 to 3 letters")]
    + [(range(4, 0, -2), "2 or 4 letters"), (range(1, 8, 3), "1, 4 or 7 letters")]
    + [(range(7, 20, 3), "7, 10, … 19 letters"), (range(3, 0, -1), "1 to 3 letters"), (range(2, 4), "2 to 3 letters")],
)
def test_the_lengths_of_words_are_said_once(terms: int | range, said: str):
    loot = replace(named_on_the_page("LOOT"), terms=terms)
    assert OwnLocalOnLetters(loot).prompts() == f"{said} of a b c d"
    assert loot.solver().describe() == f"no-two-neighbours, words of {said}"


def test_the_state_of_an_m_local_problem_does_not_grow_with_its_chain():
    stairs = named_on_the_page("STAIRS")
    sizes = [
        artifact.sizes((built := build(OwnLocal(replace(stairs, terms=terms)))).compiled, built.model)
        for terms in (40, 4000)
    ]
    states = [[(block["d_inner"], block["d_state"]) for block in size["blocks"]] for size in sizes]
    assert states[0] == states[1] and max(columns for _, columns in states[0]) <= stairs.reach


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"reach": 0}, "reach = 0 is too small"),
        ({"reach": 65}, "reach = 65 is too large"),
        ({"terms": 0}, "terms = 0 is too small"),
        ({"largest": 5000}, "largest = 5000 is too large"),
        ({"name": " "}, "one line of text is needed"),
        ({"transition": lambda index, values: "x"}, "its transition gives 'x', and a stream is needed"),
        ({"transition": lambda index, values: 1 // 0}, r"its transition, line \d+: ZeroDivisionError"),
        ({"plain": lambda index, values: 7}, "plain gives 7 for entry 0, and values are declared to be whole numbers"),
        ({"plain": lambda index, values: 0.5}, "plain gives 0.5 for entry 0"),
        ({"plain": lambda index, values: True}, "plain gives True for entry 0, and values are .* whole numbers"),
        ({"plain": lambda index, values: 10**5000}, "plain gives an integer beyond 2\\^64 for entry 0"),
        ({"plain": lambda index, values: (10**5000,)}, "plain gives a tuple with an integer beyond 2\\^64"),
        ({"terms": range(1, 9, 3)}, r"terms is range\(1, 9, 3\) \(range\), and without letters .* one number"),
        ({"terms": range(3, 3)}, r"terms is range\(3, 3\) \(range\), and without letters"),
        ({"plain": None}, "plain is None"),
        (
            {"transition": lambda index, values: values[5]},
            r"transition, line \d+: it reads values\[5\], and with reach = 5 there is values\[0\] to values\[4\] only",
        ),
        (
            {"plain": lambda index, values: values[-6]},
            r"plain of entry 0, line \d+: it reads values\[-6\], and with reach = 5 there is values\[0\] to",
        ),
    ],
)
def test_local_problems_that_do_not_fit(changed: dict, reason: str):
    with pytest.raises(ValueError, match=reason):
        own = OwnLocal(replace(named_on_the_page("STAIRS"), **changed))
        own.circuit()
        list(own.tasks()[0].rows())


def test_answers_that_are_wrong_are_not_said_to_be_right(tmp_path: Path):
    """Above the refusal the report said that all were."""
    file = tmp_path / "own.py"
    file.write_text(
        "from constructions.copy_dp.local_problem import LocalProblem\n"
        "ONE = LocalProblem('one', 1, 6, 2, lambda i, v: v[0] + (i == 0), lambda i, v: 1 if i < 3 else 2)\n"
    )
    options = ["dp", f"{file}:ONE", "--out", str(tmp_path / "out")]
    shown = CliRunner().invoke(app, options)
    assert shown.exit_code == 1 and not (tmp_path / "out").exists()
    (right, of) = re.search(r"answers right: (\d+) of (\d+)", shown.output).groups()
    assert 0 < int(right) < int(of) and f"{int(of) - int(right)} of {of} answers wrong" in " ".join(
        shown.output.split()
    )
    told = CliRunner().invoke(app, [*options, "--json"])
    assert json.loads(told.stdout)["guarantee"]["answers"] == f"{right} of {of}"


def test_a_local_value_beyond_the_range_is_written_as_a_mark():
    count = LocalProblem("count", 1, 5, 2, lambda index, values: index, lambda index, values: index)
    compiled = build(OwnLocal(count)).compiled
    letters = compiled.source.alphabet
    scores = compiled.interpret(np.array([letters.encode("5 ; 0 1 2")]))
    assert letters.tokens[int(scores[0, -1].argmax())] == "!"
