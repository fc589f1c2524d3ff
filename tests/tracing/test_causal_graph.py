"""The causal graph: what has an edge changes its target for some input, what has none never does."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from compiler import compile, load
from compiler.tracing.causal_graph import causal_graph
from compiler.tracing.compared import model_values
from compiler.tracing.intervention import Setting, circuit_values, lane_settings
from compiler.tracing.truth import Truth
from compiler.tracing.variables import Variable
from examples.programs import two_brackets
from tests.tracing.models import MIXERS, brackets, case, depth
from tests.tracing.test_patch import choices, settable


def graph_of(truth: Truth) -> nx.MultiDiGraph:
    return nx.node_link_graph(causal_graph(truth.compiled), edges="edges")


def inputs(truth: Truth) -> np.ndarray:
    language = truth.compiled.source.token_language
    return language.sample(12, min(7, language.max_length), 3)


def changed(truth: Truth, source: Variable, target: Variable, ids: np.ndarray) -> bool:
    """Whether the target changes for some input and value of the source while all else that it reads stays: by the
    interpreter.
    """
    held = {truth.variables.of_stream[s] for s in target.stream.inputs} - {source}
    clean = circuit_values(truth.compiled, ids, {}, [v.stream for v in (*held, target)], True)
    everywhere = np.ones(ids.shape, dtype=bool)
    for value in choices(truth, source):
        numbers = np.broadcast_to(value, (*ids.shape, source.width))
        setting = {v: Setting(everywhere, clean[v.stream]) for v in held} | {source: Setting(everywhere, numbers)}
        after = circuit_values(truth.compiled, ids, setting, [target.stream], False)[target.stream]
        if not np.array_equal(after, clean[target.stream]):
            return True
    return False


@pytest.mark.parametrize("which", ["brackets", "depth"])
def test_every_edge_is_causal_and_no_other_pair_is(which: str) -> None:
    truth = {"brackets": brackets, "depth": depth}[which]("mamba")
    graph, ids = graph_of(truth), inputs(truth)
    for i, source in enumerate(truth.variables):
        for j, target in enumerate(truth.variables):
            if i == j or source.constant or not any(True for _ in choices(truth, source)):
                continue
            assert changed(truth, source, target, ids) == graph.has_edge(i, j), (source.name, target.name)


@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize("which", ["brackets", "depth"])
def test_in_the_model_only_what_lies_behind_a_variable_moves(which: str, mixer: str) -> None:
    truth = {"brackets": brackets, "depth": depth}[which](mixer)
    graph, ids = graph_of(truth), inputs(truth)
    clean = truth.run(ids, {})
    moved_of: dict[str, set[str]] = {}
    for i, source in enumerate(truth.variables):
        if source not in settable(truth):
            continue
        carrier_lanes = set(source.reading.lanes.tolist()) - {truth.variables.one}
        behind = nx.descendants(graph, i)
        moved: set[str] = set()
        for value in choices(truth, source):
            everywhere = np.ones(ids.shape, dtype=bool)
            setting = {source: Setting(everywhere, np.broadcast_to(value, (*ids.shape, source.width)))}
            run = truth.run(ids, lane_settings(truth.carriers, ids, setting, False))
            for j, target in enumerate(truth.variables):
                if j == i or target.constant or (target.reading is None and j != graph.graph["output"]):
                    continue
                same = np.array_equal(
                    model_values(truth.variables, target, run), model_values(truth.variables, target, clean)
                )
                shares = target.reading is not None and carrier_lanes & set(target.reading.lanes.tolist())
                assert same or j in behind or shares, (source.name, target.name)
                moved |= set() if same or j not in behind else {target.name}
        moved_of[source.name] = moved
        readable = {truth.variables[j].name for j in behind if truth.variables[j].reading is not None}
        assert moved, f"{source.name} moves nothing behind it, of {readable}"
    assert moved_of


def test_the_graph_says_where_everything_stands() -> None:
    truth = brackets("mamba")
    data = causal_graph(truth.compiled)
    stack = next(node for node in data["nodes"] if node["name"] == "stack")
    assert stack["where"] == {
        "after": 3,
        "lags": {"0": [[0, 13, 1.0], [1, 14, 1.0]]},
        "channels": stack["where"]["channels"],
        "complete": True,
    }
    assert stack["where"]["channels"] and all(name.startswith("3: ") for name in stack["where"]["channels"])
    assert data["graph"]["lanes"][13]["name"] == "stack[0]" and data["graph"]["lanes"][13]["after"] == 3
    level = next(node for node in data["nodes"] if node["variable"] == "level")
    assert level["operation"] == "one_hot" and "level" in level["names"]
    into = [edge for edge in data["edges"] if edge["target"] == stack["id"]]
    assert {edge["lag"] for edge in into} == {None}  # a memory reads the whole past
    shifted = causal_graph(case("previous_token", "mamba").compiled)
    assert {edge["lag"] for edge in shifted["edges"]} >= {1}


def test_networkx_reads_the_graph_and_would_write_it_so() -> None:
    for source in (brackets("mamba"), depth("mamba"), case("previous_token", "mamba")):
        data = causal_graph(source.compiled)
        graph = nx.node_link_graph(data, edges="edges")
        assert json.dumps(nx.node_link_data(graph, edges="edges")) == json.dumps(data)
        assert len(graph) == len(data["nodes"]) > 1


def test_a_checkpoint_holds_the_graph_and_the_names_of_its_author(tmp_path: Path) -> None:
    compiled = compile(two_brackets.circuit(), "mamba")
    compiled.save(tmp_path / "two")
    model = load(tmp_path / "two")
    assert model.graph() == causal_graph(compiled)
    assert model.trace("( [")["level"] == [1, 2]
    text = (tmp_path / "two" / "causal_graph.json").read_text()
    (tmp_path / "two" / "causal_graph.json").write_text(text.replace("level", "lever"))
    with pytest.raises(Exception, match="causal_graph.json is damaged"):
        load(tmp_path / "two")
