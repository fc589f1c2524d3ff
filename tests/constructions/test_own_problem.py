"""A dynamic program of one's own: from a file to a checkpoint that is verified and writes its table.

What is refused.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from compiler import generate
from constructions.__main__ import main
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.cli import app
from constructions.copy_dp import problem as of_problems
from constructions.copy_dp.own_problem import OwnProblem
from tests.constructions.own_problems import DOCS, from_the_page, problem
from verify.tasks.solvers import tables

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


def test_an_oracle_that_answers_otherwise_at_another_call_is_told(file: Path, tmp_path: Path, monkeypatch):
    """It was right whenever the model was asked, and another when the chain that was written is compared."""
    file.write_text(OWN.replace("+ tolls[0],\n)", "+ tolls[0] + LATER,\n)") + "LATER = 0\n")
    generations = artifact.generations

    def later(*given):
        monkeypatch.setattr(sys.modules["own_file_own"], "LATER", 1)
        return generations(*given)

    monkeypatch.setattr(artifact, "generations", later)
    told = CliRunner().invoke(app, ["dp", f"{file}:GRID", "--out", str(tmp_path / "out"), "--json"])
    assert told.exit_code == 1
    assert "written by step: after '" in told.stderr and "answers otherwise at another call" in told.stderr


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
        ({"inputs": ()}, r"inputs is \(\) \(tuple\), and there must be something to read"),
        ({"inputs": (10**6,)}, r"inputs is \(1000000,\) \(tuple\), with more than 8192 letters in all"),
        ({"inputs": (5000, 5000)}, "more than 8192 letters in all"),
        ({"inputs": (10**5000,)}, "a length of inputs lies beyond"),
        ({"inputs": (1,) * 10**4}, "more than 8192 letters in all"),
        ({"inputs": range(1, 10**9)}, "more than 8192 letters in all"),
        ({"letters": ["a", "a"]}, "letters has 'a', and they must be different texts"),
        ({"letters": [1, 2]}, r"letters has 1, and they must be different texts, none of them \| ; . ! or a number"),
        ({"letters": range(10**9)}, "letters has 0, and they must be different texts"),
        ({"letters": range(2**70)}, r"letters is range\(0, 1180591620717411303424\) .*, and no list is as long"),
        ({"reads": lambda i: range(2**70)}, r"reads of cell \(0,\) is range\(0, .*, and no list is as long"),
        ({"letters": ["a", ""]}, "letters has '', and they must"),
        ({"letters": "a|"}, r"letters has '\|', and they must"),
        ({"letters": "ab3"}, "letters has '3', and they .* a number from 0 to 3, which the chain writes"),
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


def test_the_declaration_that_is_advised_holds_all_values(monkeypatch: pytest.MonkeyPatch):
    """Not those of the cell or of the prompt alone at which the first value is too large."""
    rows = lambda largest: list(OwnProblem(problem(largest=largest)).tasks()[0].rows())
    with pytest.raises(ValueError, match=r"; declare largest = \d+$") as refused:
        rows(1)
    advised = int(str(refused.value).rpartition(" = ")[2])
    assert rows(advised)
    with pytest.raises(ValueError, match=f"declare largest = {advised}$"):
        rows(advised - 1)
    monkeypatch.setattr(tables, "MOST_TRIED", 1)
    with pytest.raises(ValueError, match="; largest must be at least 2$"):
        rows(1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"plain": lambda *_: 1 // 0}, r"plain of cell \(0,\), line \d+: ZeroDivisionError"),
        ({"plain": lambda *_: 0.5}, r"plain gives 0.5 for cell \(0,\), and an integer is needed"),
        ({"plain": lambda *_: None}, "plain gives None"),
        ({"plain": lambda *_: True}, r"plain gives True for cell \(0,\), and an integer is needed"),
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


@pytest.mark.parametrize(("name", "prompt"), [("MATCH", "a b a | b b a ;"), ("STAIRS", "8 ;"), ("LOOT", "d a b d ;")])
def test_the_page_writes_what_the_model_writes(name: str, prompt: str, tmp_path: Path):
    out = str(tmp_path / "made")
    (tmp_path / "own.py").write_text(from_the_page(name), "utf-8")
    options = ["--verify", "random", "--samples", "3", "--no-certify", "--json", "--out", out]
    told = CliRunner().invoke(app, ["dp", f"{tmp_path / 'own.py'}:{name}", *options])
    assert told.exit_code == 0, told.output
    assert re.sub(r"\s+", " ", DOCS).count(f'"{prompt}"` writes `{generate(out, prompt)}`') == 1
    if name == "STAIRS":  # of the others all is verified where they are built, and what is wider takes minutes
        assert CliRunner().invoke(app, ["verify", out, "--samples", "3"]).exit_code == 0


def test_the_example_of_the_module_is_built_and_writes_its_table(tmp_path: Path):
    """As it stands in the docstring of `copy_dp/problem.py`: the cheapest path right and down, of nine tolls."""
    (shown,) = re.findall(r"^    .*?(?=^`construct dp)", of_problems.__doc__, re.DOTALL | re.MULTILINE)
    (tmp_path / "own.py").write_text(textwrap.dedent(shown), "utf-8")
    out = str(tmp_path / "made")
    options = ["--verify", "random", "--samples", "5", "--no-certify", "--json", "--out", out]
    told = CliRunner().invoke(app, ["dp", f"{tmp_path / 'own.py'}:GRID", *options])
    assert told.exit_code == 0, told.output
    assert generate(out, "b a c b b a c a a ;") == "1 1 3 2 2 2 4 2 2 ."
