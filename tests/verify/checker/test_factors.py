"""What a scan multiplies first overflows beside a 0: 0 · ∞ is NaN, whoever reads it. All were accepted once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.checkpoints import write
from tests.verify.checker.test_delta import checkpoint as swaps
from verify.checker.check import check

MIXER = "backbone.layers.0.mixer."
HEADS = "model.layers.1.linear_attn."


def huge_writes(tensors: dict[str, torch.Tensor]) -> None:
    """B is 2^40 times, C 2^-40 times what it was; Δ is 2^100 in a channel whose x̂ is 0."""
    tensors[MIXER + "x_proj.weight"][1:3] *= 2.0**40
    tensors[MIXER + "x_proj.weight"][3:5] *= 2.0**-40
    tensors[MIXER + "dt_proj.bias"][10] = 2.0**100


def huge_columns(tensors: dict[str, torch.Tensor]) -> None:
    """B and C of a column that nobody uses are 2^70 in a block without states."""
    (one,) = (tensors["backbone.embeddings.weight"][:4] == 1).all(dim=0).nonzero().flatten().tolist()
    for channel in (32, 36):
        tensors[MIXER + "in_proj.weight"][32 + channel, one] = 2.0**40
        tensors[MIXER + "conv1d.weight"][channel, 0, -1] = 2.0**30


@pytest.mark.parametrize(
    "name, params, enlarge, words",
    [
        ("mqar", {"kappa": 2, "vocab": 6}, huge_writes, "channel 10: Δ·B can reach"),
        ("induction-heads", {"vocab": 4, "arch": "mamba2"}, huge_columns, "channel 0: Δ·Σ C·B can reach"),
    ],
)
def test_no_factor_overflows_beside_a_zero(name, params, enlarge, words, tmp_path: Path):
    construction = CONSTRUCTIONS[name](**params)
    directory = write(tmp_path / "c", construction.circuit(), construction.target, "float32")
    assert check(directory).arithmetic is None
    tensors = load_file(directory / "model.safetensors")
    enlarge(tensors)
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    logits = AutoModelForCausalLM.from_pretrained(directory)(torch.tensor([[0, 1, 2, 0]])).logits
    assert logits[0, -1].isnan().all()
    assert words in (check(directory).arithmetic or "")


def sums_of_a_chunk(tensors: dict[str, torch.Tensor]) -> None:
    """The steps of a head without keys add up to infinity over a chunk: −∞ − (−∞)."""
    tensors[HEADS + "A_log"][2], tensors[HEADS + "dt_bias"][2] = 0, 2.0**126


def twice_a_value(tensors: dict[str, torch.Tensor]) -> None:
    """β·v of a head without keys is 2^128."""
    (one,) = (tensors["model.embed_tokens.weight"][:7] == 1).all(dim=0).nonzero().flatten().tolist()
    tensors[HEADS + "v_proj.weight"][8, one] = 2.0**64
    tensors[HEADS + "conv1d.weight"][2 * 3 * 16 + 8, 0] = torch.tensor([0, 0, 0, 2.0**63])
    tensors[HEADS + "b_proj.weight"][2, one] = 64


@pytest.mark.parametrize(
    "enlarge, words",
    [(sums_of_a_chunk, "the sum of its steps over a chunk can reach"), (twice_a_value, "head 2: column 0·β can reach")],
)
def test_no_head_of_a_delta_rule_overflows_beside_a_zero(enlarge, words, tmp_path: Path):
    """In a head that is there to fill up the width: it has neither keys nor queries."""
    directory = swaps(tmp_path / "c", "resets")
    tensors = load_file(directory / "model.safetensors")
    assert not tensors[HEADS + "k_proj.weight"][32:].any()
    enlarge(tensors)
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    logits = AutoModelForCausalLM.from_pretrained(directory)(torch.tensor([[0, 1, 2, 0]])).logits
    assert logits[0, -1].isnan().all()
    assert words in (check(directory).arithmetic or "")
