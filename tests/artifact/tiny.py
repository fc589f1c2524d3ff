"""Small checkpoints with random weights, and how they are refused."""

import pytest
import torch

from compiler.artifact import CheckpointError
from compiler.artifact.files import tensor_shapes
from compiler.artifact.save import write
from compiler.artifact.tokenizer import special_tokens, with_special_tokens
from compiler.targets.mamba.family import mamba_config
from compiler.targets.mamba2.family import mamba2_config

KINDS = ("mamba", "mamba2")
TOKENS = with_special_tokens(["_", "k0", "k1", "v3", "v17"])
CARD_TEXT = "# A card\n"
SIZES = {"d_model": 12, "d_inner": 24, "d_state": 5}
CLAIM = {
    "circuit": "tiny",
    "arch": "mamba",
    "dtype": "float32",
    "promise": {
        "language": {"tokens": 5, "start": "any", "edges": []},
        "length": 9,
        "description": "nothing",
        "stop": None,
        "dtype": "float32",
        "level": "bit-exact",
    },
    "sizes": {
        "d_model": 12,
        "d_inner": 24,
        "d_state": 5,
        "layers": 1,
        "blocks": [SIZES],
        "parameters": 0,
        "packaged": SIZES | {"layers": 1},
    },
    "lanes": ["key[0]", "one"],
    "blocks": [{"channels": ["c"], "columns": ["n"]}],
    "cuda_limits": [],
    "versions": {},
    "card": "",
    "construction": "a claim",
    "params": {"kappa": 4, "margin": 0.5},
}


def tiny_config(kind, **changes):
    sizes = {"vocab": len(TOKENS), "d_model": 12, "d_state": 5, "layers": 2} | changes
    return mamba_config(dt_rank=3, **sizes) if kind == "mamba" else mamba2_config(head_dim=8, chunk_size=4, **sizes)


def random_tensors(config, seed=0):
    """Weights of order one for every tensor, with all-zero rows for the special tokens."""
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for name, shape in tensor_shapes(config).items():
        values = torch.randn(shape, generator=generator)
        tensors[name] = 1 + 0.1 * values if "norm" in name else 0.5 * values
    for name in ("backbone.embeddings.weight", "lm_head.weight"):
        tensors[name][-len(special_tokens()) :] = 0
    return tensors


def save_tiny(directory, kind="mamba", **options):
    config = tiny_config(kind)
    write(directory, config, random_tensors(config), TOKENS, CLAIM, {}, CARD_TEXT, **options)
    return directory


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def refused(action, *fragments):
    """The action raises CheckpointError with one sentence that holds these fragments."""
    with pytest.raises(CheckpointError) as caught:
        action()
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message and ". " not in message
    for fragment in fragments:
        assert fragment in message
