"""GGUF, which llama.cpp and what is built on it read: one file with weights, vocabulary and record.

All tensors are float32, as are llama.cpp's activations and states. The vocabulary is of kind "t5": words between white
space, one token each, with the text of a token as Hugging Face's tokenizer has it. llama.cpp takes a Mamba only where
d_inner = 2 · d_model; others are padded (`expand.py`), which changes no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from compiler.artifact.artifact import compiler_version
from compiler.artifact.tokenizer import UNK, special_tokens
from compiler.export.checkpoint import Package
from compiler.export.directory import write_file
from compiler.export.expand import expanded_by_two
from compiler.export.record import (
    ExportError,
    description,
    need,
    need_float32,
    need_mamba,
    need_tokens,
    record,
    record_text,
)
from compiler.export.steps import unsafe_step
from compiler.targets.family import EMBEDDING, FINAL_NORM, HEAD, mixer_prefix, norm_name

if TYPE_CHECKING:
    from gguf import GGUFWriter

READER = "llama.cpp"
RECORD = "construction.export"  # the key of the record, as JSON
_MARK = "construction.format"
_SPACE = "\u2581"  # what a word begins with in such a vocabulary
_LONGEST = (1 << 31) - 1
_NORMAL, _UNKNOWN, _CONTROL = 1, 2, 3
_WARNINGS = (
    "Keep it in float32: F16 or quantised copies round the weights, and their activations with them.",
    "Separate words by spaces; a line break is no white space to llama.cpp's tokenizer.",
    "Sample greedily, without a penalty on repetition: temperature 0, repeat_penalty 1.",
    "Checked on llama.cpp's CPU code; its GPU code may compute products in less than float32.",
)


def write(package: Package, path: Path, overwrite: bool) -> None:
    """One .gguf file; ExportError, with the reason, for what llama.cpp would not compute exactly."""
    _check(package)
    gguf = _library()

    def fill(place: Path) -> None:
        config, tensors = expanded_by_two(package.model.config, package.model.tensors)
        writer = gguf.GGUFWriter(place, config["model_type"])
        _describe(writer, package)
        _sizes(writer, config, package.manifest["promise"]["length"])
        _vocabulary(writer, package.model.tokens, config, package.manifest["promise"]["stop"])
        for name, tensor in _tensors(config, tensors).items():
            writer.add_tensor(name, tensor.contiguous().numpy())
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    write_file(path, overwrite, is_ours, fill)


def is_ours(path: Path) -> bool:
    """Whether a file is an export of ours, by the keys at its beginning."""
    with path.open("rb") as file:
        start = file.read(4096)
    return start.startswith(b"GGUF") and _MARK.encode() in start


def _library() -> Any:
    try:
        import gguf
    except ImportError as missing:
        raise ExportError("the package gguf writes this format, and it is missing: pip install gguf.") from missing
    return gguf


def _check(package: Package) -> None:
    need_tokens(package, "gguf")
    need_mamba(package, READER)
    need_float32(package, READER)
    need(package.model.config, READER, use_bias=False, hidden_act="silu", tie_word_embeddings=False)
    odd = next((token for token in package.model.tokens if _SPACE in token), None)
    if odd is not None:
        raise ExportError(f"the token {odd!r} has the character {_SPACE!r}, which stands for a space in this format.")
    step = unsafe_step(package)
    if step is not None:
        raise ExportError(
            f"a step is softplus({step:g}), and {READER} computes softplus as log(1 + exp(x)), which is inexact up to "
            "20; this circuit has real steps, and no form of it is exact there."
        )


def _describe(writer: GGUFWriter, package: Package) -> None:
    content = record(package, "gguf", _WARNINGS)
    writer.add_string(_MARK, content["format"])
    writer.add_string("construction.compiler", compiler_version())
    writer.add_name(content["circuit"])
    writer.add_description(description(package, RECORD))
    writer.add_string(RECORD, record_text(content))


def _sizes(writer: GGUFWriter, config: Mapping[str, Any], length: int | None) -> None:
    second = config["model_type"] == "mamba2"
    writer.add_context_length(_LONGEST if length is None else min(length, _LONGEST))
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_layer_norm_rms_eps(config["layer_norm_epsilon"])
    writer.add_ssm_conv_kernel(config["conv_kernel"])
    writer.add_ssm_inner_size(config["intermediate_size"])
    writer.add_ssm_state_size(config["state_size"])
    writer.add_ssm_time_step_rank(config["num_heads"] if second else config["time_step_rank"])
    if second:
        writer.add_ssm_group_count(config["n_groups"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(0)  # all float32


def _vocabulary(writer: GGUFWriter, tokens: list[str], config: Mapping[str, Any], stop: str | None) -> None:
    """Unigrams: a word is one token or unknown, for no token but specials lacks the space before it."""
    specials = set(special_tokens(stop))
    kinds = [_UNKNOWN if token == UNK else _CONTROL if token in specials else _NORMAL for token in tokens]
    writer.add_tokenizer_model("t5")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([token if token in specials else _SPACE + token for token in tokens])
    writer.add_token_scores([0.0 if token in specials else -1.0 for token in tokens])
    writer.add_token_types(kinds)
    writer.add_add_space_prefix(True)
    writer.add_remove_extra_whitespaces(True)
    writer.add_add_bos_token(False)
    writer.add_add_eos_token(False)
    writer.add_bos_token_id(config["eos_token_id"])  # left out, another id would be taken; none is put in front
    writer.add_eos_token_id(config["eos_token_id"])
    writer.add_pad_token_id(config["pad_token_id"])
    writer.add_unk_token_id(tokens.index(UNK))


def _tensors(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """llama.cpp's names; A = −exp(A_log) as Hugging Face computes it."""
    found = {
        "token_embd.weight": tensors[EMBEDDING],
        "output_norm.weight": tensors[FINAL_NORM],
        "output.weight": tensors[HEAD],
    }
    mixer = _mamba2 if config["model_type"] == "mamba2" else _mamba
    for i in range(config["num_hidden_layers"]):
        prefix = mixer_prefix(i)
        block = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
        renamed = {
            "attn_norm.weight": tensors[norm_name(i)],
            "ssm_in.weight": block["in_proj.weight"],
            "ssm_conv1d.weight": block["conv1d.weight"][:, 0],
            "ssm_conv1d.bias": block["conv1d.bias"],
            "ssm_out.weight": block["out_proj.weight"],
            **mixer(config, block),
        }
        found |= {f"blk.{i}.{name}": tensor for name, tensor in renamed.items()}
    return found


def _mamba(config: Mapping[str, Any], block: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {
        "ssm_x.weight": block["x_proj.weight"],
        "ssm_dt.weight": block["dt_proj.weight"],
        "ssm_dt.bias": block["dt_proj.bias"],
        "ssm_a": -torch.exp(block["A_log"]),
        "ssm_d": block["D"],
    }


def _mamba2(config: Mapping[str, Any], block: Mapping[str, Tensor]) -> dict[str, Tensor]:
    groups = config["n_groups"]
    return {
        "ssm_dt.bias": block["dt_bias"],
        "ssm_a": -torch.exp(block["A_log"])[:, None],
        "ssm_d": block["D"][:, None],
        "ssm_norm.weight": block["norm.weight"].reshape(groups, -1),
    }
