"""Left padding: rows of special tokens, and Δ where the mask blanks a position out, in checker and small kernel."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from constructions.selectivity.keep_nth import KeepNth
from constructions.selectivity.mqar import MQAR
from tests.verify.kernel.extremes import checker_says
from verify.kernel.claims import Refused
from verify.kernel.floats import Unproved
from verify.prover.prove import search

Tensors = dict[str, torch.Tensor]
EMBEDDING, NORM = "backbone.embeddings.weight", "backbone.layers.0.norm.weight"


def lane_of_special_tokens(tensors: Tensors, pad: int, weight: float = 2.0**126) -> int:
    """A lane that is 0 for letters and 1 for the token of padding, whose norm overflows: 0 · ∞ is NaN."""
    rows = tensors[EMBEDDING]
    lane = int((rows[:pad] == 0).all(dim=0).nonzero()[0, 0])
    rows[pad] = 0
    rows[pad, lane], tensors[NORM][lane] = 1, weight
    return lane


def gates_of_padding(tensors: Tensors, pad: int) -> None:
    """The norm holds, and all rows of in_proj, gates too, would overflow if no mask stood before them."""
    lane = lane_of_special_tokens(tensors, pad, 2.0**100)
    tensors["backbone.layers.0.mixer.in_proj.weight"][:, lane] = 2.0**100


def steps_of_padding(tensors: Tensors, pad: int) -> None:
    """Δ is what it was at letters, where a constant lane takes away what dt_bias adds; at padding it is 2^30."""
    lane = int((tensors[EMBEDDING][:4] == 1).all(dim=0).nonzero()[0, 0])
    bias, rows = (tensors[f"backbone.layers.2.mixer.{name}"] for name in ("dt_bias", "in_proj.weight"))
    bias[0] += 2.0**30
    rows[-len(bias), lane] -= 2.0**30


def kernel_says(place: Path) -> str | None:
    """None where the kernel proves it, else why not."""
    try:
        search(place)
    except (Unproved, Refused) as reason:
        return str(reason)
    return None


def padded(place: Path, letters: list[int], pad: int, pads: int) -> torch.Tensor:
    """Scores behind so many tokens of padding, by transformers, of half of the letters at once and the others letter by
    letter: (letters, tokens).
    """
    model = AutoModelForCausalLM.from_pretrained(place, dtype=torch.float32)
    ids, half = torch.tensor([[pad] * pads + letters]), pads + len(letters) // 2
    mask = (torch.arange(len(ids[0])) >= pads).long()[None]
    with torch.no_grad():
        told = model(ids[:, :half], attention_mask=mask[:, :half], use_cache=True)
        found = [told.logits[0, pads:]]
        for t in range(half, len(ids[0])):
            told = model(ids[:, t : t + 1], cache_params=told.cache_params, use_cache=True)
            found.append(told.logits[0])
    return torch.cat(found)


def forged(place: Path, change: Callable[[Tensors, int], object], **entries: object) -> int:
    """The files of a checkpoint after a change of its weights and config.json; returns the id of padding."""
    config = json.loads((place / "config.json").read_text())
    tensors = load_file(place / "model.safetensors")
    change(tensors, config["pad_token_id"])
    save_file(tensors, place / "model.safetensors", metadata={"format": "pt"})
    (place / "config.json").write_text(json.dumps(config | entries))
    return config["pad_token_id"]


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_a_special_token_that_overflows_where_it_pads_a_text_is_refused(arch: str, tmp_path: Path) -> None:
    place, letters = tmp_path / "c", [1, 5, 2, 8, 3, 11, 1]
    MQAR(kappa=4, vocab=8, arch=arch).compiled().save(place)  # type: ignore[arg-type]
    assert checker_says(place) is None and kernel_says(place) is None
    pad = json.loads((place / "config.json").read_text())["pad_token_id"]
    assert torch.equal(padded(place, letters, pad, 3), padded(place, letters, pad, 0))
    forged(place, lane_of_special_tokens)
    assert padded(place, letters, pad, 1).isnan().any() and not padded(place, letters, pad, 0).isnan().any()
    for said in (checker_says(place), kernel_says(place)):
        assert "pads a text" in (said or "accepted")


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_what_stands_behind_the_mask_may_be_anything_where_a_text_is_padded(arch: str, tmp_path: Path) -> None:
    place, letters = tmp_path / "c", [1, 5, 2, 8, 3, 11, 1]
    MQAR(kappa=4, vocab=8, arch=arch).compiled().save(place)  # type: ignore[arg-type]
    pad = forged(place, gates_of_padding)
    assert torch.equal(padded(place, letters, pad, 3), padded(place, letters, pad, 0))
    assert checker_says(place) is None and kernel_says(place) is None


def test_steps_that_grow_where_a_text_is_padded_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "c"
    KeepNth(n=3, vocab=4, arch="mamba2").compiled().save(place)  # type: ignore[arg-type]
    assert checker_says(place) is None and kernel_says(place) is None
    letters = [1, 2, 3, 0, 1, 2, 2, 1, 0, 3]
    pad = forged(place, steps_of_padding, time_step_limit=[0.0, 2.0**40])
    assert not torch.equal(padded(place, letters, pad, 20), padded(place, letters, pad, 0))
    for said in (checker_says(place), kernel_says(place)):
        assert said is not None and "chunk" in said, said
