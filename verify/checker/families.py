"""The models whose equations the checker knows: what their config.json says, and the shapes of their tensors."""

from __future__ import annotations

from verify.checker import delta_family
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
# Keys that change nothing here, and the types that transformers gives them.
_HARMLESS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"), (int, list, type(None))),
    "use_cache": (bool,),
    "time_step_rank": (int, str),
    "transformers_version": (str,),
}
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
    for key in sizes:
        if type(config.get(key)) is not int or not 1 <= config[key] <= 1 << 24:
            raise Rejected(f"the config has {key} = {config.get(key)!r:.60}, expected an integer from 1 to {1 << 24}")
    expected = _FIXED | {"dtype": dtype, "intermediate_size": config["expand"] * config["hidden_size"]}
    if kind == "mamba2":
        expected |= {"num_heads": config["intermediate_size"] // config["head_dim"]}
        if config["intermediate_size"] % (config["head_dim"] * config["n_groups"]):
            told = f"head_dim = {config['head_dim']} in {config['n_groups']} groups"
            raise Rejected(f"{told} does not divide {config['intermediate_size']}")
    for key, value in expected.items():
        if type(config.get(key)) is not type(value) or config[key] != value:
            raise Rejected(f"the config has {key} = {config.get(key)!r:.60}, expected {value!r}")
    if type(config.get("layer_norm_epsilon")) is not float or not 0 < config["layer_norm_epsilon"] < 1:
        raise Rejected(f"the config has layer_norm_epsilon = {config.get('layer_norm_epsilon')!r:.60}")
    for key, kinds in _HARMLESS.items():
        if key in config and type(config[key]) not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise Rejected(f"the config has {key} = {config[key]!r:.60}, expected a value of type {names}")
    known = {*expected, *sizes, *_HARMLESS, "architectures", "model_type", "layer_norm_epsilon"}
    unknown = sorted(set(config) - known - ({"time_step_limit"} if kind == "mamba2" else set()))
    if unknown:
        raise Rejected(f"the config has an entry {unknown[0]!r:.60} that the checker does not know")
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
