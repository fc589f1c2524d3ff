"""The models whose equations the checker knows: what their config.json says, and the shapes of their tensors."""

from __future__ import annotations

from verify.checker import delta_family
from verify.checker.configs import HARMLESS, check_entries, check_sizes
from verify.checker.formats import Rejected

# Keys that change what the module computes must have these values; sizes are checked against the tensors.
_FIXED = {
    "hidden_act": "silu",
    "pad_vocab_size_multiple": 1,
    "residual_in_fp32": True,
    "tie_word_embeddings": False,
    "use_bias": False,
    "use_conv_bias": True,
}
_SIZES = ("conv_kernel", "hidden_size", "intermediate_size", "num_hidden_layers", "state_size", "vocab_size", "expand")
_MAMBA2_SIZES = ("chunk_size", "head_dim", "n_groups", "num_heads")
MOST_CHUNK = 256  # what the library itself takes; its scan holds the square of it for every head and column
_CLASSES = {"mamba": "MambaForCausalLM", "mamba2": "Mamba2ForCausalLM"}
_KNOWN = ", ".join(map(repr, (*_CLASSES, *delta_family.CLASSES)))


def check_config(config: dict, dtype: str) -> dict:
    """The config, of a model whose equations this checker knows."""
    kind = config.get("model_type")
    if isinstance(kind, str) and kind in delta_family.CLASSES:
        return delta_family.check_config(config, dtype)
    if not isinstance(kind, str) or kind not in _CLASSES or config.get("architectures") != [_CLASSES.get(kind)]:
        raise Rejected(
            f"the config has model_type {kind!r:.60}, expected one of {_KNOWN} and its causal language model"
        )
    sizes = _SIZES + (_MAMBA2_SIZES if kind == "mamba2" else ("time_step_rank",))
    check_sizes(config, sizes)
    expected = _FIXED | {"dtype": dtype, "intermediate_size": config["expand"] * config["hidden_size"]}
    rank = config.get("time_step_rank", "auto")
    if rank != "auto" and type(rank) is not int:
        raise Rejected(f"the config has time_step_rank = {rank!r:.60}, expected an integer or 'auto'")
    if kind == "mamba2":
        if config["chunk_size"] > MOST_CHUNK:
            told = "the library's scan takes memory with the square of it, also for one letter"
            raise Rejected(f"the config has chunk_size = {config['chunk_size']}, and {MOST_CHUNK} is the most: {told}")
        expected |= {"num_heads": config["intermediate_size"] // config["head_dim"]}
        if config["intermediate_size"] % (config["head_dim"] * config["n_groups"]):
            told = f"head_dim = {config['head_dim']} in {config['n_groups']} groups"
            raise Rejected(f"{told} does not divide {config['intermediate_size']}")
    known = {*sizes, "architectures", "time_step_rank"} | ({"time_step_limit"} if kind == "mamba2" else set())
    check_entries(config, expected, "layer_norm_epsilon", HARMLESS, known)
    return config


def shapes(config: dict) -> dict[str, tuple[int, ...]]:
    """The shape of every tensor that the class has."""
    if config["model_type"] in delta_family.CLASSES:
        return delta_family.shapes(config)
    d, inner, n = config["hidden_size"], config["intermediate_size"], config["state_size"]
    found = {
        "backbone.embeddings.weight": (config["vocab_size"], d),
        "backbone.norm_f.weight": (d,),
        "lm_head.weight": (config["vocab_size"], d),
    }
    if config["model_type"] == "mamba":
        rank = config["time_step_rank"]
        mixer = {
            "in_proj.weight": (2 * inner, d),
            "conv1d.weight": (inner, 1, config["conv_kernel"]),
            "conv1d.bias": (inner,),
            "x_proj.weight": (rank + 2 * n, inner),
            "dt_proj.weight": (inner, rank),
            "dt_proj.bias": (inner,),
            "A_log": (inner, n),
            "D": (inner,),
        }
    else:
        heads, conv = config["num_heads"], inner + 2 * config["n_groups"] * n
        mixer = {
            "in_proj.weight": (inner + conv + heads, d),
            "conv1d.weight": (conv, 1, config["conv_kernel"]),
            "conv1d.bias": (conv,),
            "dt_bias": (heads,),
            "A_log": (heads,),
            "D": (heads,),
            "norm.weight": (inner,),
        }
    mixer["out_proj.weight"] = (d, inner)
    if config["num_hidden_layers"] > 1 << 12:
        raise Rejected(f"num_hidden_layers is {config['num_hidden_layers']}, more than {1 << 12}")
    for i in range(config["num_hidden_layers"]):
        found[f"backbone.layers.{i}.norm.weight"] = (d,)
        found |= {f"backbone.layers.{i}.mixer.{name}": shape for name, shape in mixer.items()}
    return found
