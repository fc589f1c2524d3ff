"""`construct trace` and `construct graph --json`."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from compiler import compile
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
    assert "level" in told and "every variable and every score is the circuit's" in told
    assert run("trace", directory, "--input", "( [ ]", "--patch", "stack@1=(", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["variables"]["stack"] == {"values": ["(", "(", "("], "raw": [[1, 0], [1, 0], [1, 0]]}
    assert found["agrees"] and found["outside"] == [] and found["tokens"] == ["(", "[", "]"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        (("--input", "( ["), ""),
        (("--input", "( {"), "token '{' is not in the alphabet"),
        (("--input", "(", "--patch", "stack=("), '"NAME@POSITION=VALUE" is needed'),
        (("--input", "(", "--patch", "stak@0=("), "did you mean 'stack'"),
        (("--input", "(", "--patch", "stack@4=("), "the input has 1"),
        (("--input", "(", "--patch", "is_(|[@0=inf"), "a number for 'is_(|[' is inf, and a finite number is needed"),
        (("--input", "(", "--patch", "output@0=1"), "cannot be set in the model"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], said: str, directory: str, capsys) -> None:
    assert run("trace", directory, *arguments) == (2 if said else 0)
    assert said in " ".join(capsys.readouterr().err.split())


def test_the_graph_is_one_of_networkx(directory: str, capsys) -> None:
    assert run("graph", directory, "--json") == 0
    data = json.loads(capsys.readouterr().out)
    graph = nx.node_link_graph(data, edges="edges")
    assert nx.is_directed_acyclic_graph(graph)
    assert data == json.loads(Path(directory, "causal_graph.json").read_text())
