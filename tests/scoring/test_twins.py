"""Twins, by two steps of training: written, read, and refused once they were changed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from compiler import (
    Alphabet,
    CheckpointError,
    Circuit,
    InputLanguage,
    Tokens,
    compile,
    readout_integer,
)
from compiler.artifact.manifest import file_hash
from constructions.scoring.build import problem_of
from constructions.scoring.methods.named import found_by
from constructions.scoring.problem import NothingFound
from constructions.scoring.truth import Truth
from constructions.scoring.twin import behind_first, exchanged, fresh, onwards, trained
from constructions.scoring.twins_saved import read_twin, write_twin
from tests.artifact.test_compare import count_since
from tests.scoring.problems import circuit, run


def renamed_nodes(graph: dict) -> dict:
    for node in graph["nodes"]:
        node["variable"] = node["variable"] and "other"
    return graph


def check_edits(directory: Path) -> None:
    """A twin.json that says otherwise is one sentence, and other lanes are not taken for the truth."""
    file = directory / "twin.json"
    told = json.loads(file.read_text())
    (name,) = told["lanes"]
    for entry, value, said in (
        ("files", [], "twin.json: files"),
        ("files", {}, "must have the hashes of"),
        ("files", told["files"] | {"../plain/config.json": ""}, "must have the hashes of"),
        ("measured", {}, "twin.json: measured"),
        ("lanes", [], "twin.json: lanes"),
        ("steps", -1, "twin.json: steps is -1"),
        ("lanes", {name: [10**6]}, "its lanes are not those"),
        ("lanes", {name: [0, 1, 3, 4]}, "its lanes are not those"),
        ("rest", [31], "its lanes are not those"),
        ("measured", told["measured"] | {"strict": 0.99}, "measured anew it is otherwise"),
        ("seed", -1, "its lanes are not those"),
        ("of", None, "twin.json has no entry of"),
    ):
        other = {k: v for k, v in (told | {entry: value}).items() if v is not None}
        file.write_text(json.dumps(other))
        with pytest.raises(CheckpointError, match=said) as refused:
            problem_of(directory)
        assert refused.value.exit_code == 1, "an edited file is a failed verification"
    file.write_text(json.dumps(told))


@pytest.mark.parametrize("name", ["circuit.json", "tokenizer.json", "causal_graph.json"])
def test_a_file_of_another_circuit_beside_a_twin_is_found(name, place, tmp_path):
    """Also where twin.json has its hash."""
    write_twin(trained(Truth(compile(circuit("last-name"), "mamba")), seed=0, steps=2), place / "plain", tmp_path / "t")
    compile(circuit("at-least-3"), "mamba").save(tmp_path / "other")
    shutil.copyfile(tmp_path / "other" / name, tmp_path / "t" / name)
    told = json.loads((tmp_path / "t" / "twin.json").read_text())
    told["files"][name] = file_hash(tmp_path / "t" / name)
    (tmp_path / "t" / "twin.json").write_text(json.dumps(told))
    with pytest.raises(CheckpointError, match=f"{name} is not that of the circuit whose twin this is") as refused:
        problem_of(tmp_path / "t")
    assert refused.value.exit_code == 1


def test_a_twin_is_written_and_read_and_its_lanes_are_exchanged(place, tmp_path):
    truth = Truth(compile(circuit("last-name"), "mamba"))
    twin = trained(truth, seed=0, steps=2)
    write_twin(twin, place / "plain", tmp_path / "twin")
    again, _ = read_twin(tmp_path / "twin")
    assert again.lanes == twin.lanes and again.faithfulness == twin.faithfulness
    ids = torch.from_numpy(truth.draw(3, 5))
    assert torch.equal(twin.model(ids).logits, again.model(ids).logits)
    one = problem_of(tmp_path / "twin")
    assert (one.used[0] == 1).sum() == 4 and (one.used[0] == 0).sum() == 28
    assert [e.reader.path for e in one.given.edges] == ["backbone.layers.1.norm", "backbone.norm_f"]
    assert (one.edges_used[0] == one.used[0]).all() and not one.edges_used[1].any()
    assert [len(each) for each in found_by("activation-patching", one).edges] == [32, 32]
    block, head = (e.reader for e in one.given.edges)
    with torch.no_grad():
        here = behind_first(one.given.model, ids)
        there = here.roll(1, dims=0)
        for reader, streams in ((block, (here, there)), (head, (there, here))):  # what trains an edge, and what cuts it
            with reader.changed(one.given.model, lambda x: x + there - here):
                logits = one.given.model(ids, use_cache=False).logits
            assert torch.allclose(onwards(one.given.model, *streams), logits, atol=1e-5)
    check_edits(tmp_path / "twin")
    (tmp_path / "twin" / "model.safetensors").rename(tmp_path / "gone")
    with pytest.raises(CheckpointError, match="missing") as gone:
        problem_of(tmp_path / "twin")
    assert gone.value.exit_code == 1
    (tmp_path / "gone").rename(tmp_path / "twin" / "model.safetensors")
    with pytest.raises(NothingFound, match="lanes"):
        found_by("hidden-attention", one)
    base, source = torch.zeros(1, 1, 32), torch.ones(1, 1, 32)
    assert exchanged(base, source, [3, 5]).sum() == 2
    assert all(fresh(truth, 1).lanes[name] != lanes for name, lanes in twin.lanes.items())


@pytest.fixture(scope="module")
def own_twin(tmp_path_factory) -> Path:
    """Two steps of a twin of a circuit of one's own, whose author calls a variable `since`."""
    root = tmp_path_factory.mktemp("own")
    compile(count_since()).save(root / "own")
    assert run("twin", root / "own", "--out", root / "twin", "--steps", 2) == 0
    return root / "twin"


def test_a_twin_of_ones_own_circuit_keeps_the_names_of_its_variables(own_twin):
    assert list(problem_of(own_twin).given.site) == ["since"]


def test_what_the_user_put_beside_an_earlier_twin_stays(own_twin, tmp_path):
    twin = Path(shutil.copytree(own_twin, tmp_path / "twin"))
    for name in ("notes.txt", "README.md"):
        (twin / name).write_text("mine")
    assert run("twin", own_twin.parent / "own", "--out", twin, "--steps", 1, "--force") == 0
    assert (twin / "notes.txt").read_text() == (twin / "README.md").read_text() == "mine"
    told = json.loads((twin / "twin.json").read_text())
    assert told["steps"] == 1 and not {"notes.txt", "README.md"} & told["files"].keys()
    assert list(problem_of(twin).given.site) == ["since"]


FORGED = {
    "other letters": (
        "config.json",
        lambda c: c | {"vocab_size": 99},
        "embeddings.weight is .*, and by its config.json",
    ),
    "no size": ("config.json", lambda c: c | {"hidden_size": "x"}, "config.json is not that of a twin"),
    "no convolution": ("config.json", lambda c: c | {"state_size": -3}, "cannot be read as a model"),
    "no object": ("config.json", lambda c: [c], "config.json is not that of a twin"),
    "another class": ("config.json", lambda c: c | {"model_type": "evil"}, "config.json is not that of a twin"),
    "another activation": ("config.json", lambda c: c | {"hidden_act": "relu"}, "hidden_act is 'relu', and a twin has"),
    "no weights": ("model.safetensors", None, "cannot be read as a model"),
    "another name": ("causal_graph.json", renamed_nodes, "is not that of the circuit whose twin this is"),
    "not measured": ("twin.json", lambda t: t | {"measured": None}, "measured is null"),
    "a better one": (
        "twin.json",
        lambda t: t | {"measured": t["measured"] | {"accuracy": 1.0}},
        "measured.accuracy is",
    ),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_twin_that_was_changed_and_sealed_again_is_refused(case, own_twin, tmp_path):
    twin = Path(shutil.copytree(own_twin, tmp_path / "twin"))
    name, edit, said = FORGED[case]
    (twin / name).write_text("hello" if edit is None else json.dumps(edit(json.loads((twin / name).read_text()))))
    told = json.loads((twin / "twin.json").read_text())
    told["files"] = {name: file_hash(twin / name) for name in told["files"]}
    (twin / "twin.json").write_text(json.dumps(told))
    with pytest.raises(CheckpointError, match=said) as caught:
        problem_of(twin)
    assert "\n" not in str(caught.value)


def test_a_twin_that_nothing_is_left_to_measure_on_is_refused(tmp_path):
    letters = Alphabet.of("a", "b", "0", "1", "2")
    seen = Tokens(letters).is_in("a").cumsum().named("seen")
    answer = readout_integer(seen, letters, {"0": 0, "1": 1, "2": 2})
    language = InputLanguage.of(letters, "any", [("any", "any", ("a", "b"))], 2, "two letters")
    compile(Circuit("two", answer, language)).save(tmp_path / "two")
    with pytest.raises(ValueError, match="none is left to measure it on"):
        run("twin", tmp_path / "two", "--out", tmp_path / "twin")
    assert not (tmp_path / "twin").exists()


def test_no_code_beside_a_twin_is_run(own_twin, tmp_path):
    twin = Path(shutil.copytree(own_twin, tmp_path / "twin"))
    (twin / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass X: pass\n")
    config = json.loads((twin / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.X", "AutoModelForCausalLM": "evil.X"}
    (twin / "config.json").write_text(json.dumps(config))
    told = json.loads((twin / "twin.json").read_text())
    told["files"]["config.json"] = file_hash(twin / "config.json")
    (twin / "twin.json").write_text(json.dumps(told))
    assert list(problem_of(twin).given.site) == ["since"] and not (tmp_path / "ran").exists()
