"""`construct export`: where it writes, what it says, and what it refuses."""

import json

import pytest
from typer.testing import CliRunner

from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.cli import app
from constructions.command.exporting import default_path
from constructions.selectivity.keep_nth import KeepNth
from tests.constructions.test_stated_tasks import counted


@pytest.fixture
def checkpoint(tmp_path):
    artifact.save(build(KeepNth(n=2, vocab=3)), {}, tmp_path / "keep")
    return tmp_path / "keep"


def export(*arguments):
    return CliRunner().invoke(app, ["export", *map(str, arguments)])


def test_it_writes_beside_the_checkpoint_and_again_when_forced(checkpoint):
    done = export(checkpoint, "--format", "gguf", "--json")
    path = checkpoint.with_name("keep.gguf")
    assert done.exit_code == 0 and json.loads(done.stdout) == {"format": "gguf", "path": str(path)}
    again = export(checkpoint, "--format", "gguf")
    assert isinstance(again.exception, ValueError) and "--force" in str(again.exception)
    assert export(checkpoint, "--format", "gguf", "--force").exit_code == 0
    elsewhere = checkpoint.parent / "a" / "b.gguf"
    assert export(checkpoint, "--format", "gguf", "--out", elsewhere).exit_code == 0
    assert elsewhere.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--format", "hugging-face"], "is that already"),
        (["--format", "own.py:hugging-face"], "is that already"),
        (["--format", "tensorrt"], "'tensorrt' is unknown; it must be one of gguf, mamba-ssm, "),
        (["--format", "gguf", "--out", ""], "--out is empty"),
        (["--format", "gguf", "--out", "{checkpoint}"], "is no export of this format, so it is left alone"),
        (["--format", "gguf", "--out", "{checkpoint}/config.json/x"], "is a file, and a directory is needed there"),
    ],
)
def test_refusals(checkpoint, arguments, reason):
    refused = export(checkpoint, *(a.format(checkpoint=checkpoint) for a in arguments))
    assert refused.exit_code and reason in f"{refused.exception}{refused.output}"


def test_the_card_names_no_file_and_no_command_that_an_export_has_not(tmp_path):
    counted(tmp_path / "own", task=lambda tokens: "0" if tokens[-1] == "b" else None)
    assert export(tmp_path / "own", "--format", "mamba-ssm").exit_code == 0
    card = (tmp_path / "own-mamba-ssm" / "README.md").read_text("utf-8")
    assert "(`answers.json` of the checkpoint), which `construct verify CHECKPOINT` asks again" in card
    assert "`construct verify DIRECTORY`" not in card and "`construct prove DIRECTORY`" not in card


def test_a_damaged_checkpoint_is_not_exported(checkpoint):
    with (checkpoint / "model.safetensors").open("r+b") as file:
        file.seek(-4, 2)
        file.write(b"\x01\x02\x03\x04")
    refused = export(checkpoint, "--format", "gguf")
    assert refused.exit_code and "is damaged" in str(refused.exception)
    assert not checkpoint.with_name("keep.gguf").exists()


def test_default_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = tmp_path.with_name(f"{tmp_path.name}-onnx")
    for given, expected in (("out/mqar", "out/mqar-onnx"), ("out/mqar/", "out/mqar-onnx"), (".", str(here))):
        assert str(default_path(type(tmp_path)(given), "onnx")) == expected
