"""The models: what is written, read back, and what is never written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from compiler.driver import compile
from conformance.exact import Inexact
from conformance.faults.runtime import FaultyRuntime
from conformance.models.build import build, case_of
from conformance.models.case import read, read_all, right_entries
from conformance.models.circuits import CORES
from conformance.models.companion import KINDS, companion
from conformance.models.judge import judge_model
from conformance.models.variants import grouped, occupied
from conformance.report import write
from constructions.command.cli import app


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models")
    list(build(directory, only=("count-since-mamba", "codes-mamba2")))
    return directory


def files(directory):
    return json.loads((directory / "config.json").read_text()), load_file(directory / "model.safetensors")


def test_models_come_back_as_they_were(place) -> None:
    first, second = read_all(place)
    assert (first.name, second.name) == ("codes-mamba2", "count-since-mamba")
    assert first.asks == CORES["codes"].asks and first.tokens.shape == (3, 60)
    assert [state.shape for state in first.states] == [(8, 4, 8)]
    assert 0.4 < first.informative.double().mean() < 1


def test_another_checkpoint_in_the_place_of_a_model_is_not_judged_as_it(place, tmp_path) -> None:
    there = Path(shutil.copytree(place, tmp_path / "there"))
    (there / "mine").mkdir()
    (there / "mine" / "config.json").write_text("{}")
    save_file({"a": torch.ones(1)}, there / "mine.safetensors")  # of somebody's, and left alone
    assert len(list(read_all(there))) == 2
    (there / "codes-mamba2" / "README.md").write_text("mine")  # which no runtime reads
    assert len(list(read_all(there))) == 2
    shutil.copy(there / "count-since-mamba" / "model.safetensors", there / "codes-mamba2")
    with pytest.raises(ValueError, match="codes-mamba2/model.safetensors is not the file that the vectors in"):
        list(read_all(there))
    told = run("conformance", "--checkpoint-dir", there)
    assert "is not the file that the vectors in" in str(told.exception)


def of_another(there: Path) -> None:
    shutil.rmtree(there / "codes-mamba2")
    shutil.copytree(there / "count-since-mamba", there / "codes-mamba2")


PUT: dict[str, Callable[[Path], object]] = {
    "codes-mamba2 is not as an earlier run": of_another,
    "induction-mamba is not as an earlier run": lambda there: (there / "induction-mamba").mkdir(),
    "count-since-mamba is not as an earlier run": lambda there: (there / "count-since-mamba" / "a").write_text("mine"),
    "random-mamba is not as an earlier run": lambda there: (there / "random-mamba").write_text("mine"),
    "random-mamba.safetensors is no file of vectors": lambda there: save_file(
        {"a": torch.ones(1)}, there / "random-mamba.safetensors"
    ),
}


@pytest.mark.parametrize("says", PUT)
def test_what_an_earlier_run_has_not_written_is_not_replaced_by_a_model(says, place, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("conformance.report.OPERATIONS", ())
    monkeypatch.setattr("conformance.report._built", lambda *_: [])
    there = Path(shutil.copytree(place, tmp_path / "models"))
    PUT[says](there)
    before = {path: path.is_file() and path.read_bytes() for path in there.rglob("*")}
    for found in (run("conformance", "--out", tmp_path).exception, raised(write, tmp_path)):
        assert says in str(found) and "would be lost: move it away" in str(found)
    assert {path: path.is_file() and path.read_bytes() for path in there.rglob("*")} == before
    assert not (tmp_path / "vectors").exists()


def test_models_of_an_earlier_run_are_written_anew_and_others_stay(place, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("conformance.report.OPERATIONS", ())
    only = ("codes-mamba2", "codes-mamba2-groups-2")
    made = lambda directory, full, heard: list(build(directory, full, only))
    monkeypatch.setattr("conformance.report._built", made)
    shutil.copytree(place / "count-since-mamba", tmp_path / "models" / "mine")
    for full, length in ((False, 60), (True, 1000)):
        assert run("conformance", "--out", tmp_path, *["--full"] * full).exit_code == 0
        one, _ = read_all(tmp_path / "models")
        assert one.tokens.shape == (3, length)
        assert one.directory.name == "codes-mamba2-groups-2" and set(verdicts(one).values()) == {"passed"}
        assert (tmp_path / "models" / "mine" / "construction.json").is_file()


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def raised(call, *arguments) -> Exception:
    with pytest.raises(ValueError) as found:
        call(*arguments)
    return found.value


def test_no_channel_is_idle_in_what_is_occupied(place) -> None:
    config, tensors = files(place / "count-since-mamba")
    _, filled = occupied(config, tensors)
    read = lambda m: (
        (m["backbone.layers.0.mixer.out_proj.weight"] != 0).any(0)
        | (m["backbone.layers.0.mixer.x_proj.weight"] != 0).any(0)
    )
    assert read(filled).all() and not read(tensors).all()


def test_groups_have_levels_of_their_own(place) -> None:
    config, tensors = files(place / "codes-mamba2")
    wider, grown = grouped(config, tensors, 4)
    assert wider["n_groups"] == 4 and wider["num_heads"] == 4 * config["num_heads"]
    D = grown["backbone.layers.0.mixer.D"].unflatten(0, (4, -1))
    assert D[0].any() and all(torch.equal(D[i], 4**i * D[0]) for i in range(4))


def test_what_does_not_say_what_its_circuit_says_is_no_test(place) -> None:
    compiled = compile(CORES["count-since"].build(60), "mamba")
    config, tensors = files(place / "count-since-mamba")
    tokens = next(iter(c for c in read_all(place) if c.name == "count-since-mamba")).tokens.numpy()
    case_of(place / "count-since-mamba", compiled, tokens, "", (config, tensors))
    tensors["lm_head.weight"] = tensors.get("lm_head.weight", tensors["backbone.embeddings.weight"]) * 3
    with pytest.raises(Inexact, match="does not say what its circuit says"):
        case_of(place / "count-since-mamba", compiled, tokens, "", (config, tensors))
    tensors["backbone.layers.0.mixer.dt_proj.bias"] = torch.zeros(32)
    with pytest.raises(Inexact):
        case_of(place / "count-since-mamba", compiled, tokens, "", (config, tensors))


def verdicts(case, bug: str = "", only: str = "") -> dict[str, str]:
    found = judge_model(FaultyRuntime(bug, only), case, explain=False)
    return {finding.case.split(": ")[1]: finding.status for finding in found}


def test_a_half_life_sees_an_exp_that_is_off_by_a_hundred_thousandth(tmp_path) -> None:
    other, case = build(tmp_path, only=("wide-integers-mamba", "half-life-mamba"))
    assert case.name == "half-life-mamba" and not case.states and case.informative[:, 1:].any()
    assert set(verdicts(case).values()) == {"passed", "skipped"}
    for bug in ("exp to 1e-5", "exp in half"):
        assert verdicts(case, bug, "selective_scan")["the whole sequence"] == "failed"
        assert verdicts(other, bug, "selective_scan")["the whole sequence"] == "passed"
    assert verdicts(case, "exp to 1e-5", "step")["a prompt of two, then steps"] == "failed"


def test_random_models_are_right_within_their_tolerance_and_not_beyond(tmp_path) -> None:
    for case in (companion(tmp_path, kind) for kind in KINDS):
        again = read(case.directory)
        assert again.tolerance == case.tolerance > 0 and torch.equal(again.logits, case.logits)
        assert set(verdicts(again).values()) == {"passed"}
        wrong = verdicts(again, "D left out", "selective_scan" if case.name == "random-mamba" else "ssd")
        assert wrong["the whole sequence"] == "failed" and wrong["states"] == "failed"
    assert not right_entries(torch.tensor([float("nan"), 1.0]), torch.tensor([1.0, 1.0]), 0.1)[0]


class Repeats:
    """A runtime of ours whose steps give their logits once for each row, as transformers 4.44 to 4.47 do."""

    name = "repeats"

    def open(self, directory):
        model = FaultyRuntime().open(directory)
        right = model.extend

        def extend(cache, tokens):
            logits, cache = right(cache, tokens)
            return logits.repeat(1, len(tokens), 1), cache

        model.extend = extend
        return model


def test_logits_of_another_shape_are_a_finding(place) -> None:
    found = list(judge_model(Repeats(), read(place / "count-since-mamba")))
    bad = [finding for finding in found if finding.status != "passed"]
    assert {finding.stage for finding in bad} == {"steps", "pieces", "padding", "batch", "speculation"}
    assert {finding.cause for finding in bad} == {""}
    assert "logits have shape (3, 176, 67), not (3, 60, 67)" in bad[0].says
