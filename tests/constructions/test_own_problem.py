"""A dynamic program of one's own: from a file to a checkpoint that is verified and writes its table.

What is refused.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from compiler import generate, maximum, minimum
from constructions.__main__ import main
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import proof_of
from constructions.command.cli import app
from constructions.copy_dp.local_inputs import OwnLocalOnLetters
from constructions.copy_dp.local_problem import LocalProblem
from constructions.copy_dp.own_problem import OwnLocal, OwnProblem
from constructions.copy_dp.problem import Aggregation, DPProblem

OWN = """
from compiler import minimum
from constructions.copy_dp.problem import DPProblem

GRID = DPProblem(
    name="cheapest-path",
    letters="abc",
    inputs=(4,),
    cells=[(r, c) for r in range(2) for c in range(2)],
    reads=lambda r, c: [(0, 2 * r + c)],
    needs=lambda r, c: [(r - 1, c), (r, c - 1)],
    missing=20,
    largest=22,
    transition=lambda cell, tolls, costs: minimum(*costs) + tolls[0] - cell.table(lambda r, c: 20 * (r == c == 0)),
    plain=lambda cell, tolls, costs: (0 if cell == (0, 0) else min(costs)) + tolls[0],
)
"""


def problem(**changes) -> DPProblem:
    """Running sums of the letters."""
    given = {
        "name": "sums",
        "letters": "ab",
        "inputs": (3,),
        "cells": [(i,) for i in range(3)],
        "reads": lambda i: [(0, i)],
        "needs": lambda i: [(i - 1,)],
        "transition": lambda cell, letters, values: values[0] + letters[0],
        "plain": lambda cell, letters, values: values[0] + letters[0],
        "largest": 3,
    }
    return DPProblem(**given | changes)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path / "own.py"


def test_from_a_file_to_a_checkpoint_that_writes(file: Path, tmp_path: Path):
    out = str(tmp_path / "out")
    told = CliRunner().invoke(app, ["dp", f"{file}:GRID", "--out", out, "--json"])
    assert told.exit_code == 0, told.output
    assert generate(out, "b a c b ;") == "1 1 3 2 ."
    assert "cheapest-path" in (tmp_path / "out" / "README.md").read_text("utf-8"), "the card"
    assert CliRunner().invoke(app, ["verify", out, "--samples", "5", "--json"]).exit_code == 0


def test_its_memories_are_kept_in_two_digits_where_the_state_must_be_small(file: Path, tmp_path: Path):
    options = ["--max-d-state", "2", "--verify", "random", "--samples", "4", "--no-certify", "--json"]
    told = CliRunner().invoke(app, ["dp", f"{file}:GRID", "--out", str(tmp_path / "small"), *options])
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["sizes"]["d_state"] <= 2


@pytest.mark.quick
def test_a_promise_that_is_shorter_than_its_chains_is_refused():
    with pytest.raises(ValueError, match="leaves the language that bounds the circuit .* at most 4 tokens"):
        list(OwnProblem(problem(), max_length=4).tasks()[0].rows())


@pytest.mark.parametrize("answer", ["last", "max", "min"])
@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_every_input(arch: str, answer: str):
    construction = OwnProblem(problem(answer=answer), arch=arch)
    built = build(construction)
    results = artifact.verify(built, built.stack(), "exhaustive", 1, seed=0)
    assert artifact.passed(built, results) and results.popitem()[1].queries >= 8 * (4 + (answer != "last"))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"needs": lambda i: [(i + 1,)]}, "needs .*, which is written no earlier"),
        ({"reads": lambda i: [(0, i)] * i}, "every cell must have as many"),
        ({"cells": [(0,), (0,)]}, "distinct"),
        ({"largest": 10**6}, "at most 4096 works"),
        ({"letters": ""}, "letters = 0 is too small"),
        ({"cells": [0, 1]}, r"the cell 0 is no tuple; write \(0,\)"),
        ({"reads": lambda i: [(1, 0)]}, r"cell \(0,\) reads input 1, and the last one is 0"),
        ({"reads": lambda i: [(-1, 0)]}, "reads input -1"),
        ({"needs": lambda i: [i - 1]}, r"cell \(0,\) needs -1, and a cell, a tuple, or None is meant"),
        ({"reads": lambda i: [0, 1]}, r"cell \(0,\) reads 0, and a pair \(input, index\) is needed"),
        ({"reads": lambda i: [(0, 1, 2)]}, "a pair"),
        ({"cells": [([0],)]}, r"the cell \(\[0\],\) is no key of a table"),
        ({"inputs": ()}, "inputs = 0 is too small"),
        ({"answer": "sum"}, "answer = 'sum' is unknown; it must be one of 'last', 'max', 'min'"),
        ({"name": "two\nlines"}, "one line of text is needed"),
        ({"needs": lambda i: [1 // 0]}, r"needs of cell \(0,\), line \d+: ZeroDivisionError"),
    ],
)
def test_problems_that_do_not_fit(changes: dict, reason: str):
    with pytest.raises(ValueError, match=reason):
        problem(**changes)


@pytest.mark.parametrize("largest", [512, 1200])
def test_values_whose_squares_float32_does_not_hold(largest: int):
    """The parabola of 900 values and the rules above it took 2^24.6 steps, and were refused."""
    own = problem(
        largest=largest,
        transition=lambda cell, letters, values: values[0] + letters[0].lookup([1, largest // 3]),
        plain=lambda cell, letters, values: values[0] + (1, largest // 3)[letters[0]],
    )
    built = build(OwnProblem(own))
    results = artifact.verify(built, built.bare_stack(), "exhaustive", 1, seed=0, bare=True)
    assert artifact.passed(built, results) and own.solver().chain(["b"] * 3 + [";"])[-2] == str(largest // 3 * 3)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"inputs": 3}, "inputs is 3, and a tuple of lengths is needed"),
        ({"inputs": (1.5,)}, "a length of inputs is 1.5, and an integer is needed"),
        ({"letters": 5}, "letters is 5, and a text, or a list of texts, is needed"),
        ({"cells": ((i,) for i in range(3))}, "a list of tuples is needed"),
        ({"largest": 2.5}, "largest is 2.5, and an integer is needed"),
        ({"missing": None}, "missing is None, and an integer is needed"),
        ({"blank": "a"}, "blank is 'a', and an integer is needed"),
        ({"reads": lambda i: None}, r"reads of cell \(0,\) is None, and a list is needed"),
        ({"reads": lambda i: [(0, i / 2)]}, r"what cell \(0,\) reads is 0.0, and an integer is needed"),
    ],
)
def test_entries_of_another_kind(changes: dict, reason: str):
    with pytest.raises(TypeError, match=reason):
        problem(**changes)


def test_a_table_of_no_integers_is_refused_with_the_cell():
    thirds = problem(transition=lambda cell, letters, values: cell.table(lambda i: i / 3))
    with pytest.raises(ValueError, match=r"the table's entry of cell \(0,\) is 0.0, and an integer is needed"):
        thirds.circuit()


def test_a_value_beyond_the_declared_range():
    with pytest.raises(ValueError, match="cell .* can be 3, and values are declared to be 0 to 2"):
        list(OwnProblem(problem(largest=2)).tasks()[0].rows())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"plain": lambda *_: 1 // 0}, r"plain of cell \(0,\), line \d+: ZeroDivisionError"),
        ({"plain": lambda *_: 0.5}, r"plain gives 0.5 for cell \(0,\), and an integer is needed"),
        ({"plain": lambda *_: None}, "plain gives None"),
        ({"plain": lambda *_: -2}, "cell .* can be -2, .*; add 2 to every value"),
        ({"transition": lambda *_: 1 // 0}, r"its transition, line \d+: ZeroDivisionError"),
        ({"transition": lambda *_: "x"}, "its transition gives 'x', and a stream is needed"),
    ],
)
def test_functions_that_go_wrong(changes: dict, reason: str):
    own = OwnProblem(problem(**changes))
    with pytest.raises(ValueError, match=reason):
        own.circuit()
        list(own.tasks()[0].rows())


def test_a_transition_may_be_a_number():
    compiled = build(OwnProblem(problem(transition=lambda *_: 2))).compiled
    letters = compiled.source.alphabet
    scores = compiled.interpret(np.array([letters.encode("b b b ; 1")]))
    assert letters.tokens[int(scores[0, -1].argmax())] == "2"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\ny = x // 0\n", "broken.py, line 2: ZeroDivisionError"),
        ("raise SystemExit(0)\n", "broken.py, line 1: SystemExit: 0"),
    ],
)
def test_a_file_that_goes_wrong_is_one_sentence(text: str, reason: str, tmp_path: Path, capsys, monkeypatch):
    path = tmp_path / "broken.py"
    path.write_text(text)
    monkeypatch.setattr("sys.argv", ["construct", "dp", f"{path}:GRID"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert reason in capsys.readouterr().err


def test_a_value_beyond_the_range_is_written_as_a_mark():
    compiled = build(OwnProblem(problem(largest=2))).compiled
    letters = compiled.source.alphabet
    scores = compiled.interpret(np.array([letters.encode("b b b ; 1 2")]))
    assert letters.tokens[int(scores[0, -1].argmax())] == "!"


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("{file}:app", "own.py has no 'app'; a name that the file gives a value is needed"),
        ("{file}:DPProblem", "it is type, and a DPProblem or a LocalProblem is needed"),
        ("{file}", "names nothing in a file; write FILE.py:NAME"),
        ("{file}:", "names nothing in a file; write FILE.py:NAME"),
        (":GRID", "names nothing in a file; write FILE.py:NAME"),
    ],
)
def test_what_is_no_problem(what: str, reason: str, file: Path, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["construct", "dp", what.format(file=file)])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert reason in " ".join(capsys.readouterr().err.split())


DOCS = (Path(__file__).parents[2] / "docs" / "dp.md").read_text("utf-8")


def from_the_page(name: str) -> str:
    """The program of the page that gives this name a value."""
    (program,) = (code for code in re.findall(r"```python\n(.*?)```", DOCS, re.S) if f"\n{name} = " in code)
    return program


def named_on_the_page(name: str):
    space: dict = {}
    exec(from_the_page(name), space)
    return space[name]


def changes(one: str, other: str) -> int:
    """The least number of letters put in, dropped or changed, by trying all first steps."""

    @cache
    def least(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        return min(least(a[1:], b) + 1, least(a, b[1:]) + 1, least(a[1:], b[1:]) + (a[0] != b[0]))

    return least(one, other)


def found_in(pattern: str, text: str) -> list[int]:
    """For each prefix of the pattern and end in the text the best match that ends there, then the best of all: by
    trying every part of the text.
    """
    best = lambda word, end: min(changes(word, text[start:end]) for start in range(end + 1))
    table = [[best(pattern[:r], end) for end in range(len(text) + 1)] for r in range(len(pattern) + 1)]
    parts = [text[i:j] for j in range(len(text) + 1) for i in range(j + 1)]
    return [*(entry for row in table for entry in row), min(changes(pattern, part) for part in parts)]


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_lengths_from_separators_and_an_aggregation_of_the_last_row(arch: str):
    """Every pattern and text of the page's problem, on the real modules, against all parts of the text."""
    match = named_on_the_page("MATCH")
    built = build(OwnProblem(match, arch=arch))
    solver, prompts = match.solver(), set()
    for one, other in product(range(1, 4), range(4)):
        for letters in product("ab", repeat=one + other):
            pattern, text = "".join(letters[:one]), "".join(letters[one:])
            prompt = (*pattern, "|", *text, ";")
            assert solver.chain(prompt) == [*map(str, found_in(pattern, text)), "."]
            prompts.add(prompt)
    assert set(solver.prompts()) == prompts and solver.count() == len(prompts)
    results = artifact.verify(built, built.stack(), "exhaustive", 1, seed=0)
    assert artifact.passed(built, results) and results.popitem()[1].sequences >= len(prompts)


def test_the_page_writes_what_the_model_writes(tmp_path: Path):
    for name, prompt in {"MATCH": "a b a | b b a ;", "STAIRS": "8 ;", "LOOT": "d a b d ;"}.items():
        directory = name.lower()
        (tmp_path / "own.py").write_text(from_the_page(name), "utf-8")
        options = ["--verify", "random", "--samples", "3", "--no-certify", "--json", "--out", str(tmp_path / directory)]
        told = CliRunner().invoke(app, ["dp", f"{tmp_path / 'own.py'}:{name}", *options])
        assert told.exit_code == 0, told.output
        written = generate(tmp_path / directory, prompt)
        assert re.sub(r"\s+", " ", DOCS).count(f'"{prompt}"` writes `{written}`') == 1
    assert CliRunner().invoke(app, ["verify", str(tmp_path / "stairs"), "--samples", "3"]).exit_code == 0


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
        ({"reads": ()}, "reads has 0 entries, and 1 to 16 work"),
        ({"reads": ("x",)}, "an entry of reads"),
        ({"terms": range(3)}, "words of 1 letter or more are needed"),
        ({"terms": range(3, 3)}, "words of 1 letter or more are needed"),
        ({"terms": range(1, 10**9)}, "terms = 2049 is too large"),
        ({"transition": lambda index, values: 0}, "its transition"),
    ],
)
def test_local_problems_over_letters_that_do_not_fit(changed: dict, reason: str):
    with pytest.raises((ValueError, TypeError), match=reason):
        OwnLocalOnLetters(replace(named_on_the_page("LOOT"), **changed)).circuit()


def test_the_state_of_an_m_local_problem_does_not_grow_with_its_chain():
    stairs = named_on_the_page("STAIRS")
    sizes = [
        artifact.sizes((built := build(OwnLocal(replace(stairs, terms=terms)))).compiled, built.model)
        for terms in (40, 4000)
    ]
    states = [[(block["d_inner"], block["d_state"]) for block in size["blocks"]] for size in sizes]
    assert states[0] == states[1] and max(columns for _, columns in states[0]) <= stairs.reach


def varying(**changed) -> DPProblem:
    """Sums of the letters of an input of 1 to 2 letters, then twice the last one."""
    given = {
        "inputs": (range(1, 3),),
        "cells": lambda n: [(i,) for i in range(n[0])],
        "reads": lambda n, i: [(0, i)],
        "needs": lambda n, i: [(i - 1,)],
        "largest": 6,
        "answer": Aggregation(lambda n: [(n[0] - 1,)], lambda values: 2 * values[0], lambda values: 2 * values[0]),
    }
    return problem(**given | changed)


@pytest.mark.parametrize("lengths", [range(1, 3), range(2, 3), range(1, 6, 2), range(3)])
def test_every_length_that_a_range_has(lengths: range):
    some = {} if 0 not in lengths else {"cells": lambda n: [(i,) for i in range(max(1, n[0]))], "blank": 0}
    answer = Aggregation(lambda n: [(max(0, n[0] - 1),)], lambda values: 2 * values[0], lambda values: 2 * values[0])
    own = varying(inputs=(lengths,), largest=12, answer=answer, **some)
    built = build(OwnProblem(own))
    results = artifact.verify(built, built.stack(), "exhaustive", 1, seed=0)
    assert artifact.passed(built, results)
    longest = ("b",) * max(lengths)
    sums = list(map(str, range(1, len(longest) + 1)))
    assert own.solver().chain((*longest, ";")) == [*sums, str(2 * len(longest)), "."]
    assert not built.compiled.source.language.accepts(
        built.compiled.source.alphabet.encode(" ".join(["b"] * (max(lengths) + 1)))
    )


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"cells": [(0,)]}, "cells is a list, and an input has a range of lengths; give both or neither"),
        ({"inputs": (2,)}, "cells is a function of n, and no input has a range"),
        ({"inputs": (range(0),)}, "a range of lengths holds some"),
        ({"inputs": (range(-1, 3),)}, "none of them below 0"),
        ({"inputs": (range(1),)}, "some input of it has a letter"),
        ({"inputs": (range(60), range(60))}, "3600 combinations, and at most 2048 work"),
        ({"inputs": (range(1, 90),)}, "the number of cells of all sizes together is over 2048"),
        ({"cells": lambda n: 1 // 0}, r"cells of size \(1,\), line \d+: ZeroDivisionError"),
        ({"reads": lambda n, i: [(0, i)] * n[0]}, "every cell must have as many"),
        ({"answer": Aggregation([(0,)], min, min)}, "the answer's cells are a function of n where lengths vary"),
        ({"answer": Aggregation(lambda n: [(7,)], min, min)}, r"its answer needs \(7,\), which is no cell of size"),
        ({"answer": Aggregation(lambda n: [(0,)] * n[0], min, min)}, "every size must have as many"),
        ({"answer": Aggregation(lambda n: [], min, min)}, "and at least one"),
        ({"answer": Aggregation(lambda n: [0], min, min)}, "its answer needs 0, and a cell"),
    ],
)
def test_varying_problems_that_do_not_fit(changed: dict, reason: str):
    with pytest.raises(ValueError, match=reason):
        varying(**changed)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Aggregation(lambda n: [(0,)], lambda values: 1 // 0, min), "its aggregation, line .*ZeroDivisionError"),
        (Aggregation(lambda n: [(0,)], lambda values: "x", min), "its aggregation gives 'x', and a stream is needed"),
    ],
)
def test_an_aggregation_that_goes_wrong(answer: Aggregation, reason: str):
    with pytest.raises(ValueError, match=reason):
        varying(answer=answer).circuit()


@pytest.mark.parametrize(
    ("plain", "reason"),
    [(None, "the answer's plain is None"), (lambda values: 99, "the value of the answer can be 99, .*largest = 99")],
)
def test_an_answer_on_integers_that_goes_wrong(plain, reason: str):
    own = varying(answer=Aggregation(lambda n: [(0,)], lambda values: values[0], plain))
    with pytest.raises(ValueError, match=reason):
        own.solver().chain(("b", ";"))


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
        ({"plain": None}, "plain is None"),
    ],
)
def test_local_problems_that_do_not_fit(changed: dict, reason: str):
    with pytest.raises(ValueError, match=reason):
        own = OwnLocal(replace(named_on_the_page("STAIRS"), **changed))
        own.circuit()
        list(own.tasks()[0].rows())


def test_a_local_value_beyond_the_range_is_written_as_a_mark():
    count = LocalProblem("count", 1, 5, 2, lambda index, values: index, lambda index, values: index)
    compiled = build(OwnLocal(count)).compiled
    letters = compiled.source.alphabet
    scores = compiled.interpret(np.array([letters.encode("5 ; 0 1 2")]))
    assert letters.tokens[int(scores[0, -1].argmax())] == "!"
