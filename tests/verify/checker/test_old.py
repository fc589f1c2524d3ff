"""The checker rejects what the compiler made before its holes were mended (`old/`)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from verify.checker.check import check

OLD = Path(__file__).parent / "old"
REASONS = {
    "1-numeric-key": ("arithmetic", "absorb the squares"),  # relu(key + when - 1) adds up to more than was said
    "2-thousands": ("arithmetic", "40960000 units"),
    "2-threes": ("arithmetic", "768 units of 2^0"),
    "3-folded": ("meaning", "53 bits"),
    "4-tenths": ("arithmetic", "units of 2^-27"),
    "5-below-zero": ("specials", "a special token may score as high"),
    "6-overflow": ("arithmetic", "A_log is 200"),
    "8-no-codeword": ("meaning", "decoded code"),
}


def test_every_old_checkpoint_is_named():
    assert {p.name for p in OLD.iterdir() if p.is_dir() and p.name != "__pycache__"} == set(REASONS)


@pytest.mark.parametrize("name", REASONS)
def test_rejects_what_the_old_compiler_made(name, tmp_path):
    """What would be the only reason that is told is taken out: the token that it offered to put in front, and another
    dtype of stored weights than float32.
    """
    part, words = REASONS[name]
    place = shutil.copytree(OLD / name, tmp_path / name)
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps(config | {"bos_token_id": None}))
    weights = {name: tensor.float() for name, tensor in load_file(place / "model.safetensors").items()}
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    verdict = check(place)
    assert not verdict.accepted
    assert words in (getattr(verdict, part) or ""), verdict.lines()
