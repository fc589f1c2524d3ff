"""A directory for `MambaLMHeadModel.from_pretrained` of mamba_ssm whose layers are a mixer and a gated MLP.

Its config has `d_intermediate`; each layer is h ← h + mixer(norm(h)), then h ← h + mlp(norm2(h)). A block that is a
function of one position goes into the MLP behind the block before it, so that a circuit takes as few as half of the
layers. Exactness: the MLP computes the very numbers that the block would (`compiler.ir.feed_forward`): silu at the same
pre-activations, times a power of two, and the same sums; its norm carries the same ballast, and so is the identity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse

from compiler.analysis.affine_form import ONE
from compiler.artifact.files import CIRCUIT
from compiler.artifact.json_files import canonical_json
from compiler.artifact.package import LanguageModel, language_model
from compiler.artifact.save import write_text
from compiler.compiled import Compiled
from compiler.errors import CompileError
from compiler.export.checkpoint import Package
from compiler.export.common import tokenizer_texts
from compiler.export.directory import write_directory
from compiler.export.mamba_ssm import CONFIG, WEIGHTS, own_config, own_name, use, write_pickled
from compiler.export.record import card, need_float32, need_mamba, need_tokens, record
from compiler.ir.block import SelectiveBlock
from compiler.ir.feed_forward import FeedForward, feed_forward_of
from compiler.language.data import to_data
from compiler.targets.family import norm_name
from compiler.targets.tensors import exact_float32

KIND = "mamba-ssm-mlp"
WIDTHS = 128  # mamba_ssm's GatedMLP rounds its width up to multiples of this


@dataclass(frozen=True, eq=False)
class GatedLanguageModel:
    """config: mamba_ssm's; tensors: by its names; layers: (block, MLP or None) each; plain: the model of the blocks."""

    config: dict[str, Any]
    tensors: dict[str, torch.Tensor]
    layers: tuple[tuple[SelectiveBlock, FeedForward | None], ...]
    plain: LanguageModel


def write(package: Package, path: Path, overwrite: bool) -> None:
    """The directory; ExportError for what would not be exact there, CompileError for a circuit without an MLP."""
    need_tokens(package, KIND)
    need_mamba(package, "the MLP of mamba_ssm")
    need_float32(package, "the MLP of mamba_ssm")
    model = gated_language_model(package.compiled)
    content, texts = contents(package, model)

    def fill(place: Path) -> None:
        write_pickled(model.tensors, place / WEIGHTS)
        for name, text in texts.items():
            write_text(place / name, text)

    write_directory(path, overwrite, content, card(package, content, use(package.manifest["dtype"])), fill)


def contents(package: Package, model: GatedLanguageModel) -> tuple[dict[str, Any], dict[str, str]]:
    """(the record, every text file by its name): all that stands beside the weights.

    circuit.json, max_d_state and n_groups are there so that the circuit can be compiled again, from these files alone.
    """
    manifest: Mapping[str, Any] = package.manifest
    limits = tuple(f"Not for its CUDA kernels: {sentence}" for sentence in manifest["cuda_limits"])
    kept = f"Only mamba_ssm has such layers: {len(model.layers)} mixers, each before a gated MLP."
    asked = {"max_d_state": package.compiled.max_d_state, "n_groups": package.compiled.context.target.n_groups}
    content = record(package, KIND, (kept, *limits)) | asked
    texts = {CONFIG: canonical_json(model.config), CIRCUIT: canonical_json(to_data(package.compiled.source))}
    return content, texts | tokenizer_texts(package)


def gated_language_model(compiled: Compiled) -> GatedLanguageModel:
    """The circuit in layers of a mixer and a gated MLP; CompileError where no block of it is a gated MLP."""
    layers = paired(compiled)
    if not any(mlp for _, mlp in layers):
        raise CompileError([(None, "no block of this circuit is a function of one position behind another block")])
    plain = language_model(replace(compiled, blocks=tuple(block for block, _ in layers)))
    width = plain.config["hidden_size"]
    hidden = max(len(mlp.coordinates) for _, mlp in layers if mlp)
    hidden = -(-hidden // WIDTHS) * WIDTHS
    tensors = {own_name(name): tensor.contiguous() for name, tensor in plain.tensors.items()}
    for i, (_, mlp) in enumerate(layers):
        prefix = f"backbone.layers.{i}."
        tensors[f"{prefix}norm2.weight"] = plain.tensors[norm_name(i)].clone()
        for name, tensor in _tensors(mlp, hidden, width, plain.lane_of).items():
            tensors[f"{prefix}mlp.{name}"] = tensor
    config = own_config(plain.config) | {"d_intermediate": hidden}
    return GatedLanguageModel(config, dict(sorted(tensors.items())), tuple(layers), plain)


def paired(compiled: Compiled) -> list[tuple[SelectiveBlock, FeedForward | None]]:
    """Each block with the one behind it, where that is a gated MLP."""
    one = int(compiled.lanes.index[ONE][0]) if ONE in compiled.lanes.index else None
    layers: list[tuple[SelectiveBlock, FeedForward | None]] = []
    blocks: Sequence[SelectiveBlock] = compiled.blocks
    at = 0
    while at < len(blocks):
        mlp = feed_forward_of(blocks[at + 1], one) if at + 1 < len(blocks) else None
        layers.append((blocks[at], mlp))
        at += 1 if mlp is None else 2
    return layers


def _tensors(mlp: FeedForward | None, hidden: int, width: int, lane_of: np.ndarray) -> dict[str, torch.Tensor]:
    """fc1 (2·hidden × width), values above gates, and fc2 (width × hidden); zeros where nothing stands."""
    fc1, fc2 = np.zeros((2 * hidden, width)), np.zeros((width, hidden))
    if mlp is not None:
        for start, part in ((0, mlp.value), (hidden, mlp.gate)):
            coo = sparse.coo_array(part)
            fc1[start + coo.row, lane_of[coo.col]] = coo.data
        coo = sparse.coo_array(mlp.out)
        fc2[lane_of[coo.col], coo.row] = coo.data
    return {
        "fc1.weight": exact_float32(fc1, "fc1.weight"),
        "fc2.weight": exact_float32(fc2, "fc2.weight"),
    }
