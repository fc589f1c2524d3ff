"""Constructions over numbers live the whole life: saved, verified, looked at, and every change of their files found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import compiler
from compiler.artifact.files import MANIFEST, WEIGHTS
from tests.artifact.test_numbers import reseal
from tests.constructions.test_construct import run

BUILT = {
    "haar": ("haar", "--levels", "2", "--samples", "8"),
    "integers": ("haar", "--levels", "2", "--samples", "8", "--form", "bumps", "--integers"),
    "polynomial": ("polynomial", "x1**2*x2 - x2/3 + 1/7", "--arch", "mamba", "--samples", "8"),
    "ternary": ("polynomial", "x1*x2*x1 - 2", "--arch", "mamba", "--factors", "3", "--samples", "8"),
    "head": ("linear-attention", "--d", "2", "--d-k", "2", "--d-v", "1", "--length", "5"),
}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("numbers")
    for name, command in BUILT.items():
        assert run(*command, "--out", str(place / name), "--json") == 0
    rng = np.random.default_rng(0)
    np.savez(place / "w.npz", **{name: rng.normal(size=(2, 2)) for name in ("W_Q", "W_K", "W_V")})
    command = ("linear-attention", "--weights", str(place / "w.npz"), "--length", "4")
    assert run(*command, "--out", str(place / "given"), "--json") == 0
    return place


@pytest.mark.parametrize("name", [*BUILT, "given"])
def test_it_verifies_from_its_files_alone(name: str, directory: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("verify", str(directory / name), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    exact = name == "integers"
    assert report["guarantee"]["level"] == ("bit-exact" if exact else "bounded-error")
    assert report["verification"]["accuracy"] == 1 and report["verification"]["queries"] >= 32
    assert exact or 0 < report["verification"]["share_of_bound"] <= 1
    assert not exact or report["verification"]["bit_exact"]
    assert exact or report["promise"]["error_bounds"][0]["error"] < 1e-4


@pytest.mark.parametrize("name", BUILT)
def test_one_weight_changed_is_found(name: str, directory: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(directory / name, tmp_path / "out")
    tensors = load_file(tmp_path / "out" / WEIGHTS)
    largest = max(tensors, key=lambda key: tensors[key].abs().max())
    at = np.unravel_index(int(tensors[largest].abs().argmax()), tensors[largest].shape)
    tensors[largest][at] *= 1 + 2.0**-22
    save_file(tensors, tmp_path / "out" / WEIGHTS, metadata={"format": "pt"})
    reseal(tmp_path / "out")
    assert run("verify", str(tmp_path / "out"), "--json") == 1
    assert f"its weights {largest} differ" in capsys.readouterr().err


CLAIMS = {
    ("promise", "error_bound"): 1e-9,
    ("promise", "length"): 100,
    ("guarantee", "level"): "bit-exact",
    ("guarantee", "proof"): "proved by hand",
    ("theorem",): "Theorem 0",
    ("bound", "d_state"): 0,
    ("params", "levels"): 3,
    ("arch",): "mamba2",
}


@pytest.mark.parametrize("path", CLAIMS)
def test_a_claim_changed_is_found(path: tuple[str, ...], directory: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(directory / "haar", tmp_path / "out")
    content = json.loads((tmp_path / "out" / MANIFEST).read_text())
    inner = content[path[0]] if len(path) > 1 else content
    assert inner.get(path[-1]) != CLAIMS[path]
    inner[path[-1]] = CLAIMS[path]
    (tmp_path / "out" / MANIFEST).write_text(json.dumps(content))
    reseal(tmp_path / "out")
    assert run("verify", str(tmp_path / "out"), "--json") == 1
    assert "is not what its circuit compiles to" in capsys.readouterr().err


def test_inputs_that_stand_elsewhere_are_found(directory: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(directory / "haar", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    config["inputs"][0]["name"] = "samples"
    (tmp_path / "out" / "config.json").write_text(json.dumps(config))
    reseal(tmp_path / "out")
    assert run("verify", str(tmp_path / "out")) == 1
    assert "inputs" in capsys.readouterr().err


def test_the_commands_that_look_at_checkpoints_look_at_these(directory: Path, tmp_path: Path, capsys) -> None:
    haar = str(directory / "haar")
    assert run("inspect", haar) == 0
    assert "suffix[0 … 7]" in capsys.readouterr().out
    assert run("show", haar, "--weight", "blocks.0.in_proj.weight[0, 1]") == 0
    assert "haar.py:" in capsys.readouterr().out
    assert run("plot", haar, "--input", "1 -2 0.5 3", "--out", str(tmp_path / "state.png")) == 0
    assert run("graph", haar, "--out", str(tmp_path / "circuit.svg")) == 0
    capsys.readouterr()
    assert run("sensitivity", haar, "--input", "1 -2 0.5 3", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["measured"]) == 4
    assert run("plot", str(directory / "head"), "--input", "1,2 0,1", "--out", str(tmp_path / "head.png")) == 0
    assert all((tmp_path / name).stat().st_size > 1000 for name in ("state.png", "circuit.svg", "head.png"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "haar", "--prompt", "1"), "only one over tokens writes text"),
        (("prove", "haar"), "the answers are neither proved nor tested here"),
        (("verify", "haar", "--runtime", "transformers"), "no library but ours"),
        (("verify", "haar", "--verify", "exhaustive"), "cannot be counted"),
        (("sensitivity", "haar", "--input", "1 zwei"), "which is no number"),
        (("sensitivity", "head", "--input", "1 2"), "needs 2 numbers"),
        (("sensitivity", "haar", "--input", "y = 1"), "the inputs are x, position"),
        (("sensitivity", "haar", "--input", "1; position = 1 2"), "different lengths"),
        (("plot", "haar", "--input", "position = 1"), "no numbers for x"),
    ],
)
def test_what_does_not_apply_is_said_in_a_sentence(arguments, message, directory: Path, capsys) -> None:
    command, name, *rest = arguments
    assert run(command, str(directory / name), *rest) == 2
    error = capsys.readouterr().err.strip()
    assert message in error and "\n" not in error


@pytest.mark.quick
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("polynomial", "x1", "--out", "there"), "save it with --arch mamba"),
        (("haar", "--integers"), "there is no --out"),
        (("haar", "--force"), "there is no --out"),
    ],
)
def test_options_without_effect_are_refused(arguments, message, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_a_checkpoint_is_not_overwritten_unasked(directory: Path, tmp_path: Path, capsys) -> None:
    shutil.copytree(directory / "head", tmp_path / "out")
    assert run(*BUILT["head"], "--out", str(tmp_path / "out")) == 2
    assert "--force" in capsys.readouterr().err
    assert run(*BUILT["head"], "--out", str(tmp_path / "out"), "--force", "--json") == 0


def test_a_head_with_given_weights_is_loaded_and_right(directory: Path) -> None:
    model = compiler.load(directory / "given")
    with np.load(directory / "w.npz") as arrays:
        query, key, value = (arrays[name] for name in ("W_Q", "W_K", "W_V"))
    x = np.random.default_rng(1).uniform(-2, 2, (3, 4, 2)).astype(np.float32).astype(float)
    scores = np.tril(np.einsum("kd,btd,ke,bse->bts", query, x, key, x))
    expected = np.einsum("vd,bts,bsd->btv", value, scores, x)
    assert np.abs(model.run({"x": x}) - expected).max() < 1e-4


def test_a_circuit_of_ones_own_over_numbers_verifies(tmp_path: Path, capsys) -> None:
    x = compiler.numbers(compiler.Real(-4, 4, 2), "x")
    made = compiler.compile(compiler.Circuit("own", compiler.dot(x, x.shift(1)).cumsum(), length=6))
    made.save(tmp_path / "out")
    assert run("verify", str(tmp_path / "out"), "--json") == 0
    assert 0 < json.loads(capsys.readouterr().out)["verification"]["share_of_bound"] <= 1
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config["model_type"] == "compiled-numbers"


def test_lanes_of_a_bare_block_are_told_as_those_in_and_out(tmp_path: Path, capsys) -> None:
    """Its results stand where its inputs stood, so that it names more lanes than d_model."""
    x = compiler.numbers(compiler.Int(-3, 3), "x")
    compiler.compile(compiler.Circuit("own", x.cumsum(), length=8)).save(tmp_path / "out")
    assert run("inspect", str(tmp_path / "out")) == 0
    assert "lanes in and out (4)" in capsys.readouterr().out


def test_a_lane_of_a_number_s_parts_says_which_parts(tmp_path: Path) -> None:
    """A sum of numbers of both signs is kept as two, one of what is above 0 and one of what is below."""
    x = compiler.numbers(compiler.Int(-3, 3), "x")
    compiler.compile(compiler.Circuit("own", x.cumsum(), length=8)).save(tmp_path / "out")
    lanes = json.loads((tmp_path / "out" / "construction.json").read_text("utf-8"))["meanings"]["lanes"]
    assert lanes[2:] == ["sum so far of relu(x)", "sum so far of relu(-x)"]


@pytest.mark.parametrize(
    "kind",
    [compiler.Real(2, 3), compiler.Real(3, 3), compiler.Real(-3, -1), compiler.Real(0.25, 1, gap=0.5)],
    ids=str,
)
def test_a_model_of_a_range_without_0_verifies(kind: compiler.Real, tmp_path: Path, capsys) -> None:
    """It ended with 2, and blamed an input of 2^-20 that nobody had given."""
    x = compiler.numbers(kind, "x")
    compiler.compile(compiler.Circuit("own", compiler.dot(x, x), length=3)).save(tmp_path / "out")
    assert run("verify", str(tmp_path / "out"), "--json") == 0
    assert json.loads(capsys.readouterr().out)["verification"]["share_of_bound"] <= 1


@pytest.mark.parametrize("name", ["integers", "polynomial"])
def test_json_says_of_tested_answers_what_is_said_for_people(name: str, directory: Path, tmp_path, capsys) -> None:
    """A manifest of an earlier version has "all" of them, and is taken as it was meant."""
    place = Path(shutil.copytree(directory / name, tmp_path / "c"))
    manifest = json.loads((place / MANIFEST).read_text("utf-8"))
    assert manifest["guarantee"]["answers"] == "tested"
    for claimed in ("tested", "all"):
        manifest["guarantee"]["answers"] = claimed
        (place / MANIFEST).write_text(json.dumps(manifest), "utf-8")
        reseal(place)
        for command, code in (("verify", 0), ("inspect", 0)):
            assert run(command, str(place), "--json") == code
            assert json.loads(capsys.readouterr().out)["guarantee"]["answers"] == "tested"
    manifest["guarantee"]["answers"] = "proved"
    (place / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    reseal(place)
    assert run("verify", str(place)) == 1
    assert "another guarantee.answers: 'proved', not 'tested'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["integers", "polynomial", "given"])
def test_a_level_that_none_has_is_told_beside_the_right_one(name: str, directory: Path, tmp_path, capsys) -> None:
    place = Path(shutil.copytree(directory / name, tmp_path / "c"))
    manifest = json.loads((place / MANIFEST).read_text("utf-8"))
    right = manifest["guarantee"]["level"]
    manifest["guarantee"]["level"] = "x"
    (place / MANIFEST).write_text(json.dumps(manifest), "utf-8")
    reseal(place)
    assert run("verify", str(place)) == 1
    said = capsys.readouterr().err
    assert f"another guarantee.level: 'x', not '{right}'" in said and "unverified" not in said


def test_an_exact_circuit_of_ones_own_has_neither_errors_nor_answers(tmp_path: Path, capsys) -> None:
    x = compiler.numbers(compiler.Int(-3, 3), "x")
    compiler.compile(compiler.Circuit("sumup", x.cumsum(), length=8), "mamba").save(tmp_path / "c")
    capsys.readouterr()
    assert run("verify", str(tmp_path / "c"), "--json") == 0
    said = json.loads(capsys.readouterr().out)["guarantee"]["proof"]
    assert "every output is exact follows from the circuit" in said and "nobody says what its answers should be" in said
    assert run("prove", str(tmp_path / "c")) == 2
    told = capsys.readouterr().err
    for words in (said, told):
        assert "errors" not in words and "tested" not in words


@pytest.mark.parametrize("name", ["polynomial", "given"])
def test_what_is_recorded_names_the_commands_that_look_again(name: str, directory: Path, capsys) -> None:
    """Of numbers the checker says nothing: prove is named where there is a certificate, and refuses where it is not."""
    refused = run("prove", str(directory / name)) == 2
    capsys.readouterr()
    assert run("inspect", str(directory / name)) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert ("construct prove" in said) is not refused and "construct verify" in said
