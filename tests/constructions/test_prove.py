"""`construct prove`: the checker's verdict as a file of the checkpoint."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from constructions.__main__ import main
from constructions.command.cli import app


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    directory = tmp_path_factory.mktemp("prove") / "clock"
    run = CliRunner().invoke(app, ["absolute-time", "--horizon", "3", "--samples", "4", "--out", str(directory)])
    assert run.exit_code == 0, run.output
    return directory


def test_the_verdict_is_written_and_the_checkpoint_still_verifies(checkpoint):
    run = CliRunner().invoke(app, ["prove", str(checkpoint), "--json"])
    assert run.exit_code == 0, run.output
    record = json.loads((checkpoint / "proof.json").read_text())
    assert record == json.loads(run.output)
    assert record["accepted"] and record["meaning"]["proved"]
    weights = hashlib.sha256((checkpoint / "model.safetensors").read_bytes()).hexdigest()
    assert record["files"]["model.safetensors"] == weights
    assert CliRunner().invoke(app, ["verify", str(checkpoint), "--samples", "4"]).exit_code == 0


def test_a_directory_that_takes_no_file_still_gets_its_verdict(checkpoint, monkeypatch):
    def refuse(path, text):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("constructions.command.prove.write_whole", refuse)
    run = CliRunner().invoke(app, ["prove", str(checkpoint)])
    assert run.exit_code == 0 and "arithmetic: proved" in run.stdout
    assert "proof.json is not written: permission denied" in run.stderr


@pytest.mark.parametrize("text", ["mine", "{}", '{"accepted": true}', "[1]", '{"accepted": true, "files": {}}'])
def test_a_file_that_is_no_record_of_a_proof_is_not_replaced(text, checkpoint, tmp_path):
    copy = shutil.copytree(checkpoint, tmp_path / "copy")
    (copy / "proof.json").write_text(text)
    run = CliRunner().invoke(app, ["prove", str(copy)])
    assert "proof.json is there already, and no record of construct prove" in str(run.exception)
    assert (copy / "proof.json").read_text() == text
    (copy / "proof.json").unlink()
    for _ in range(3):
        assert CliRunner().invoke(app, ["prove", str(copy)]).exit_code == 0
    record = json.loads((copy / "proof.json").read_text())
    (copy / "proof.json").write_text(json.dumps(record | {"note": "mine"}))
    run = CliRunner().invoke(app, ["prove", str(copy)])
    assert run.exit_code == 1 and "no record of construct prove" in str(run.exception)
    (copy / "proof.json").write_text("")
    assert CliRunner().invoke(app, ["prove", str(copy)]).exit_code == 0


def test_changed_weights_are_rejected_with_exit_code_1(checkpoint, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in checkpoint.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    tensors = load_file(copy / "model.safetensors")
    tensors["lm_head.weight"] = -tensors["lm_head.weight"]
    save_file(tensors, copy / "model.safetensors")
    run = CliRunner().invoke(app, ["prove", str(copy)])
    assert run.exit_code == 1 and "not proved" in run.output and run.output.startswith("not accepted for every")
    again = subprocess.run([sys.executable, "-m", "verify.checker", str(copy)], capture_output=True, text=True)
    assert again.returncode == 1 and again.stdout.strip() == run.output.strip()


def test_no_checkpoint_is_bad_usage(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["construct", "prove", str(tmp_path / "none")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert subprocess.run([sys.executable, "-m", "verify.checker"], capture_output=True).returncode == 2


def test_weights_that_cannot_be_read_have_no_domain(checkpoint, tmp_path):
    copy = shutil.copytree(checkpoint, tmp_path / "copy")
    (copy / "model.safetensors").write_text("hello")
    run = CliRunner().invoke(app, ["prove", str(copy)])
    assert run.exit_code == 1 and run.output.startswith("not accepted: of such files nothing is proved\n")


def run(*line: str) -> int:
    return CliRunner().invoke(app, line).exit_code


def test_a_certificate_may_stand_where_the_kernel_looks_for_it(tmp_path: Path) -> None:
    place = tmp_path / "c"
    assert run("absolute-time", "--horizon", "3", "--samples", "4", "--out", str(place)) == 0
    assert run("prove", str(place), "--certificate", str(place / "certificate.json")) == 0
    assert subprocess.run([sys.executable, "-m", "verify.kernel", str(place)], capture_output=True).returncode == 0
    assert run("verify", str(place), "--samples", "5") == run("prove", str(place)) == 0


def test_a_record_of_a_proof_names_the_files_that_text_goes_through(tmp_path: Path) -> None:
    """A record of an earlier version names four files, and is replaced as ours."""
    place = tmp_path / "c"
    assert run("absolute-time", "--horizon", "3", "--samples", "4", "--out", str(place)) == 0
    assert run("prove", str(place)) == 0
    record = json.loads((place / "proof.json").read_text("utf-8"))
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        assert record["files"].pop(name) == hashlib.sha256((place / name).read_bytes()).hexdigest()
    text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    (place / "proof.json").write_text(text, "utf-8")
    assert run("prove", str(place)) == 0 and (place / "proof.json").read_text("utf-8") != text
