"""The two classes of Gated DeltaNets that the checker knows: their config.json, and the shapes of their tensors."""

from __future__ import annotations

from verify.checker.configs import HARMLESS, Kinds, check_entries, check_sizes
from verify.checker.formats import Rejected

Shape = tuple[int, ...]
CLASSES = {"olmo_hybrid": "OlmoHybridForCausalLM", "qwen3_5_text": "Qwen3_5ForCausalLM"}
LARGEST_BETA = {"olmo_hybrid": 2, "qwen3_5_text": 1}
MOST_LAYERS = 1 << 12
_FIXED = {
    "attention_bias": False,
    "hidden_act": "silu",
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "tie_word_embeddings": False,
}
_OWN: dict[str, dict[str, object]] = {
    "olmo_hybrid": {"linear_allow_neg_eigval": True, "rope_parameters": None},
    "qwen3_5_text": {},
}
_SIZES: tuple[str, ...] = (
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "linear_conv_kernel_dim",
    "linear_key_head_dim",
)
_SIZES += ("linear_num_key_heads", "linear_num_value_heads", "linear_value_head_dim", "num_hidden_layers", "vocab_size")
# Entries that change nothing here, for they are of what is silent, or of weights that are drawn. With some values the
# library opens no model, so they stand as it writes them.
_WRITTEN: dict[str, object] = {
    "attention_dropout": 0.0,
    "initializer_range": 0.02,
    "linear_a_log_max": 16.0,
    "linear_a_log_min": 0.0,
    "linear_dt_init_floor": 1e-4,
    "linear_dt_max": 0.1,
    "linear_dt_min": 1e-3,
}
_ROPE = {"partial_rotary_factor": 0.25, "rope_theta": 10000.0, "rope_type": "default"}
_PAD = {"olmo_hybrid": 100277, "qwen3_5_text": None}  # what the library takes where the entry is missing
_HARMLESS: Kinds = {**HARMLESS, "max_position_embeddings": (int,)}


def check_config(config: dict, dtype: str) -> dict:
    """The config of one of these classes, whose last layer alone is one of attention; Rejected for another."""
    kind = config["model_type"]
    expected = {"architectures": [CLASSES[kind]], "dtype": dtype, **_FIXED, **_OWN[kind]}
    check_sizes(config, _SIZES)
    if config["num_hidden_layers"] > MOST_LAYERS:
        raise Rejected(f"num_hidden_layers is {config['num_hidden_layers']}, more than {MOST_LAYERS}")
    expected["layer_types"] = ["linear_attention"] * (config["num_hidden_layers"] - 1) + ["full_attention"]
    expected["linear_num_key_heads"] = config["linear_num_value_heads"]
    expected |= {key: value for key, value in _WRITTEN.items() if key in config}
    if "rope_parameters" in config and "rope_parameters" not in expected:
        expected["rope_parameters"] = _ROPE
    check_entries(config, expected, "rms_norm_eps", _HARMLESS, set(_SIZES))
    if kind == "olmo_hybrid" and config["head_dim"] > 1 and config["head_dim"] % 2:
        raise Rejected(f"head_dim is {config['head_dim']}, and OLMo-Hybrid runs with even ones")
    pad = config.get("pad_token_id", _PAD[kind])
    if pad is not None and not (type(pad) is int and 0 <= pad < config["vocab_size"]):
        raise Rejected(f"pad_token_id is {pad!r:.60}, which the embedding has no row for: the library opens no model")
    return config


def mixers(config: dict) -> int:
    """How many layers follow the delta rule: all but the last."""
    return config["num_hidden_layers"] - 1


def shapes(config: dict) -> dict[str, Shape]:
    """The shape of every tensor of the class."""
    width, vocab = config["hidden_size"], config["vocab_size"]
    found: dict[str, Shape] = {"model.embed_tokens.weight": (vocab, width), "model.norm.weight": (width,)}
    found["lm_head.weight"] = (vocab, width)
    for i in range(mixers(config)):
        found[f"model.layers.{i}.input_layernorm.weight"] = (width,)
        found |= {f"model.layers.{i}.linear_attn.{name}": shape for name, shape in _mixer(config).items()}
    return found | silent(config)


def _mixer(config: dict) -> dict[str, Shape]:
    width, heads = config["hidden_size"], config["linear_num_value_heads"]
    keys, values = heads * config["linear_key_head_dim"], heads * config["linear_value_head_dim"]
    found: dict[str, Shape] = {"A_log": (heads,), "dt_bias": (heads,)}
    found["conv1d.weight"] = (2 * keys + values, 1, config["linear_conv_kernel_dim"])
    if config["model_type"] == "olmo_hybrid":
        rows = {"q": keys, "k": keys, "v": values, "a": heads, "b": heads, "g": values}
        found |= {f"{name}_proj.weight": (count, width) for name, count in rows.items()}
        return found | {"o_proj.weight": (width, values), "o_norm.weight": (config["linear_value_head_dim"],)}
    rows = {"qkv": 2 * keys + values, "z": values, "a": heads, "b": heads}
    found |= {f"in_proj_{name}.weight": (count, width) for name, count in rows.items()}
    return found | {"out_proj.weight": (width, values), "norm.weight": (config["linear_value_head_dim"],)}


def silent(config: dict) -> dict[str, Shape]:
    """The tensors that must be 0: MLPs, the layer of attention, and the norms at them."""
    width, head, inner, last = (
        config[k] for k in ("hidden_size", "head_dim", "intermediate_size", "num_hidden_layers")
    )
    gated = config["model_type"] == "qwen3_5_text"
    attention: dict[str, Shape] = {f"self_attn.{name}_norm.weight": (head,) for name in "qk"}
    attention |= {f"self_attn.{name}_proj.weight": (head, width) for name in "kv"}
    attention |= {
        "self_attn.q_proj.weight": (2 * head if gated else head, width),
        "self_attn.o_proj.weight": (width, head),
    }
    attention["input_layernorm.weight" if gated else "post_feedforward_layernorm.weight"] = (width,)
    found: dict[str, Shape] = {f"model.layers.{last - 1}.{name}": shape for name, shape in attention.items()}
    for i in range(last):
        layer = f"model.layers.{i}."
        found |= {f"{layer}mlp.{name}_proj.weight": (inner, width) for name in ("gate", "up")}
        found |= {f"{layer}mlp.down_proj.weight": (width, inner), f"{layer}post_attention_layernorm.weight": (width,)}
    return found
