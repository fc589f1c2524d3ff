"""A directory for `mlx_lm.load`, which reads Hugging Face's files and decides the dtype by that of the tensors.

So the weights stand in the dtype of the promise, which holds each of them. mlx-lm normalises the gated output of
Mamba-2 as one group, has ε = 1e−5 in the norms of Mamba, and needs `intermediate_size` and a finite `time_step_limit`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from compiler.artifact.json_files import canonical_json
from compiler.artifact.save import write_tensors, write_text
from compiler.exactness.levels import NORM_EPSILON
from compiler.export.checkpoint import Package
from compiler.export.common import tokenizer_texts
from compiler.export.directory import write_directory
from compiler.export.errors import ExportError
from compiler.export.record import card, need, need_tokens, record
from compiler.formats import format_of

READER = "mlx-lm"
CONFIG, WEIGHTS = "config.json", "model.safetensors"
_WARNINGS = ("Checked on MLX's CPU code. Its GPU code was not run.",)
_OWN_WORDS = (
    "Names that mlx-lm loads with this model write tokens without spaces between: transformers takes the vocabulary of "
    "a model of type qwen3_5 for Qwen's own. They read text as usual, and ids and logits are not concerned."
)
_USE = """```python
import mlx.core as mx
from mlx_lm import load

model, names = load("DIRECTORY")
logits = model(mx.array([names.encode(TEXT)]))
```"""


def _split_convolutions(config: dict, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors by mlx-lm's names: its Gated DeltaNet has a convolution each for queries, keys and values.

    All other names are transformers' own. (`save_pretrained` of transformers 5.23 writes `post_attention_layernorm` of
    the layer of attention as `feedforward_layer_norm`, which mlx-lm does not read. These are written from ours.)
    """
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if config["model_type"] == "olmo_hybrid" and name.endswith(".conv1d.weight"):
            keys = config["linear_num_key_heads"] * config["linear_key_head_dim"]
            for part, rows in zip("qkv", tensor.split([keys, keys, len(tensor) - 2 * keys]), strict=True):
                found[name.replace(".conv1d.", f".{part}_conv1d.")] = rows.contiguous()
        else:
            found[name] = tensor
    return found


def _without_pictures(config: dict) -> dict:
    """A Qwen model as mlx-lm's class of models with pictures, which has none here.

    That class places its attention by an interval: ours, the last layer alone, is that of all layers. It adds 1 to the
    weights of norms, as transformers does, where the taps of convolutions stand last; of one tap it cannot tell that.
    """
    if config["linear_conv_kernel_dim"] == 1:
        raise ExportError(f"linear_conv_kernel_dim is 1, and {READER} then takes the weights of norms for others.")
    return config | {"model_type": "qwen3_5", "full_attention_interval": config["num_hidden_layers"]}


def write(package: Package, path: Path, overwrite: bool) -> None:
    """The directory; ExportError, with the reason, for what mlx-lm would not compute exactly."""
    need_tokens(package, "mlx")
    config = dict(package.model.config)
    need(config, READER, n_groups=1, layer_norm_epsilon=NORM_EPSILON, hidden_act="silu", use_bias=False)
    warnings: tuple[str, ...] = _WARNINGS
    if config["model_type"] == "qwen3_5_text":
        config, warnings = _without_pictures(config), (*_WARNINGS, _OWN_WORDS)
    weights = _split_convolutions(config, package.model.tensors)
    dtype = format_of(package.manifest["dtype"]).torch_dtype
    tensors = {name: tensor.to(dtype) for name, tensor in weights.items()}
    for name, tensor in weights.items():
        if not torch.equal(tensors[name].float(), tensor):
            raise ExportError(f"{name} has a weight that {package.manifest['dtype']} does not hold.")
    content = record(package, "mlx", warnings)

    def fill(place: Path) -> None:
        write_text(place / CONFIG, canonical_json(config))
        write_tensors(tensors, place / WEIGHTS, {"format": "pt"})
        for name, text in tokenizer_texts(package).items():
            write_text(place / name, text)

    write_directory(path, overwrite, content, card(package, content, _USE), fill)
