"""What `save_pretrained` loses comes back, and only beside the very same model."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
import torch

from compiler.artifact import CheckpointError
from compiler.artifact.adopt import _as_read, adopt
from compiler.artifact.files import MANIFEST, SEALED_FILES
from constructions.checkpoints.saved import verify_checkpoint
from tests.constructions.test_construct import run

transformers = pytest.importorskip("transformers")


BUILT = {
    "mamba": ("count-in-row", "--largest", "2"),
    "mamba2": ("count-in-row", "--largest", "2"),
    "gated-deltanet": ("mad-memorization", "--vocab", "6", "--length", "4"),
    "gated-deltanet-qwen": ("mad-memorization", "--vocab", "6", "--length", "4"),
}


@pytest.fixture(scope="module", params=BUILT)
def original(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("adopt") / "original"
    command = (*BUILT[request.param], "--arch", request.param, "--samples", "10")
    assert run(*command, "--out", str(place), "--json") == 0
    return place


def written_again(original: Path, place: Path, change=lambda model: None, **options: str) -> Path:
    """The checkpoint through transformers, weights, config and tokenizer."""
    model = transformers.AutoModelForCausalLM.from_pretrained(original, **options)
    change(model)
    model.save_pretrained(place)
    transformers.AutoTokenizer.from_pretrained(original).save_pretrained(place)
    return place


def test_a_model_that_transformers_saved_is_a_checkpoint_again(original: Path, tmp_path: Path, capsys) -> None:
    place = written_again(original, tmp_path / "other")
    (place / "notes.txt").write_text("mine")
    assert run("verify", str(place)) == 2  # no manifest
    assert run("adopt", str(place), "--original", str(original)) == 0
    assert verify_checkpoint(place, samples=10).good
    assert (place / "notes.txt").read_text() == "mine"
    assert all((place / name).read_bytes() == (original / name).read_bytes() for name in (*SEALED_FILES, MANIFEST))


@pytest.mark.parametrize("name", ["adapter_config.json", "mine.txt", "pytorch_model.bin"])
def test_what_would_be_no_checkpoint_is_not_made_one(name: str, original: Path, tmp_path: Path, capsys) -> None:
    """verify and prove refuse a directory that holds such a file, so adopt does."""
    place = written_again(original, tmp_path / "other")
    (place / name).write_text("{}")
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    assert run("adopt", str(place), "--original", str(original)) == 2
    assert f"{place} would be no checkpoint, for it holds {name}" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_lists_of_one_length_are_not_told_as_the_same(original: Path, tmp_path: Path, capsys) -> None:
    place = written_again(original, tmp_path / "other")
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps(config | {"architectures": ["OtherModel"]}))
    assert run("adopt", str(place), "--original", str(original)) == 2
    told = "".join(capsys.readouterr().err.split())
    assert "architectures=alistwith1entry,andtheoriginalotherentries" in told


OF_THE_USER = {
    "circuit.json": lambda text: '{"mine": 1}',
    "causal_graph.json": lambda text: "{}",
    "construction.json": lambda text: "{}",
    "generation_config.json": lambda text: json.dumps(json.loads(text) | {"temperature": 0.5}),
    "tokenizer.json": lambda text: text.replace('"WhitespaceSplit"', '"Whitespace"'),
    "tokenizer_config.json": lambda text: json.dumps(json.loads(text) | {"chat_template": "mine"}),
    "special_tokens_map.json": lambda text: '{"bos_token": "mine"}',
    "added_tokens.json": lambda text: '{"mine": 3}',
    "chat_template.jinja": lambda text: "mine",
    "config.json": lambda text: json.dumps(json.loads(text) | {"my_note": "mine"}),
}


@pytest.mark.parametrize("name", OF_THE_USER)
def test_no_file_of_the_user_is_lost(name: str, original: Path, tmp_path: Path) -> None:
    place = written_again(original, tmp_path / "other")
    path = place / name
    path.write_text(OF_THE_USER[name](path.read_text() if path.exists() else ""))
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(CheckpointError, match=f"{name} .*would be lost"):
        adopt(place, original)
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json"])
@pytest.mark.parametrize("text", ["[]", "{}", '{"model": 1}', "mine"])
def test_no_odd_file_is_taken_for_one_that_is_made(name: str, text: str, original: Path, tmp_path: Path) -> None:
    place = written_again(original, tmp_path / "other")
    (place / name).write_text(text)
    with pytest.raises(CheckpointError, match=name):
        adopt(place, original)
    assert (place / name).read_text() == text


def test_files_of_the_original_and_of_earlier_transformers_are_taken(original: Path, tmp_path: Path) -> None:
    place = written_again(original, tmp_path / "other")
    for name in ("circuit.json", "causal_graph.json"):
        shutil.copy(original / name, place / name)
    token = {"content": "<pad>", "lstrip": False, "normalized": False, "rstrip": False, "single_word": False}
    (place / "special_tokens_map.json").write_text(json.dumps({"pad_token": token, "unk_token": "<unk>"}))
    ids = json.loads((original / "tokenizer.json").read_text())["model"]["vocab"]
    (place / "added_tokens.json").write_text(json.dumps({"<pad>": ids["<pad>"]}))
    adopt(place, original)
    assert verify_checkpoint(place, samples=10).good and not (place / "special_tokens_map.json").exists()


def test_weights_that_are_a_pipe_are_refused_before_they_are_opened(original: Path, tmp_path: Path, capsys) -> None:
    """A pipe that nobody writes to is never read to its end."""
    place = written_again(original, tmp_path / "other")
    (place / "model.safetensors").unlink()
    os.mkfifo(place / "model.safetensors")
    assert run("adopt", str(place), "--original", str(original)) == 2
    assert "is a named pipe, and a plain file is needed." in capsys.readouterr().err


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_narrow_model_is_adopted_in_the_dtype_in_which_it_was_loaded(dtype: str, tmp_path: Path) -> None:
    """Its checkpoint holds float32 numbers, and what transformers saves of it has the same in the narrow dtype."""
    command = ("absolute-time", "--horizon", "3", "--max-length", "100", "--dtype", dtype, "--samples", "10", "--json")
    assert run(*command, "--out", str(tmp_path / "original")) == 0
    place = written_again(tmp_path / "original", tmp_path / "other")
    adopt(place, tmp_path / "original")
    assert verify_checkpoint(place, samples=10).good


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"no length", "it has 9 bytes, too few for its header"),
        ((5).to_bytes(8, "little") + b"{" * 5, "its header is not JSON"),
        ((2).to_bytes(8, "little") + b"[]", "its header does not list tensors"),
        (
            (49).to_bytes(8, "little") + b'{"x":{"dtype":"secret","shape":[],"offsets":[0]}}',
            "its header does not describe the bytes behind it",
        ),
    ],
)
def test_weights_that_cannot_be_read_are_not_quoted(original: Path, tmp_path: Path, content: bytes, fault: str) -> None:
    place = written_again(original, tmp_path / "other")
    (place / "model.safetensors").write_bytes(content)
    with pytest.raises(CheckpointError) as told:
        adopt(place, original)
    weights = place / "model.safetensors"
    assert str(told.value) == f"{weights} is not a safetensors file of ours: {fault}."


def test_a_model_that_was_changed_is_not_adopted(original: Path, tmp_path: Path) -> None:
    def train(model) -> None:
        with torch.no_grad():
            next(model.parameters())[0, 0] += 2.0**-20

    place = written_again(original, tmp_path / "other", train)
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    with pytest.raises(CheckpointError, match="its weights .* differ"):
        adopt(place, original)
    config = json.loads((original / "config.json").read_text())
    epsilon = next(key for key in ("layer_norm_epsilon", "rms_norm_eps") if key in config)
    place = written_again(original, tmp_path / "third")
    (place / "config.json").write_text(json.dumps(config | {epsilon: 1e-3}))
    with pytest.raises(CheckpointError, match=f"{epsilon} = 0.001"):
        adopt(place, original)
    assert {path.name: path.read_bytes() for path in (tmp_path / "other").iterdir()} == before


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path.symlink_to("/dev/zero"), "is a link, and only plain files are copied"),
        (os.mkfifo, "is a named pipe, and only plain files are copied"),
        (lambda path: path.open("wb").truncate((1 << 30) + 1), "have more than 1,073,741,824 bytes"),
    ],
    ids=["link", "pipe", "large"],
)
@pytest.mark.parametrize("below", [False, True])
def test_only_plain_files_of_a_size_are_copied(make, told: str, below: bool, original: Path, tmp_path: Path) -> None:
    """A link to /dev/zero would be copied without end."""
    place = tmp_path / "other"
    shutil.copytree(original, place)
    (place / "construction.json").unlink()
    (place / "mine").mkdir()
    odd = place / "mine" / "notes.md" if below else place / "notes.md"
    make(odd)
    with pytest.raises(CheckpointError, match=f"{odd} .*{told}"):
        adopt(place, original)
    assert not (place / "construction.json").exists() and [path.name for path in tmp_path.iterdir()] == ["other"]


def test_only_an_undamaged_original_is_believed(original: Path, tmp_path: Path) -> None:
    place = written_again(original, tmp_path / "other")
    with pytest.raises(CheckpointError, match="not a checkpoint of ours"):
        adopt(place, tmp_path / "other")
    with pytest.raises(CheckpointError, match="is no directory"):
        adopt(tmp_path / "nowhere", original)


@pytest.mark.parametrize(
    "config", [{}, {"model_type": "nobody"}, {"model_type": 3}, {"model_type": "mamba", "hidden_size": "x"}]
)
def test_a_config_that_transformers_does_not_read_is_no_traceback(config) -> None:
    assert _as_read(config).get("model_type") in (None, "mamba")
