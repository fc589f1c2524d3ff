"""Checkpoints on the disk: the same bytes every time, whole or not at all, and damage is refused."""

import importlib
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file

from compiler import load
from compiler.artifact import CheckpointError
from compiler.artifact.config import cuda_limits
from compiler.artifact.files import CARD, CONFIG, MANIFEST, SEALED_FILES, WEIGHTS, tensor_shapes
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import manifest_content, read_manifest, sealed
from compiler.artifact.save import write
from compiler.artifact.tokenizer import check_tokens, special_tokens, with_special_tokens
from tests.artifact.tiny import (
    CARD_TEXT,
    CLAIM,
    KINDS,
    TOKENS,
    contents,
    random_tensors,
    refused,
    save_tiny,
    tiny_config,
)

# What is on disk


@pytest.mark.parametrize("kind", KINDS)
def test_same_inputs_same_bytes(tmp_path, kind):
    first, second = save_tiny(tmp_path / "a", kind), save_tiny(tmp_path / "b", kind)
    assert contents(first) == contents(second)


def test_order_of_the_inputs_does_not_matter(tmp_path):
    config = tiny_config("mamba")
    tensors = random_tensors(config)
    write(tmp_path / "a", config, tensors, TOKENS, CLAIM, {}, CARD_TEXT)
    backwards = [dict(reversed(list(mapping.items()))) for mapping in (config, tensors, CLAIM)]
    write(tmp_path / "b", *backwards[:2], TOKENS, backwards[2], {}, CARD_TEXT)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_directory_holds_json_and_safetensors_only(tmp_path):
    directory = save_tiny(tmp_path / "out")
    assert {path.name for path in directory.iterdir()} == {MANIFEST, CARD, *SEALED_FILES}
    assert {path.suffix for path in directory.iterdir()} == {".json", ".md", ".safetensors"}
    assert len({path.stat().st_mode for path in directory.iterdir()}) == 1
    for path in directory.glob("*.json"):
        json.loads(path.read_text("utf-8"))
    assert load_file(directory / WEIGHTS).keys() == tensor_shapes(tiny_config("mamba")).keys()


def test_tensors_that_share_memory_are_saved_whole(tmp_path):
    config = tiny_config("mamba")
    tensors = random_tensors(config)
    tensors["lm_head.weight"] = tensors["backbone.embeddings.weight"]
    tensors["backbone.layers.0.mixer.in_proj.weight"] = torch.randn(12, 48).T
    write(tmp_path / "out", config, tensors, TOKENS, CLAIM, {}, CARD_TEXT)
    saved = load_file(tmp_path / "out" / WEIGHTS)
    assert all(torch.equal(saved[name], tensor) for name, tensor in tensors.items())


def test_manifest_comes_back_with_hashes_and_saves_again(tmp_path):
    save_tiny(tmp_path / "a")
    manifest = manifest_content(tmp_path / "a")
    assert (CLAIM | {"card": manifest["card"]}).items() <= manifest.items()
    assert manifest["files"].keys() == set(SEALED_FILES)
    assert read_manifest(tmp_path / "a").params == CLAIM["params"]
    config = tiny_config("mamba")
    write(tmp_path / "b", config, random_tensors(config), TOKENS, manifest, {}, CARD_TEXT)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


@pytest.mark.parametrize("kind", KINDS)
def test_load_returns_every_weight_bit_for_bit(tmp_path, kind):
    stack = load(save_tiny(tmp_path / "out", kind))
    tensors = random_tensors(tiny_config(kind))
    assert torch.equal(stack.embedding.weight, tensors["backbone.embeddings.weight"])
    assert torch.equal(stack.norms[1].weight, tensors["backbone.layers.1.norm.weight"])
    assert torch.equal(stack.final_norm.weight, tensors["backbone.norm_f.weight"])
    assert torch.equal(stack.head.weight, tensors["lm_head.weight"])
    for i, block in enumerate(stack.blocks):
        for name, value in block.state_dict().items():
            assert torch.equal(value, tensors[f"backbone.layers.{i}.mixer.{name}"])
    assert stack.tokens == TOKENS
    assert stack.config == tiny_config(kind)
    assert stack.manifest == read_manifest(tmp_path / "out")


# Damage


def flip_one_bit(directory):
    data = bytearray((directory / WEIGHTS).read_bytes())
    data[-3] ^= 1
    (directory / WEIGHTS).write_bytes(data)


def truncate(directory):
    data = (directory / WEIGHTS).read_bytes()
    (directory / WEIGHTS).write_bytes(data[: len(data) // 2])


def edit_config(directory):
    path = directory / CONFIG
    path.write_text(path.read_text().replace('"layer_norm_epsilon": 1e-05', '"layer_norm_epsilon": 1e-06'))


def edit_claim(directory):
    path = directory / MANIFEST
    path.write_text(path.read_text().replace('"kappa": 4', '"kappa": 5'))


def other_version(directory):
    path = directory / MANIFEST
    path.write_text(path.read_text().replace('"format_version": 2', '"format_version": 9'))


def reseal_with_other_config(**changes):
    """A consistent seal around a config that does not fit the weights."""

    def damage(directory):
        config = json.loads((directory / CONFIG).read_text()) | changes
        (directory / CONFIG).write_text(canonical_json(config))
        (directory / MANIFEST).write_text(canonical_json(sealed(CLAIM, directory)))

    return damage


DAMAGE = {
    "bit flip in the weights": (flip_one_bit, (WEIGHTS, "sha256 is", "expected")),
    "truncated weights": (truncate, (WEIGHTS, "bytes is", "expected")),
    "missing weights": (lambda d: (d / WEIGHTS).unlink(), (WEIGHTS, "missing")),
    "missing tokenizer": (lambda d: (d / "tokenizer.json").unlink(), ("tokenizer.json", "missing")),
    "missing manifest": (lambda d: (d / MANIFEST).unlink(), (MANIFEST, "not a checkpoint of ours")),
    "edited config": (edit_config, (CONFIG, "sha256 is")),
    "edited claim": (edit_claim, (MANIFEST, "altered")),
    "later version": (other_version, (MANIFEST, "version 9", "expected 2")),
    "manifest is garbage": (lambda d: (d / MANIFEST).write_text("{"), (MANIFEST, "not JSON")),
    "manifest is binary": (lambda d: (d / MANIFEST).write_bytes(b"\xff\xfe"), (MANIFEST, "not JSON")),
    "manifest is a list": (lambda d: (d / MANIFEST).write_text("[]"), (MANIFEST, "not the manifest")),
    "manifest is another tool's": (lambda d: (d / MANIFEST).write_text("{}"), (MANIFEST, "not the manifest")),
    "config of other widths": (reseal_with_other_config(state_size=6), (WEIGHTS, "A_log", "(24, 5)", "(24, 6)")),
    "config of more layers": (reseal_with_other_config(num_hidden_layers=3), (WEIGHTS, "no tensor backbone.layers.2")),
    "config of fewer layers": (reseal_with_other_config(num_hidden_layers=1), (WEIGHTS, "backbone.layers.1")),
    "config with biases": (reseal_with_other_config(use_bias=True), ("use_bias", "True", "False")),
    "config of another model": (reseal_with_other_config(model_type="gpt2"), ("gpt2",)),
}


@pytest.mark.parametrize("damage, fragments", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_refused(tmp_path, damage, fragments):
    directory = save_tiny(tmp_path / "out")
    damage(directory)
    refused(lambda: load(directory), *fragments)


def test_places_without_a_checkpoint_are_refused(tmp_path):
    (tmp_path / "file").write_text("hello")
    (tmp_path / "foreign").mkdir()
    refused(lambda: load(tmp_path / "nowhere"), "nowhere", "does not exist")
    refused(lambda: load(tmp_path / "file"), "file", "expected a checkpoint directory")
    refused(lambda: load(tmp_path / "foreign"), "foreign", "not a checkpoint of ours")
    refused(lambda: load("x" * 5000), "cannot be looked for", "too long")
    refused(lambda: save_tiny(tmp_path / "a\0b"), "could not be written", "NUL")


# Overwriting and failing


def test_existing_places_are_left_alone(tmp_path):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("hello")
    for place in ("foreign", "file"):
        refused(lambda at=place: save_tiny(tmp_path / at, overwrite=True), place, "left alone")
    assert contents(tmp_path / "foreign") == {"notes.txt": b"mine"}
    assert (tmp_path / "file").read_text() == "hello"


def test_overwriting_wants_permission_and_keeps_what_is_not_ours(tmp_path):
    directory = save_tiny(tmp_path / "out", "mamba")
    refused(lambda: save_tiny(directory, "mamba2"), "overwrite=True")
    save_tiny(directory, "mamba2", overwrite=True)
    assert load(directory).config["model_type"] == "mamba2"
    (directory / "notes.txt").write_text("mine")
    (directory / "pictures").mkdir()
    (directory / "pictures" / "state.svg").write_text("<svg/>")
    save_tiny(directory, "mamba", overwrite=True)
    assert load(directory).config["model_type"] == "mamba"
    assert (directory / "notes.txt").read_text() == "mine"
    assert (directory / "pictures" / "state.svg").read_text() == "<svg/>"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]


def test_an_edited_card_survives_and_ours_is_renewed(tmp_path):
    directory = save_tiny(tmp_path / "out")
    config = tiny_config("mamba")
    write(directory, config, random_tensors(config), TOKENS, CLAIM, {}, "# Another card\n", overwrite=True)
    assert (directory / CARD).read_text() == "# Another card\n"
    (directory / CARD).write_text("# Mine\n")
    save_tiny(directory, overwrite=True)
    save_tiny(directory, overwrite=True)
    assert (directory / CARD).read_text() == "# Mine\n"
    assert load(directory).tokens == TOKENS


@pytest.mark.parametrize("step", ["save.save_file", "save.sealed", "place._flush", "place._move_in"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_failure_midway_leaves_the_disk_as_it_was(tmp_path, monkeypatch, step, failure):
    def fail(*_, **__):
        raise failure

    before = contents(save_tiny(tmp_path / "old"))
    module, name = step.split(".")
    monkeypatch.setattr(importlib.import_module(f"compiler.artifact.{module}"), name, fail)
    for place in ("new", "deep/er/new", "old"):
        with pytest.raises((CheckpointError, KeyboardInterrupt)):
            save_tiny(tmp_path / place, "mamba2", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert contents(tmp_path / "old") == before


def test_a_failing_rename_brings_the_old_checkpoint_back(tmp_path, monkeypatch):
    before = contents(save_tiny(tmp_path / "out"))
    rename = type(tmp_path).rename

    def fail_for_the_new_one(path, target):
        if path.name.endswith(".partial"):
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(importlib.import_module("compiler.artifact.place"), "_exchange", lambda *_: False)
    monkeypatch.setattr(type(tmp_path), "rename", fail_for_the_new_one)
    refused(lambda: save_tiny(tmp_path / "out", "mamba2", overwrite=True), "out", "Input/output error")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert contents(tmp_path / "out") == before


def test_parents_are_made(tmp_path):
    assert load(save_tiny(tmp_path / "a" / "b")).tokens == TOKENS


def test_a_parent_that_is_a_file_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("hello")
    refused(lambda: save_tiny(tmp_path / "file" / "out"), "file is a file, and a directory is needed there")


# Inputs of save


def save_changed(tmp_path, config=(), tensors=(), tokens=TOKENS, manifest=()):
    base = tiny_config("mamba")
    write(
        tmp_path / "out",
        base | dict(config),
        random_tensors(base) | dict(tensors),
        tokens,
        CLAIM | dict(manifest),
        {},
        CARD_TEXT,
    )


@pytest.mark.parametrize(
    "changes, fragments",
    [
        ({"config": {"use_conv_bias": False}}, ("use_conv_bias",)),
        ({"config": {"eos_token_id": 900}}, ("eos_token_id", "900", "0 to 5")),
        ({"config": {"quantization_config": {}}}, ("quantization_config", "no checkpoint of ours")),
        ({"config": {"use_cache": 1}}, ("use_cache", "1", "expected True")),
        ({"config": {"hidden_size": 10**30}}, ("d_model", "at most")),
        ({"config": {"hidden_size": 0}}, ("d_model", "positive integer")),
        ({"tensors": {"lm_head.weight": torch.zeros(8, 13)}}, ("lm_head.weight", "(8, 13)", "(8, 12)")),
        ({"tensors": {"lm_head.bias": torch.zeros(8)}}, ("lm_head.bias", "no place")),
        ({"tensors": {"lm_head.weight": torch.zeros(8, 12).double()}}, ("lm_head.weight", "float64")),
        ({"tensors": {"lm_head.weight": torch.full((8, 12), torch.nan)}}, ("lm_head.weight", "NaN")),
        ({"tokens": TOKENS[1:]}, ("7 token names", "8")),
        ({"tokens": ["x y", *TOKENS[1:]]}, ("'x y'", "one word")),
        ({"tokens": ["k0", *TOKENS[1:]]}, ("'k0'", "2 times")),
        ({"tokens": ["x<eos>", *TOKENS[1:]]}, ("'x<eos>'", "special token")),
        ({"tokens": [*TOKENS[1:], "_"]}, ("must end with", "<unk>")),
        ({"manifest": {"margin": float("nan")}}, ("JSON",)),
        ({"manifest": {"oracle": object()}}, ("JSON",)),
        ({"manifest": {"oracle": 1}}, ("construction.json", "oracle")),
        ({"manifest": {"lanes": "x"}}, ("construction.json: lanes", "'x'", "a list")),
        ({"manifest": {"dtype": 7}}, ("construction.json: dtype", "7", "one of float32")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_inputs_that_do_not_fit_are_refused(tmp_path, changes, fragments):
    refused(lambda: save_changed(tmp_path, **changes), *fragments)
    assert not list(tmp_path.iterdir())


def test_mamba2_heads_must_divide_the_channels():
    refused(lambda: tiny_config("mamba2", d_model=15), "head_dim 8", "30")


def test_cuda_limits_are_named():
    assert cuda_limits(tiny_config("mamba")) == []
    assert [sentence.split()[0] for sentence in cuda_limits(tiny_config("mamba", d_state=300, d_conv=5))] == [
        "conv_kernel",
        "state_size",
    ]
    assert "34 convolved channels" in cuda_limits(tiny_config("mamba2"))[0]
    four_heads, eight_heads = (cuda_limits(tiny_config("mamba2", d_model=width, d_state=4)) for width in (16, 32))
    assert four_heads == ["in_proj has 76 rows, the kernels want a multiple of 8."] and not eight_heads


@given(st.lists(st.text(), unique=True))
def test_token_lists_are_accepted_or_refused_in_one_sentence(names):
    words = all(name.split() == [name] and not any(s in name for s in special_tokens()) for name in names)
    try:
        check_tokens(with_special_tokens(names))
    except CheckpointError:
        assert not words
    else:
        assert words
