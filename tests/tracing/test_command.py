"""`construct trace` and `construct graph --json`."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, latch, readout_integer, readout_one_hot
from examples.programs import two_brackets
from tests.constructions.test_construct import run


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("two") / "two"
    compile(two_brackets.circuit(), "mamba").save(place)
    return str(place)


def test_a_trace_as_a_table_and_as_json(directory: str, capsys) -> None:
    assert run("trace", directory, "--input", "( [ ]") == 0
    told = capsys.readouterr().out
    assert "level" in told and "every variable and every score is that of circuit.json" in told
    assert run("trace", directory, "--input", "( [ ]", "--patch", "stack@1=(", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["variables"]["stack"] == {"values": ["(", "(", "("], "raw": [[1, 0], [1, 0], [1, 0]]}
    assert found["agrees"] and found["outside"] == [] and found["tokens"] == ["(", "[", "]"]


NAMES = ("2", "1", "0", "none", "inf", "true", "1,0,0", "no", "letter", "last@1=2")


@pytest.fixture(scope="module")
def latched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """`last` holds letters that read like numbers, like none, like true and like a patch."""
    place = tmp_path_factory.mktemp("latched") / "c"
    letters = Alphabet.of(*NAMES, "q")
    tokens = Tokens(letters)
    last = latch(tokens.one_hot(*NAMES), tokens.is_in(*NAMES)).named("last")
    language = InputLanguage.everything(letters, 30)
    compile(Circuit("latched", readout_one_hot(last, letters, NAMES), language), "mamba").save(place)
    return str(place)


@pytest.mark.parametrize(
    "value, holds",
    [
        *((name, name) for name in NAMES if name != "none"),
        ("letter none", "none"),
        ("letter letter", "letter"),
        ("letter 0", "0"),
        ("no letter", None),
        ("0,1,0,0,0,0,0,0,0,0", "1"),
    ],
)
def test_a_letter_is_meant_as_it_stands(value: str, holds: str | None, latched: str, capsys) -> None:
    assert run("trace", latched, "--input", "2 q", "--patch", f"last@1={value}", "--json") == 0
    assert json.loads(capsys.readouterr().out)["variables"]["last"]["values"] == ["2", holds]


@pytest.mark.parametrize(
    "patches, said",
    [
        (("last@1=none",), """has a letter 'none': write "letter none" for it, or "no letter" where it is absent"""),
        (("last@1=NONE",), "has a letter 'none'"),
        (("last@1=letter q",), "'last' cannot hold 'q'"),
        (("last@1=3",), "'last' cannot hold 3; it holds one of '2', '1'"),
        (("last@1=",), "'last' cannot hold ''"),
        (("last@1=7e",), "'last' cannot hold '7e'"),
        (("last@1=0", "last@1=1"), "--patch 'last@1=0' and --patch 'last@1=1' set the same place: leave one out"),
        (("last@1=0", "last@-1=0"), "set the same place"),
        (("last@1=0,1",), "'last' was given 2 numbers, and it has 10 at each position"),
    ],
)
def test_what_no_letter_is_is_refused(patches: tuple[str, ...], said: str, latched: str, capsys) -> None:
    options = [part for patch in patches for part in ("--patch", patch)]
    assert run("trace", latched, "--input", "2 q", *options) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("--input", "( ["), ""),
        (("--input", "( {"), "token '{' is not in the alphabet"),
        (("--input", "(", "--patch", "stack=("), '"NAME@POSITION=VALUE" is needed'),
        (("--input", "(", "--patch", "stak@0=("), "did you mean 'stack'"),
        (("--input", "(", "--patch", "stack@4=("), "the input has 1"),
        (("--input", "(", "--patch", "is_(|[@0=inf"), "a number for 'is_(|[' is inf, and a finite number is needed"),
        (("--input", "(", "--patch", "output@0=1"), "'output' cannot be set in the model: it is the output"),
        (("--input", "(", "--patch", "output@0=a"), "'output' cannot be set in the model: it is the output"),
        (("--input", "(", "--patch", "output@0=a"), "the nearest that can be set: 'stack' before it"),
        (("--input", "(", "--patch", "is_(|[@0=foo"), "'is_(|[' takes true or false, and was given 'foo'"),
        (("--input", "(", "--patch", "is_(|[@0="), "'is_(|[' takes true or false, and was given ''"),
        (("--input", "(", "--patch", "is_(|[@0=1,a"), "'is_(|[' takes true or false, and was given '1,a'"),
        (("--input", "(", "--patch", "is_(|[@0=none"), "'is_(|[' holds numbers, which are never absent"),
        (("--input", "(", "--patch", "is_(|[@0=nan"), "is nan, and a finite number is needed"),
        (("--input", "(", "--patch", "is_(|[@0=" + "9" * 5000), "is inf, and a finite number is needed"),
        (("--input", "(", "--patch", "is_(|[@0=1e300"), "is set to 1e+300, which no lane of float32 holds exactly"),
        (("--input", "(", "--patch", f"is_(|[@{'9' * 5000}=1"), '"NAME@POSITION=VALUE" is needed'),
        (("--input", "(", "--patch", "@0=1"), '"NAME@POSITION=VALUE" is needed'),
        (("--input", "(", "--patch", " @0=1"), "the circuit has no variable ' '"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], said: str, directory: str, capsys) -> None:
    assert run("trace", directory, *arguments) == (2 if said else 0)
    assert said in " ".join(capsys.readouterr().err.split())


def test_what_a_patch_overwrote_is_named_and_not_said_to_be_the_circuits(tmp_path: Path, capsys) -> None:
    """The lanes of a sum hold what is added, which the sum is no part of."""
    letters = Alphabet.of("a", "b", "0", "1", "2")
    x = Tokens(letters)
    first, second = x.is_in("a").cumsum().named("first"), x.is_in("b").cumsum().named("second")
    whole = (first + second).named("whole")
    language = InputLanguage.everything(letters, 2)
    answer = readout_integer(whole, letters, {"0": 0, "1": 1, "2": 2})
    compile(Circuit("sum", answer, language), "mamba").save(tmp_path / "sum")
    assert run("trace", str(tmp_path / "sum"), "--input", "a b", "--patch", "whole@0=2") == 0
    *table, left_out, compared = capsys.readouterr().out.splitlines()
    shown = dict(zip(table[0].split(), table[1].split()[1:], strict=True))
    assert shown["first"] == "2"  # in the circuit it is 1
    assert left_out.startswith("not compared: ") and "'first'" in left_out and "'whole'" not in left_out
    assert compared == "every other variable and every score is that of circuit.json"


def test_the_graph_is_one_of_networkx(directory: str, capsys) -> None:
    assert run("graph", directory, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    graph = nx.node_link_graph(data, edges="edges")
    assert nx.is_directed_acyclic_graph(graph)
    assert data == json.loads(Path(directory, "causal_graph.json").read_text())
