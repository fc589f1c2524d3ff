"""Hand-written config.json contents for Hugging Face Mamba and Mamba-2 language models.

Written by hand because the defaults are traps for hand-built weights: a Hugging Face config without explicit ids
stops `generate()` at our token 0, the default `time_step_limit` cannot be read back by older versions, and
`tie_word_embeddings` defaults to true for one family and to false for the other. `bos_token_id` is null: nothing
may put a token in front of a circuit's input (left out, it would be 0, a letter). The vocabulary passed in
includes the special tokens, which are its last ids; `end` is the id of the letter that ends a generation, if one does.
"""

from collections.abc import Mapping

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import same_json, shown
from compiler.artifact.numbers_config import check_numbers_config, is_numbers
from compiler.artifact.tokenizer import special_ids
from compiler.formats import FORMATS

# Upper limits of Mamba-2's steps that act like infinity and are plain JSON, which all versions read. The first is
# held by every dtype (clamping float16 steps at more raises an error), the second is beyond every float32 step of ours.
NO_STEP_LIMIT, NO_LARGE_STEP_LIMIT = 65504.0, 1e30


LARGEST_SIZE = 1 << 31
LARGEST_CHUNK = 1 << 14  # programs pad every sequence to a multiple of chunk_size
# Entries of a config that change nothing that is computed or written, and why.
HARMLESS = {"transformers_version": "a note of the version that wrote the file"}


def mamba_config(
    *,
    vocab: int,
    d_model: int,
    d_state: int,
    dt_rank: int,
    layers: int,
    d_conv: int = 4,
    expand: int = 2,
    end: int | None = None,
) -> dict:
    """config.json of a `MambaForCausalLM`; raises CheckpointError for a size that is not a positive integer.

    `expand=2` is the only value that llama.cpp reads.
    """
    return _common("mamba", "MambaForCausalLM", vocab, d_model, d_state, layers, d_conv, expand, end) | {
        "time_step_rank": _size("dt_rank", dt_rank),
    }


def mamba2_config(
    *,
    vocab: int,
    d_model: int,
    d_state: int,
    head_dim: int,
    layers: int,
    d_conv: int = 4,
    expand: int = 2,
    chunk_size: int = 256,
    end: int | None = None,
    largest_step: float = 0.0,
) -> dict:
    """config.json of a `Mamba2ForCausalLM` with one group of B and C; `largest_step` bounds every Δ of the weights.

    Raises CheckpointError for a size that is not a positive integer or a `head_dim` that does not divide
    expand · d_model.
    """
    config = _common("mamba2", "Mamba2ForCausalLM", vocab, d_model, d_state, layers, d_conv, expand, end)
    heads, rest = divmod(config["intermediate_size"], _size("head_dim", head_dim))
    if rest:
        raise CheckpointError(f"head_dim {head_dim} does not divide expand * d_model = {expand * d_model}.")
    return config | {
        "chunk_size": _size("chunk_size", chunk_size),
        "head_dim": head_dim,
        "n_groups": 1,
        "num_heads": heads,
        "time_step_limit": [0.0, NO_STEP_LIMIT if largest_step < NO_STEP_LIMIT else NO_LARGE_STEP_LIMIT],
        "time_step_rank": -(-d_model // 16),  # read into the config by Hugging Face, used by nothing in Mamba-2
    }


def check_config(config: Mapping) -> None:
    """Raise CheckpointError unless this is a config that one of the functions above returns, and nothing else.

    Any other entry could change what programs compute or write (`quantization_config`, `auto_map`, …).
    """
    if not isinstance(config, Mapping):
        raise CheckpointError(f"the config is {shown(config)}, expected an object.")
    if is_numbers(config):
        return check_numbers_config(config)
    try:
        expected = _same_sizes(config)
    except KeyError as missing:
        raise CheckpointError(f"the config has no entry {missing}.") from missing
    for key, value in expected.items():
        found = config.get(key)
        if not same_json(found, value) and not (key == "dtype" and isinstance(found, str) and found in FORMATS):
            raise CheckpointError(f"the config has {key} = {shown(found)}, expected {value!r}.")
    for key in config:
        if key not in expected and key not in HARMLESS:
            raise CheckpointError(f"the config has an entry {shown(key)} that no checkpoint of ours has.")


def cuda_limits(config: Mapping) -> list[str]:
    """Sentences on what keeps this checkpoint from the CUDA kernels of mamba_ssm and causal_conv1d; [] if nothing.

    CPU runtimes have none of these limits.
    """
    if is_numbers(config):
        mamba2 = config["mixer"] == "mamba2"
        found = [
            sentence
            for b in config["blocks"]
            for sentence in _kernel_limits(
                b["d_conv"], b["d_state"], b["d_inner"] + (2 * b["d_state"] if mamba2 else 0)
            )
        ]
        return list(dict.fromkeys(found))
    return _kernel_limits(config["conv_kernel"], config["state_size"], _convolved_channels(config))


def _kernel_limits(taps: int, states: int, channels: int) -> list[str]:
    reasons = [
        (not 2 <= taps <= 4, f"conv_kernel is {taps}, the kernels take 2 to 4."),
        (states > 256, f"state_size is {states}, the kernels take at most 256."),
        (channels % 8 != 0, f"there are {channels} convolved channels, the kernels want a multiple of 8."),
    ]
    return [sentence for applies, sentence in reasons if applies]


def _same_sizes(config: Mapping) -> dict:
    """The config that we would write for the sizes of this one."""
    sizes = {
        "vocab": config["vocab_size"],
        "d_model": config["hidden_size"],
        "d_state": config["state_size"],
        "layers": config["num_hidden_layers"],
        "d_conv": config["conv_kernel"],
        "expand": config["expand"],
        "end": _end(config),
    }
    if config["model_type"] == "mamba":
        return mamba_config(dt_rank=config["time_step_rank"], **sizes)
    if config["model_type"] == "mamba2":
        step = NO_STEP_LIMIT if config["time_step_limit"] == [0.0, NO_LARGE_STEP_LIMIT] else 0.0
        chunk = _size("chunk_size", config["chunk_size"])
        if chunk > LARGEST_CHUNK:
            raise CheckpointError(f"chunk_size must be at most {LARGEST_CHUNK}, not {chunk}.")
        return mamba2_config(head_dim=config["head_dim"], chunk_size=chunk, largest_step=step, **sizes)
    raise CheckpointError(f"the config has model_type {shown(config['model_type'])}, expected 'mamba' or 'mamba2'.")


def _end(config: Mapping) -> int | None:
    """The letter that ends a generation, by a config's ids; None where the special token does."""
    vocab, eos = _size("vocab", config["vocab_size"]), config["eos_token_id"]
    if type(eos) is not int:
        raise CheckpointError(f"the config has eos_token_id = {shown(eos)}, expected an integer.")
    return None if eos == vocab - 3 else eos


def _common(
    model_type: str,
    architecture: str,
    vocab: int,
    d_model: int,
    d_state: int,
    layers: int,
    d_conv: int,
    expand: int,
    end: int | None,
) -> dict:
    ids = special_ids(_size("vocab", vocab), end)
    return {
        "architectures": [architecture],
        "bos_token_id": None,
        "conv_kernel": _size("d_conv", d_conv),
        "dtype": "float32",
        "eos_token_id": ids["eos"],
        "expand": _size("expand", expand),
        "hidden_act": "silu",
        "hidden_size": _size("d_model", d_model),
        "intermediate_size": expand * d_model,
        "layer_norm_epsilon": 1e-5,
        "model_type": model_type,
        "num_hidden_layers": _size("layers", layers),
        "pad_token_id": ids["pad"],
        "pad_vocab_size_multiple": 1,
        "residual_in_fp32": True,
        "state_size": _size("d_state", d_state),
        "tie_word_embeddings": False,
        "use_bias": False,
        "use_cache": True,
        "use_conv_bias": True,
        "vocab_size": vocab,
    }


def _size(name: str, value: int) -> int:
    if type(value) is not int or value < 1:
        raise CheckpointError(f"{name} must be a positive integer, not {shown(value)}.")
    if value > LARGEST_SIZE:
        raise CheckpointError(f"{name} must be at most {LARGEST_SIZE}, not {shown(value)}.")
    return value


def _convolved_channels(config: Mapping) -> int:
    states = 2 * config["n_groups"] * config["state_size"] if config["model_type"] == "mamba2" else 0
    return config["intermediate_size"] + states
