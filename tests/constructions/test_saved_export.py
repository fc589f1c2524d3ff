"""`construct export --format mamba-ssm-mlp` and `construct verify` of what it wrote: mamba_ssm's own gated MLPs."""

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import compiler
from compiler.artifact.manifest import file_hash
from compiler.runtime import has_mamba_ssm
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.cli import app
from constructions.selectivity.keep_nth import KeepNth
from constructions.token_selection.recall import AssociativeRecall
from tests.circuits.case import is_a, is_b, over_abc
from tests.constructions.test_refusals import run as front

pytestmark = pytest.mark.skipif(not has_mamba_ssm(), reason="mamba_ssm is not installed")
WEIGHTS, RECORD = "pytorch_model.bin", "export.json"


def run(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    """A recall of 3 keys in one layer, written by the commands."""
    place = tmp_path_factory.mktemp("gated") / "recall"
    artifact.save(build(AssociativeRecall(3, 2, 3, arch="mamba2")), {}, place)
    assert run("export", place, "--format", "mamba-ssm-mlp").exit_code == 0
    return place.with_name("recall-mamba-ssm-mlp")


def test_the_state_is_counted_of_the_layers_that_are_exported(exported):
    told = json.loads(run("verify", exported, "--samples", 5, "--json").stdout)
    sizes = told["sizes"]["packaged"]
    assert sizes["layers"] == told["export"]["layers"]
    assert told["state"]["language model"] == sizes["layers"] * sizes["d_inner"] * sizes["d_state"]


def test_a_circuit_of_ones_own_is_verified_too(tmp_path):
    """Its record names no construction, as its checkpoint does not."""
    compiler.compile(over_abc("thirds", (is_a.cumsum() % 3 == 1) & is_b), "mamba2").save(tmp_path / "own")
    assert run("export", tmp_path / "own", "--format", "mamba-ssm-mlp").exit_code == 0
    done = run("verify", tmp_path / "own-mamba-ssm-mlp", "--verify", "random", "--samples", 5)
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("options", [("--workers", 2), ("--stream", "--length", 4)], ids=["workers", "stream"])
def test_what_is_for_checkpoints_alone_says_that_it_is_an_export(options: tuple, exported):
    done = run("verify", exported, *options)
    assert isinstance(done.exception, ValueError) and f"{exported} is an export" in str(done.exception)
    assert "leave" in str(done.exception) and RECORD not in str(done.exception)


@pytest.mark.parametrize("options", [(), ("--no-certify",)], ids=["proved", "tested"])
def test_what_the_commands_built_verifies_as_an_export(options: tuple[str, ...], tmp_path):
    """The record repeats what the checkpoint says of its answers; what is said of the export is what was run."""
    assert run("recall", "--keys", 2, "--samples", 5, *options, "--out", tmp_path / "recall").exit_code == 0
    assert run("export", tmp_path / "recall", "--format", "mamba-ssm-mlp").exit_code == 0
    place = tmp_path / "recall-mamba-ssm-mlp"
    assert json.loads((place / RECORD).read_text())["answers"] == ("tested" if options else "all")
    done = run("verify", place, "--samples", 5, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)["guarantee"]
    assert told["answers"] == "tested" and told["certificate"] is None


@pytest.fixture
def copied(exported, tmp_path) -> Path:
    return Path(shutil.copytree(exported, tmp_path / "copy"))


def sealed_again(directory: Path) -> None:
    """The record with the hash of the weights that stand there now."""
    record = json.loads((directory / RECORD).read_text())
    record["files"][WEIGHTS] = file_hash(directory / WEIGHTS)
    (directory / RECORD).write_text(json.dumps(record))


def test_a_record_that_claims_what_no_checkpoint_says_is_refused(copied):
    record = json.loads((copied / RECORD).read_text())
    (copied / RECORD).write_text(json.dumps(record | {"answers": "every one"}))
    found = run("verify", copied, "--samples", 5)
    assert found.exit_code == 1 and "another answers: 'every one'" in found.output


def test_it_is_verified_from_its_files_alone(exported):
    """On `MambaLMHeadModel.from_pretrained`, as a whole and token by token, every score to the bit."""
    done = run("verify", exported, "--verify", "random", "--samples", 50, "--json")
    told = json.loads(done.stdout)
    sizes = {"layers": 1, "gated_mlps": 1, "d_intermediate": 128}
    assert done.exit_code == 0 and told["export"].items() > sizes.items()
    assert told["verification"]["bit_exact"] and told["verification"]["accuracy"] == 1
    assert sum("token by token" in name for name in told["verification"]["tasks"]) == 1
    assert told["runtime"].endswith("MambaLMHeadModel")
    shown = run("verify", exported, "--verify", "none")
    assert shown.exit_code == 0 and "1 of 1 layers with a gated MLP" in shown.stdout


@pytest.mark.parametrize("name", ["mlp.fc1.weight", "mlp.fc2.weight", "norm2.weight", "mixer.in_proj.weight"])
def test_one_wrong_weight_is_found(copied, name):
    """Planted in a file whose seal is made anew: the tensor is named, and the run itself goes wrong as well.

    But for the norm's first weight, whose lane no MLP reads: only the comparison tells.
    """
    tensors = torch.load(copied / WEIGHTS)
    planted = tensors[f"backbone.layers.0.{name}"]
    planted[tuple(planted.nonzero()[0])] = 0
    torch.save(tensors, copied / WEIGHTS)
    sealed_again(copied)
    found = run("verify", copied, "--verify", "random", "--samples", 20)
    assert found.exit_code == 1
    assert f"its weights backbone.layers.0.{name} differ" in found.output
    assert ("the model first leaves the circuit in block" in found.output) == (name != "norm2.weight")


@pytest.mark.parametrize("kind", ["to_sparse", "to"])
def test_a_weight_of_another_kind_of_tensor_is_found(copied, kind):
    """Such a file is made by torch.save like any other, and its record is made anew."""
    tensors = torch.load(copied / WEIGHTS)
    name = "backbone.layers.0.mlp.fc1.weight"
    tensors[name] = getattr(tensors[name], kind)(*(["meta"] if kind == "to" else []))
    torch.save(tensors, copied / WEIGHTS)
    sealed_again(copied)
    found = run("verify", copied, "--verify", "none")
    assert found.exit_code == 1 and f"its weights {name} differ" in found.output


def test_damage_foreign_files_and_other_records(copied):
    (copied / "modeling.py").write_text("")
    record = json.loads((copied / RECORD).read_text())
    record["answers"] = "random"
    (copied / RECORD).write_text(json.dumps(record))
    config = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps(config | {"n_layer": 2}))
    found = run("verify", copied, "--samples", 5)
    assert found.exit_code == 1
    sentences = ("is damaged", "modeling.py, which is not ours", "another answers", "another n_layer: 2, not 1")
    for sentence in (*sentences, "mamba_ssm does not load"):
        assert sentence in found.output


def test_a_record_of_an_earlier_version_names_the_theorem_of_its_family(copied):
    """Records had the theorem of the class: that is no difference from what is said here, and all else is."""
    record = json.loads((copied / RECORD).read_text())
    assert record["theorem"] == AssociativeRecall(3, 2, 3, arch="mamba2").statement() != AssociativeRecall.theorem
    for theorem, code in ((AssociativeRecall.theorem, 0), ("Theorem 0", 1)):
        (copied / RECORD).write_text(json.dumps(record | {"theorem": theorem}))
        assert run("verify", copied, "--samples", 5).exit_code == code


class Hostile:
    """What a pickle may call."""

    def __reduce__(self):
        return print, ("hostile code was run",)


@pytest.mark.parametrize("content", [None, [1], {"a": Hostile()}], ids=["missing", "a list", "code"])
def test_weights_that_are_none_are_not_run(copied, capfd, content):
    (copied / WEIGHTS).unlink() if content is None else torch.save(content, copied / WEIGHTS)
    found = run("verify", copied, "--samples", 5)
    assert found.exit_code == 1 and "so nothing of it was run" in found.output
    assert "hostile" not in found.output + capfd.readouterr().out


def test_the_readme_is_the_users_and_data_are_run_alone(copied, tmp_path):
    (copied / "README.md").unlink()
    np.savez(tmp_path / "own.npz", inputs=np.array([[0, 3, 0]]), labels=np.array([[-100, -100, 3]]))
    told = json.loads(run("verify", copied, "--data", tmp_path / "own.npz", "--json").stdout)
    assert told["verification"]["sequences"] == 1 and told["verification"]["accuracy"] == 1
    np.savez(tmp_path / "own.npz", inputs=np.array([[0, 3, 0]]), labels=np.array([[-100, -100, 4]]))
    assert run("verify", copied, "--data", tmp_path / "own.npz").exit_code == 1


def test_what_is_refused(exported, copied, tmp_path):
    artifact.save(build(KeepNth(n=2, vocab=3)), {}, tmp_path / "keep")
    alone = run("export", tmp_path / "keep", "--format", "mamba-ssm-mlp")
    assert "no block of this circuit is a function of one position" in str(alone.exception)
    assert run("export", tmp_path / "keep", "--format", "mamba-ssm").exit_code == 0
    plain = run("verify", tmp_path / "keep-mamba-ssm")
    assert "of exports only mamba-ssm-mlp is verified" in str(plain.exception)
    assert front("verify", str(tmp_path / "keep-mamba-ssm")) == 2  # nothing is wrong with it
    record = json.loads((tmp_path / "keep-mamba-ssm" / RECORD).read_text())
    (tmp_path / "keep-mamba-ssm" / RECORD).write_text(json.dumps(record | {"kind": "no such"}))
    assert front("verify", str(tmp_path / "keep-mamba-ssm")) == 1
    assert "no Mamba with gated MLPs" in str(run("verify", exported, "--runtime", "transformers").exception)
    record = json.loads((copied / RECORD).read_text())
    (copied / RECORD).write_text(json.dumps(record | {"construction": "no such"}))
    assert "must be one of" in str(run("verify", copied).exception)
    narrow = compiler.compile(AssociativeRecall(3, 2, 3, dtype="bfloat16").circuit(), "mamba", "bfloat16")
    with pytest.raises(ValueError, match="the promise is for bfloat16"):
        narrow.save(tmp_path / "narrow", format="mamba-ssm-mlp")


@pytest.mark.parametrize("asked", [{"target": "mamba"}, {"target": "mamba2", "max_d_state": 4, "n_groups": 2}], ids=str)
def test_a_circuit_of_ones_own(asked, tmp_path):
    """Compiled again from circuit.json: there is no construction to build it from."""
    circuit = over_abc("larger", (is_a.cumsum() - is_b.cumsum()).relu().relu() + (is_b.cumsum() - 1).relu().relu())
    compiler.compile(circuit, **asked).save(tmp_path / "own", format="mamba-ssm-mlp")
    told = json.loads(run("verify", tmp_path / "own", "--samples", 20, "--json").stdout)
    assert told["verification"]["bit_exact"] and told["export"]["gated_mlps"] >= 1


def test_the_numbers_that_are_counted_are_those_of_its_file(exported):
    """Not those of the plain checkpoint that its circuit would be saved as."""
    told = json.loads(run("verify", exported, "--json", "--samples", 5).stdout)
    tensors = torch.load(exported / WEIGHTS, weights_only=True)
    layers = {name.split(".")[2] for name in tensors if name.startswith("backbone.layers.")}
    assert told["sizes"]["parameters"] == sum(tensor.numel() for tensor in tensors.values())
    assert told["sizes"]["packaged"]["layers"] == told["export"]["layers"] == len(layers)


@pytest.mark.parametrize("seal", [False, True])
def test_weights_that_are_too_few_are_not_what_was_written(seal, copied):
    (copied / WEIGHTS).write_bytes(b"")
    if seal:
        sealed_again(copied)
    done = run("verify", copied, "--json")
    assert done.exit_code == 1 and WEIGHTS in json.loads(done.stdout)["error"]


def test_a_pickle_is_refused_without_a_word_of_torch_s(copied, recwarn):
    (copied / WEIGHTS).write_bytes(pickle.dumps({"a": "b" * 10_000}, protocol=4))
    done = run("verify", copied)
    assert done.exit_code == 1 and "nothing of it was run" in " ".join(done.stderr.split())
    assert not [warning for warning in recwarn if "pickle" in str(warning.message)]


@pytest.mark.parametrize("entry", ["n_groups", "dtype", "files"])
def test_an_edited_record_of_a_circuit_of_ones_own_is_a_damaged_file(entry: str, tmp_path, capsys):
    compiler.compile(over_abc("thirds", (is_a.cumsum() % 3 == 1) & is_b)).save(tmp_path / "own")
    assert run("export", tmp_path / "own", "--format", "mamba-ssm-mlp").exit_code == 0
    place = tmp_path / "own-mamba-ssm-mlp"
    record = json.loads((place / RECORD).read_text())
    edited = {"n_groups": 2, "dtype": "bfloat16", "files": {}}[entry]
    (place / RECORD).write_text(json.dumps(record | {entry: edited}))
    assert front("verify", str(place), "--samples", "5") == 1
    says = {
        "n_groups": "asks for what is refused",
        "dtype": "dtype is 'bfloat16', and",
        "files": "no hash of README.md",
    }
    assert says[entry] in " ".join(capsys.readouterr().err.split())
