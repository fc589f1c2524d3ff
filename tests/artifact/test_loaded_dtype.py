"""A loaded checkpoint computes in the dtype of its promise: in another one its norms round otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import compiler
from compiler import Circuit, Int, numbers
from compiler.artifact import CheckpointError
from compiler.artifact.files import MANIFEST
from compiler.artifact.manifest import sealed
from constructions.registry import CONSTRUCTIONS

PARAMETERS = {"absolute-time": {"horizon": 16}, "keep-nth": {"n": 2, "vocab": 5, "max_length": 20}}


@pytest.mark.parametrize(
    ("name", "arch", "dtype"),
    [
        ("absolute-time", "mamba", "bfloat16"),
        ("absolute-time", "mamba2", "bfloat16"),
        ("keep-nth", "mamba", "float16"),
        ("keep-nth", "mamba2", "bfloat16"),
    ],
)
def test_its_scores_are_the_circuits_in_every_bit(name: str, arch: str, dtype: str, tmp_path: Path) -> None:
    made = compiler.compile(CONSTRUCTIONS[name](**PARAMETERS[name], arch=arch, dtype=dtype).circuit(), arch, dtype)
    made.save(tmp_path / "out")
    words = made.source.token_language.sample(20, 12, seed=0)
    with torch.no_grad():
        scores = compiler.load(tmp_path / "out")(torch.from_numpy(words))
    assert scores.dtype == getattr(torch, dtype)
    expected = made.interpret(words)
    assert np.array_equal(scores[..., : expected.shape[-1]].double().numpy(), expected)


def test_so_is_a_model_over_numbers(tmp_path: Path) -> None:
    made = compiler.compile(Circuit("sum", numbers(Int(-3, 3), "n").cumsum(), length=5), dtype="bfloat16")
    made.save(tmp_path / "out")
    assert compiler.load(tmp_path / "out").run({"n": np.ones((1, 5, 1))})[0, :, 0].tolist() == [1, 2, 3, 4, 5]


def test_a_dtype_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    compiler.compile(CONSTRUCTIONS["keep-nth"](n=2, vocab=5).circuit()).save(tmp_path / "out")
    content = json.loads((tmp_path / "out" / MANIFEST).read_text()) | {"dtype": "int8"}
    (tmp_path / "out" / MANIFEST).write_text(json.dumps(sealed(content, tmp_path / "out")))
    with pytest.raises(CheckpointError, match="int8"):
        compiler.load(tmp_path / "out")
