"""The `construct` command and the checkpoints it writes."""

from __future__ import annotations

import inspect
import json
import re
import shutil
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import compiler
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import manifest_content, sealed
from compiler.runtime import torch_only_transformers
from constructions.__main__ import main
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.cli import _summary
from constructions.registry import CONSTRUCTIONS
from constructions.selectivity.mqar import MQAR
from tests.fresh import fresh

JSON_KEYS = {"construction", "theorem", "params", "arch", "sizes", "bound", "guarantee", "verification", "out"}
SMALL = ("mqar", "--kappa", "3", "--vocab", "6", "--samples", "40")


def run(*arguments: str) -> int:
    """The command's exit code."""
    before, sys.argv = sys.argv, ["construct", *arguments]
    try:
        main()
    except SystemExit as stop:
        return int(stop.code or 0)
    finally:
        sys.argv = before
    return 0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("made") / "made"
    assert run(*SMALL, "--out", str(place), "--json") == 0
    return place


@pytest.fixture
def checkpoint(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "made"))


def test_json_report(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run(*SMALL, "--out", str(tmp_path / "a"), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report.keys() >= JSON_KEYS
    assert report["verification"]["accuracy"] == 1.0 and report["verification"]["bit_exact"]
    assert {"sequences", "queries", "exact_sequences", "margin"} <= report["verification"].keys()
    assert {"d_model", "d_inner", "d_state", "layers", "parameters"} <= report["sizes"].keys()
    assert {"level", "domain"} <= report["guarantee"].keys()


def test_nothing_is_claimed_where_nothing_was_run(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert run(*SMALL, "--verify", "none", "--out", str(tmp_path / "a"), "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["verification"]["accuracy"] is None and report["verification"]["bit_exact"] is None
    assert report["guarantee"]["level"] == "unverified"


def test_main_job_sizes(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    arguments = ("mqar", "--kappa", "16", "--vocab", "512", "--verify", "none", "--no-certify", "--json")
    assert run(*arguments, "--out", str(tmp_path / "a")) == 0
    sizes = json.loads(capsys.readouterr().out)["sizes"]
    assert (sizes["d_inner"], sizes["d_state"], sizes["layers"]) == (29, 16, 1)


def test_same_arguments_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert run(*SMALL, "--out", str(tmp_path / name), "--json") == 0
    files = sorted(p.name for p in (tmp_path / "a").iterdir())
    assert files == sorted(p.name for p in (tmp_path / "b").iterdir())
    assert all((tmp_path / "a" / f).read_bytes() == (tmp_path / "b" / f).read_bytes() for f in files)


@pytest.mark.parametrize("arch", ["mamba", "mamba2", "s4d"])
def test_unmodified_hugging_face_model_gives_the_circuits_bits(arch: str, tmp_path: Path) -> None:
    construction = MQAR(kappa=4, vocab=20, arch=arch)
    built = build(construction)
    artifact.save(built, {}, tmp_path / "c")
    models = torch_only_transformers()
    family = models.mamba2.Mamba2ForCausalLM if arch == "mamba2" else models.mamba.MambaForCausalLM
    model = family.from_pretrained(tmp_path / "c", dtype=torch.float32)
    tokens = next(construction.tasks()[0].random(20, seed=3)).tokens
    with torch.no_grad():
        scores = model(torch.from_numpy(tokens)).logits[..., : built.compiled.source.alphabet.size]
    assert np.array_equal(scores.double().numpy(), built.compiled.interpret(tokens))


def test_hugging_face_loads_it_with_nothing_of_ours(checkpoint: Path, tmp_path: Path) -> None:
    program = """
import sys
for name in ("compiler", "constructions", "verify", "mamba_ssm", "causal_conv1d"):
    sys.modules[name] = None
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
names = AutoTokenizer.from_pretrained(sys.argv[1])
ids = names("k0 v3 k2 v5 _ k0", return_tensors="pt").input_ids
print(names.decode(model(ids).logits[0, -1].argmax()))
"""
    done = fresh("-c", program, str(checkpoint), cwd=tmp_path)
    assert done.stdout.strip() == "v3", done.stderr


def test_compiler_load_gives_the_real_blocks(checkpoint: Path) -> None:
    stack = compiler.load(checkpoint)
    assert [type(block).__module__ for block in stack.blocks] == ["mamba_ssm.modules.mamba_simple"]


def test_verify_accepts_what_was_saved(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    capsys.readouterr()
    assert run("verify", str(checkpoint), "--samples", "20", "--json") == 0
    assert json.loads(capsys.readouterr().out)["verification"]["accuracy"] == 1.0


def test_every_bound_of_a_manifest_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """Copies have a bound on the whole state, which a manifest does not count."""
    assert run("copy", "--n", "3", "--vocab", "2", "--verify", "none", "--out", str(tmp_path / "c")) == 0
    assert "written by" not in capsys.readouterr().out  # of what was not run nothing is told
    assert run("inspect", str(tmp_path / "c")) == 0
    assert "d_state" in capsys.readouterr().out


def test_a_file_that_is_refused_for_its_size_is_not_read_to_be_named(tmp_path: Path, capsys) -> None:
    assert run("keep-nth", "--vocab", "3", "--verify", "none", "--out", str(tmp_path / "c")) == 0
    with (tmp_path / "c" / "config.json").open("r+b") as file:
        file.truncate(1 << 34)
    capsys.readouterr()
    assert run("prove", str(tmp_path / "c"), "--json") == 1
    assert json.loads(capsys.readouterr().out)["files"]["config.json"] is None


def test_inspect_names_lanes_and_columns(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    assert run("inspect", str(checkpoint)) == 0
    text = capsys.readouterr().out
    assert "key[0 … 2]" in text and "recalled.column[0 … 2]" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_list(capsys: pytest.CaptureFixture) -> None:
    assert run("list") == 0
    assert "mqar" in capsys.readouterr().out


def test_list_says_of_each_what_is_built_without_options(capsys: pytest.CaptureFixture) -> None:
    assert run("list", "--json") == 0
    listed = {row["construction"].split()[-1]: row["theorem"] for row in json.loads(capsys.readouterr().out)}
    assert {name: listed[name] for name in CONSTRUCTIONS} == {n: c().statement() for n, c in CONSTRUCTIONS.items()}
    assert ", after Corollary 2, with" in listed["keep-nth"] and listed["keep-nth"] != CONSTRUCTIONS["keep-nth"].theorem


@pytest.mark.parametrize("name", [name for name, kind in CONSTRUCTIONS.items() if "after " in kind().statement()])
def test_first_line_does_not_call_it_the_theorem_where_it_is_built_after_one(name: str) -> None:
    first = _summary(CONSTRUCTIONS[name])
    assert not re.search(r"(?<!after )paper [A-D](, |'s )(Theorem|Lemma|Corollary|Proposition)", first), first


@pytest.mark.parametrize("name", sorted(CONSTRUCTIONS))
def test_every_construction_builds_verifies_and_reloads(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    options = ("--samples", "10", "--verify", "random", "--no-certify", "--out", str(tmp_path / "c"), "--json")
    assert run(*CONSTRUCTIONS[name].group.split(), name, *options) == 0
    assert json.loads(capsys.readouterr().out)["construction"] == name
    assert run("verify", str(tmp_path / "c"), "--samples", "5", "--verify", "random", "--json") == 0


@pytest.mark.parametrize("experiment", ["table-1 --only keep-nth", "figure-3"])
def test_experiments_come_out_right(experiment: str, capsys: pytest.CaptureFixture) -> None:
    assert run("reproduce", *experiment.split(), "--samples", "5", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert all(row["used"] or row["cannot"] or row["absent"] for row in rows)
    for row in (row for row in rows if row["used"]):
        assert row["accuracy"] == 1 and row["bit_exact"] and row["state_entries"] >= row["information_bits"] / 32
        assert all(row["used"][size] <= row["bound"].get(size, row["used"][size]) for size in ("d_inner", "d_state"))


# Planted errors: every tensor that matters, one weight -------------------------------------------------

PLANTED = {
    "backbone.embeddings.weight": "the embedding",
    "backbone.layers.0.mixer.in_proj.weight": "block 1",
    "backbone.layers.0.mixer.conv1d.weight": "block 1",
    "backbone.layers.0.mixer.conv1d.bias": "block 1",
    "backbone.layers.0.mixer.x_proj.weight": "block 1",
    "backbone.layers.0.mixer.dt_proj.bias": "block 1",
    "backbone.layers.0.mixer.A_log": "block 1",
    "backbone.layers.0.mixer.out_proj.weight": "block 1",
    "backbone.layers.0.norm.weight": "block 1",
    "backbone.norm_f.weight": "the head",
    "lm_head.weight": "the head",
}


def a_weight_that_matters(name: str, flat: torch.Tensor) -> int:
    """An index whose value the circuit's answers depend on."""
    if name.endswith(("A_log", "layers.0.norm.weight")):
        return 0  # a value channel; a value lane, which the block reads
    if name.endswith("dt_proj.bias"):
        return int(flat.argmax())  # a channel that writes
    if name.endswith("embeddings.weight"):
        flat = torch.where(flat.abs() < 1000, flat, 0)  # not the ballast: the norm forgives a scale
    # The last of the largest: for the final norm a lane that the head reads, among the taps the present token's.
    return int((flat.abs() == flat.abs().max()).nonzero()[-1])


def plant(directory: Path, name: str, reseal: bool) -> None:
    """Change the one weight of a tensor that is in use; with `reseal` the manifest agrees with the damage."""
    weights = directory / "model.safetensors"
    tensors = load_file(weights)
    flat = tensors[name].view(-1)
    at = a_weight_that_matters(name, flat)
    flat[at] = 3.0 if name.endswith("A_log") else flat[at] * 1.5
    save_file(tensors, weights, metadata={"format": "pt"})
    if reseal:
        (directory / "construction.json").write_text(canonical_json(sealed(manifest_content(directory), directory)))


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_one_wrong_weight_is_found_and_its_stage_named(
    name: str, checkpoint: Path, capsys: pytest.CaptureFixture
) -> None:
    plant(checkpoint, name, reseal=True)
    capsys.readouterr()
    assert run("verify", str(checkpoint), "--json") == 1
    assert f"the model first leaves the circuit in {PLANTED[name]}" in capsys.readouterr().err


def test_a_wrong_hash_fails_and_the_stage_is_still_named(checkpoint: Path, capsys: pytest.CaptureFixture) -> None:
    plant(checkpoint, "lm_head.weight", reseal=False)
    capsys.readouterr()
    assert run("verify", str(checkpoint), "--json") == 1
    errors = capsys.readouterr().err
    assert "model.safetensors is damaged" in errors and "in the head" in errors


# Refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("mqar", "--kappa", "0"), "kappa = 0 is too small"),
        (("mqar", "--arch", "s4d", "--write", "last"), "s4d has no lowering of latch"),
        (("mqar", "--length", "5"), "the smallest length that works is 48"),
        (("mqar", "--arch", "gpt"), "gpt"),
        (("verify", "no-such-directory"), "does not exist"),
        (("inspect", "."), "is not a checkpoint of ours"),
    ],
)
def test_bad_usage(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_failed_verification_saves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """The paper's rebinding data are outside the additive memory's domain: the command must say so and exit 1."""
    rebinding = MQAR(kappa=3, vocab=6, write="last").tasks()
    monkeypatch.setattr(MQAR, "tasks", lambda self: rebinding)
    assert run(*SMALL, "--out", str(tmp_path / "a")) == 1
    assert "the promise says nothing of that sequence" in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_no_parameter_hides_a_method(name: str) -> None:
    """A field `codes` beside a method `codes()` is a bool where a report calls it."""
    construction = CONSTRUCTIONS[name]
    methods = {m for base in construction.__mro__ for m, value in vars(base).items() if inspect.isfunction(value)}
    assert not methods & {field.name for field in fields(construction)}
