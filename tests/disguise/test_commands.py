"""`construct disguise`, `verify`, `prove` and `undisguise` on files, and transformers on the disguised directory."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from compiler import CheckpointError, load
from compiler.artifact.generate import transformers_model
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import is_disguised, text_hash
from tests.disguise.pairs import ARCHES, key, run, spoiled
from tests.spread import some


@pytest.mark.parametrize("arch", ARCHES)
def test_transformers_gives_the_same_bits(place, arch):
    plain, other = (transformers_model(place / name, "float32") for name in (arch, f"{arch}-other"))
    letters = torch.from_numpy(np.random.default_rng(3).integers(0, 9, (4, 70)))
    bits = lambda logits: logits.contiguous().view(torch.int32)
    with torch.no_grad():
        expected = plain(letters).logits
        assert torch.equal(bits(expected), bits(other(letters).logits))
        found = other(letters[:, :60], use_cache=True)
        assert torch.equal(bits(expected[:, :60]), bits(found.logits))
        for t in range(60, 70):
            found = other(letters[:, t : t + 1], cache_params=found.cache_params, use_cache=True)
            assert torch.equal(bits(expected[:, t : t + 1]), bits(found.logits))


@pytest.mark.parametrize("arch", ARCHES)
def test_verify_and_prove_hold_with_the_key_and_without(place, arch, capsys):
    other = place / f"{arch}-other"
    assert is_disguised(other)
    for more in ((), ("--key", key(place, arch))):
        assert run("verify", other, "--samples", 20, *more) == 0
        capsys.readouterr()
        assert run("prove", other, "--json", *more) == 0
        verdict = json.loads(capsys.readouterr().out)
        assert verdict["accepted"] and all(verdict[part]["proved"] for part in ("arithmetic", "meaning", "task"))
    assert run("undisguise", other, "--key", key(place, arch), "--out", place / f"{arch}-back", "--force") == 0
    for file in (place / arch).iterdir():
        assert (place / f"{arch}-back" / file.name).read_bytes() == file.read_bytes(), file.name


def test_the_key_of_other_weights_is_told_as_such(place, capsys):
    other, wrong = place / "mamba-other", key(place, "mamba2")
    assert run("prove", other, "--key", wrong) == 1
    said = capsys.readouterr().out
    assert f"not proved with --key {wrong}: this is not the key of the weights in {other}" in said.replace("\n", " ")
    assert run("verify", other, "--key", wrong, "--samples", 2) == 1
    assert "this is not the key of its weights" in capsys.readouterr().err.replace("\n", " ")


def test_the_same_seed_gives_the_same_bytes(place, tmp_path):
    for name, seed in (("new/again", 2), ("new/again", 1), ("new/third", 2)):
        more = ("--seed", seed, "--samples", 20, "--force")
        assert run("disguise", place / "mamba", "--out", tmp_path / name, *more) == 0
    tmp_path = tmp_path / "new"
    first = place / "mamba-other" / "model.safetensors"
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == first.read_bytes()
    assert (tmp_path / "again.key.json").read_bytes() == key(place, "mamba").read_bytes()
    assert (tmp_path / "third" / "model.safetensors").read_bytes() != first.read_bytes()


@pytest.fixture
def edited_key(place, tmp_path):
    """Writes a key whose kept construction.json says something else, sealed anew or not, or that keeps more files."""

    def written(what: str) -> Path:
        said = json.loads(key(place, "mamba").read_text("utf-8"))
        if what == "file":
            said["files"]["../../evil.txt"] = "evil"
        else:
            kept = json.loads(said["files"]["construction.json"])
            kept["promise"]["length"] += 1
            if what == "sealed":
                del kept["sha256"]
                kept["sha256"] = text_hash(canonical_json(kept))
            said["files"]["construction.json"] = canonical_json(kept)
        path = tmp_path / f"{what}.json"
        path.write_text(json.dumps(said))
        return path

    return written


@pytest.mark.parametrize("what", ["file", "changed", "sealed"])
def test_a_key_that_keeps_other_files_is_no_key(what, place, edited_key, tmp_path, capsys):
    """Every command says so, and none names a file that is gone by then."""
    other, wrong = place / "mamba-other", edited_key(what)
    said = {
        "file": "the key has a file '../../evil.txt'",
        "changed": "is not the plain checkpoint: construction.json was altered",
        "sealed": "the construction.json that the key keeps has another promise than the one that stands here",
    }[what]
    assert run("verify", other, "--key", wrong, "--samples", 2) == 1
    told = capsys.readouterr().err
    assert said in " ".join(told.split()) and "partial" not in told and "/plain" not in told
    with pytest.raises(ValueError, match=re.escape(said)):
        run("score", other, "--key", wrong, "--method", "random")
    for line in (("undisguise", other, "--out", tmp_path / "out"), ("trace", other, "--input", "k0")):
        if what != "sealed" or line[0] == "trace":
            with pytest.raises(CheckpointError) as refused:
                run(*line, "--key", wrong)
            assert "partial" not in str(refused.value) and "/plain" not in str(refused.value)
    assert not (tmp_path / "evil.txt").exists()


def test_verify_finds_one_wrong_weight(place, tmp_path, capsys):
    """With the key every one; without, those that change what is computed."""
    source = place / "mamba-other"
    tensors = load_file(source / "model.safetensors")
    rng = np.random.default_rng(0)
    for i, name in enumerate(some(sorted(tensors), 0.25)):
        wrong = spoiled(source, tmp_path / str(i), name, int(rng.integers(tensors[name].numel())))
        assert run("verify", wrong, "--key", key(place, "mamba"), "--samples", 2) == 1, name
        assert "key" in capsys.readouterr().err
        assert run("prove", wrong, "--key", key(place, "mamba")) == 1, name
    head = tensors["lm_head.weight"]
    live = int(torch.nonzero(head[5]).reshape(-1)[0]) + 5 * head.shape[1]
    assert run("verify", spoiled(source, tmp_path / "head", "lm_head.weight", live), "--samples", 20) == 1


def test_a_file_that_was_changed_is_refused(place, tmp_path):
    out = spoiled(place / "mamba-other", tmp_path / "x", "lm_head.weight", 0)
    (out / "config.json").write_text(
        (out / "config.json").read_text("utf-8").replace('"state_size": 3', '"state_size": 4')
    )
    with pytest.raises(CheckpointError, match="damaged"):
        run("verify", out)


def test_refusals_in_one_sentence_and_nothing_written(place, tmp_path):
    other, plain, out = place / "mamba-other", place / "mamba", tmp_path / "out"
    asked = {
        "is disguised": ("disguise", other, "--out", out),
        "levels 1 to 3": ("disguise", plain, "--out", out, "--level", 4),
        "left alone": ("disguise", plain, "--out", plain),
        "already": ("disguise", plain, "--out", other),
        "exists already": ("disguise", plain, "--out", out, "--key", key(place, "mamba")),
        "lies in the disguised": ("disguise", plain, "--out", out, "--key", out / "key.json"),
        "would be lost": ("disguise", plain, "--out", out, "--key", plain / "config.json", "--force"),
        "no key of a disguise": ("undisguise", other, "--key", plain / "config.json", "--out", out),
        "key of other weights": ("undisguise", other, "--key", key(place, "mamba2"), "--out", out),
        "no disguised checkpoint": ("verify", plain, "--key", key(place, "mamba")),
    }
    for sentence, arguments in asked.items():
        with pytest.raises((ValueError, CheckpointError), match=sentence):
            run(*arguments)
        assert not out.exists() and not (tmp_path / "out.key.json").exists(), sentence
    with pytest.raises(CheckpointError, match="undisguise"):
        load(other)
