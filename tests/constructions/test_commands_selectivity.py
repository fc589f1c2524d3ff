"""The commands haar, approximation-rate, plot and sensitivity."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from transformers import MambaConfig, MambaForCausalLM

from constructions.selectivity import haar
from tests.artifact.test_compare import reseal
from tests.constructions.test_construct import checkpoint, made, run  # noqa: F401 (fixtures)


@pytest.mark.parametrize("form", ["steps", "bumps"])
def test_haar(form: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert (
        run("haar", "--levels", "3", "--form", form, "--samples", "20", "--plot", str(tmp_path / "bases.png"), "--json")
        == 0
    )
    result = json.loads(capsys.readouterr().out)
    assert result["integers_exact"] and result["sizes"]["d_inner"] == 3 * 2**3 + (2 if form == "steps" else 3)
    assert (tmp_path / "bases.png").stat().st_size > 1000


def test_haar_on_mamba2(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Remark 1: the transforms of integers and of real numbers in two blocks, saved and verified."""
    for name, options in (("real", ()), ("whole", ("--integers",))):
        out = str(tmp_path / name)
        asked = ("haar", "--levels", "2", "--arch", "mamba2", "--samples", "8", "--out", out, *options)
        assert run(*asked, "--json") == 0
        result = json.loads(capsys.readouterr().out)
        assert result["integers_exact"] and result["largest_error"] < 1e-6 and result["sizes"]["layers"] == 2
        assert result["sizes"]["d_inner"] <= 3 * 2**2 + 2 and result["bound"] == {}
        assert run("verify", out, "--samples", "5") == 0
        capsys.readouterr()


def test_sensitivity_of_a_mamba2_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The latch of KEEP 2nd feels what it took, and nothing before."""
    asked = (
        "keep-nth",
        "--n",
        "2",
        "--vocab",
        "2",
        "--arch",
        "mamba2",
        "--length",
        "6",
        "--no-certify",
        "--samples",
        "2",
    )
    assert run(*asked, "--out", str(tmp_path / "keep")) == 0
    capsys.readouterr()
    assert run("sensitivity", str(tmp_path / "keep"), "--input", "v0 v1 v0 v0 v1", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert result["disagreement"] < 1e-12 and len(result["measured"]) == 5


def test_integers_are_compared_with_a_definition_of_their_own(monkeypatch, capsys: pytest.CaptureFixture) -> None:
    """A wrong matrix builds a wrong circuit, and the check does not read that matrix."""
    right = haar.haar_matrix
    monkeypatch.setattr(haar, "haar_matrix", lambda levels: right(levels)[::-1])
    assert run("haar", "--levels", "2", "--samples", "5", "--json") == 1
    assert not json.loads(capsys.readouterr().out)["integers_exact"]


def test_approximation_rate(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert (
        run(
            "approximation-rate",
            "--breaks",
            "1/3,0.7",
            "--values",
            "0,1,-1",
            "--plot",
            str(tmp_path / "r.png"),
            "--json",
        )
        == 0
    )
    assert json.loads(capsys.readouterr().out)["jumps"] == 2 and (tmp_path / "r.png").is_file()


@pytest.mark.parametrize("breaks, values", [("3/11,7/9", "0,5,1"), ("0.49,0.51", "0,1,0"), ("1/100", "0,1")])
def test_rates_are_shown_by_as_many_bases_as_the_breaks_need(breaks, values, capsys: pytest.CaptureFixture) -> None:
    assert run("approximation-rate", "--breaks", breaks, "--values", values, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert abs(result["slopes"]["s4d"] + 1) < 0.1
    assert abs(result["slopes"]["mamba"] / result["corollary"]["mamba"] - 1) < 0.05


def test_breaks_that_no_number_of_bases_tells_apart_are_refused(capsys: pytest.CaptureFixture) -> None:
    assert run("approximation-rate", "--breaks", "0.4999,0.5001", "--values", "0,1,0") == 2
    assert "at least 0.00092 apart" in capsys.readouterr().err


def test_plot_and_sensitivity_of_a_checkpoint(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:  # noqa: F811
    assert run("plot", str(checkpoint), "--input", "k0 v1 k2 v5 k0", "--out", str(tmp_path / "s.png")) == 0
    assert "outside the promise" not in capsys.readouterr().out
    assert run("plot", str(checkpoint), "--input", "v1 v1", "--out", str(tmp_path / "s.png")) == 0
    assert "outside the promise: the input is none of the promised: " in capsys.readouterr().out
    capsys.readouterr()
    assert run("sensitivity", str(checkpoint), "--input", "k0 v1 k0") == 0
    assert "block 1, channel recalled[0], column 0" in capsys.readouterr().out
    assert run("sensitivity", str(checkpoint), "--input", "k0 v1 k0", "--json") == 0
    result = json.loads(capsys.readouterr().out)
    assert len(result["measured"]) == 3 and result["disagreement"] < 1e-12


DAMAGED = {
    "other letters": ("config.json", {"vocab_size": 99}, "embeddings.weight is (9, 8), and by its config.json it is"),
    "no size": ("config.json", {"hidden_size": "x"}, "cannot be read as a model: Validation error"),
    "no convolution": ("config.json", {"conv_kernel": 0}, "cannot be read as a model"),
    "no model": ("config.json", {"model_type": None}, "holds a None model"),
    "no weights": ("model.safetensors", None, "cannot be read as a model: Error while deserializing"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_model_of_transformers_is_refused_in_one_sentence(case: str, tmp_path: Path, capsys) -> None:
    name, edit, said = DAMAGED[case]
    sizes = {"vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 2, "state_size": 4}
    MambaForCausalLM(MambaConfig(**sizes)).save_pretrained(tmp_path)
    assert run("sensitivity", str(tmp_path), "--input", "1 2 3") == 0
    file = tmp_path / name
    file.write_text("hello" if edit is None else json.dumps(json.loads(file.read_text()) | edit))
    capsys.readouterr()
    assert run("sensitivity", str(tmp_path), "--input", "1 2 3") == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert said in told[-1] and "Traceback" not in "".join(told)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("haar", "--levels", "9"), "levels = 9"),
        (("approximation-rate", "--breaks", "2", "--values", "0,1"), "2"),
        (("plot", "nowhere", "--input", "k0"), "does not exist"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture) -> None:
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def foreign(made: Path, tmp_path_factory) -> Path:  # noqa: F811
    """A checkpoint of which another head is sealed: nothing of the circuit can be said beside it."""
    place = Path(shutil.copytree(made, tmp_path_factory.mktemp("foreign") / "c"))
    tensors = load_file(place / "model.safetensors")
    tensors["lm_head.weight"] *= -1
    save_file(tensors, place / "model.safetensors", {"format": "pt"})
    reseal(place)
    return place


@pytest.mark.parametrize(
    "command",
    [
        ("plot", "{}", "--input", "k0 v1", "--out", "{}/../s.png"),
        ("graph", "{}", "--out", "{}/../s.svg"),
        ("graph", "{}", "--json"),
        ("sensitivity", "{}", "--input", "k0 v1"),
        ("show", "{}", "--weight", "lm_head.weight[0,3]"),
        ("conformance", "--checkpoint-dir", "{}"),
        ("trace", "{}", "--input", "k0 v1"),
        ("report", "{}", "--out", "{}/../s.html"),
        ("score", "{}", "--method", "oracle"),
    ],
    ids=" ".join,
)
def test_nothing_names_the_parts_of_weights_that_are_not_the_circuits(command, foreign: Path, capsys) -> None:
    assert run(*(part.format(foreign) for part in command)) == 1
    assert " weights lm_head.weight" in (told := capsys.readouterr()).err + told.out
    assert "not those that circuit.json compiles to" in told.err or "is not what its circuit compiles to" in told.err
    assert [entry.name for entry in foreign.parent.iterdir()] == ["c"]


def test_unknown_tokens_are_named(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:  # noqa: F811
    for command in (("plot", "--out", str(tmp_path / "s.png")), ("sensitivity",)):
        assert run(command[0], str(checkpoint), "--input", "k0 zz", *command[1:]) == 2
        assert "'zz'" in capsys.readouterr().err
    assert not (tmp_path / "s.png").exists()
