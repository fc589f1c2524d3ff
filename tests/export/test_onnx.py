"""ONNX directories in onnxruntime: whole sequences, pieces, single tokens, chains, and what is refused."""

import hashlib
import json

import onnx as onnx_library
import pytest

from compiler.artifact.manifest import file_hash
from compiler.export import ExportError, onnx, read
from compiler.export.directory import RECORD
from tests.export.cases import ask
from tests.export.test_gguf import altered


@pytest.fixture(scope="module")
def directories(cases, large, tmp_path_factory):
    place = tmp_path_factory.mktemp("onnx")
    found = {case.name: (case, place / case.name) for case in (*cases.values(), large)}
    for case, path in found.values():
        onnx.write(read(case.directory), path, False)
    return found


def test_onnxruntime_computes_every_bit_and_writes_chains(directories, tmp_path):
    version, answers = ask("onnx_runtime", directories.values(), tmp_path)
    assert version.startswith("onnxruntime")
    for name, (case, _) in directories.items():
        assert set(answers[name].logits) == {"whole", "one of the batch", "pieces", "steps"}
        assert not answers[name].wrong(case) and answers[name].written.keys() == case.written.keys()


def test_the_graphs_are_valid_and_read_the_checkpoints_own_weights(directories):
    case, path = directories["edit-distance-mamba2"]
    assert file_hash(path / "model.safetensors") == file_hash(case.directory / "model.safetensors")
    for name in ("model.onnx", "step.onnx"):
        onnx_library.checker.check_model(str(path / name), full_check=True)
        told = {entry.key: entry.value for entry in onnx_library.load(str(path / name)).metadata_props}
        assert '"bit-exact"' in told["construction.export"]


def test_the_record_names_the_files_and_the_same_is_written_again(directories, tmp_path):
    case, path = directories["copy-mamba"]
    record = json.loads((path / RECORD).read_text())
    assert record["promise"]["level"] == "bit-exact" and record["checkpoint"] and record["warnings"]
    for name, expected in record["files"].items():
        assert hashlib.sha256((path / name).read_bytes()).hexdigest() == expected
    assert {p.name for p in path.iterdir()} == {RECORD, *record["files"]}
    onnx.write(read(case.directory), tmp_path / "again", False)
    assert {p.name: p.read_bytes() for p in (tmp_path / "again").iterdir()} == {
        p.name: p.read_bytes() for p in path.iterdir()
    }


def test_own_files_of_the_user_stay(cases, tmp_path):
    package, path = read(cases["keep-nth-mamba"].directory), tmp_path / "keep"
    onnx.write(package, path, False)
    (path / "notes.txt").write_text("mine")
    (path / "README.md").write_text("my card")
    with pytest.raises(ExportError, match="--force"):
        onnx.write(package, path, False)
    for _ in range(2):
        onnx.write(package, path, True)
    assert (path / "notes.txt").read_text() == "mine" and (path / "README.md").read_text() == "my card"
    files = json.loads((path / RECORD).read_text())["files"]
    assert "notes.txt" not in files and "README.md" not in files
    (path / RECORD).unlink()
    with pytest.raises(ExportError, match="left alone"):
        onnx.write(package, path, True)


def test_a_failure_leaves_nothing(cases, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("compiler.export.onnx_files.graph_bytes", full)
    with pytest.raises(ExportError, match="No space left"):
        onnx.write(read(cases["keep-nth-mamba"].directory), tmp_path / "new", False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"manifest": {"dtype": "float16"}}, "promise is for float16"), ({"use_bias": True}, "use_bias is True")],
)
def test_what_would_not_be_exact_is_refused(cases, tmp_path, change, reason):
    with pytest.raises(ExportError, match=reason):
        onnx.write(altered(cases["keep-nth-mamba"], **change), tmp_path / "model", False)
