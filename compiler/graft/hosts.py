"""Hosts: the language models that a circuit can be put into, brought into one form.

A host is a model of transformers of one of the host families (`compiler.graft.families`): given as such, as a directory
of one, or as a `MambaLMHeadModel` of mamba_ssm (or its directory), which computes the same and is renamed into it. What
a direct sum cannot hold is refused by name: see `refused`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from compiler.artifact.errors import CheckpointError, first_line
from compiler.artifact.json_files import shown
from compiler.artifact.plain_files import text_of
from compiler.graft.errors import GraftError
from compiler.graft.families import class_names, family_of, family_of_class
from compiler.graft.families.family import BRANCH
from compiler.runtime.saved_model import saved_model

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LEAST_EPSILON = 2.0**-80  # divided by D/d <= 2^20 it is far above what a mean square may lose below 2^-126
DTYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


def read_host(host: object) -> PreTrainedModel:
    """The host as a model of transformers; GraftError, one sentence, where a direct sum cannot hold it."""
    if isinstance(host, (str, Path)):
        host = _from_directory(Path(host))
    model: Any = host
    if type(model).__name__ == "MambaLMHeadModel":
        model = _from_mamba_ssm(dict(vars(model.config)), model.state_dict())
    reason = refused(model)
    if reason is not None:
        raise GraftError(f"the host is {type(host).__name__}: {reason}.")
    check_runs(model)
    return model


def refused(host: object) -> str | None:
    """Why a direct sum cannot hold this host, or None."""
    name = type(host).__name__
    config: Any = getattr(host, "config", None)
    if not isinstance(host, nn.Module):
        return f"it is no module; give a {', a '.join(class_names())}, a MambaLMHeadModel or a directory of one"
    family = family_of_class(name)
    if family is None:
        return f"a direct sum is for {', '.join(class_names())} and MambaLMHeadModel" + _branch_for(
            getattr(config, "model_type", None)
        )
    dtypes = {p.dtype for p in host.parameters()}
    if len(dtypes) > 1 or not dtypes <= set(DTYPES):
        told = " and ".join(sorted(str(d).removeprefix("torch.") for d in dtypes))
        return f"its weights are {told}, and they must all be float32 or all bfloat16; convert it with .float()"
    if any(p.is_meta for p in host.parameters()):
        return "some of its weights have no values (meta device); load it without device_map"
    broken = next((name for name, p in host.named_parameters() if not torch.isfinite(p).all()), None)
    if broken is not None:
        return f"its weight {broken} holds an infinity or a NaN; all weights must be finite numbers"
    if config.hidden_act not in ("silu", "swish"):
        return f"its activation is {config.hidden_act}, and circuits are exact under silu; {BRANCH}"
    for name in family.epsilons:
        epsilon = getattr(config, name)
        if not isinstance(epsilon, float | int) or not LEAST_EPSILON <= epsilon <= 1:
            return f"its {name} is {shown(epsilon)}, and a number from {LEAST_EPSILON:.3g} to 1 is needed"
    expand = getattr(config, "expand", 1)  # hosts with the delta rule have none
    if expand < 1 or int(expand) != expand:
        return f"its expand is {expand}, and a whole number of at least 1 is needed; {BRANCH}"
    inner = expand * config.hidden_size
    if hasattr(config, "expand") and getattr(config, "intermediate_size", inner) != inner:
        return f"its expand is {expand}, and its {config.intermediate_size} channels are not that times its width"
    return family.refused(config)


def _branch_for(kind: object) -> str:
    """The advice of a side branch, where transformers has a language model of this kind that could take one."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    return f"; {BRANCH}" if kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES else ""


def check_runs(model: Any) -> None:
    """GraftError for a host that cannot be run at all, as by sizes in its configuration that cannot be."""
    try:
        with torch.no_grad():
            model(torch.zeros((1, 1), dtype=torch.int64, device=model.device))
    except Exception as reason:  # whatever a configuration makes the libraries raise
        told = first_line(reason).rstrip(".")
        raise GraftError(f"the host is {type(model).__name__}: it cannot be run ({told}).") from reason


# Other forms of the same models --------------------------------------------------------------------


def _from_directory(directory: Path) -> object:
    if not directory.is_dir():
        raise GraftError(f"there is no directory {directory}; the host is a saved model or a model object.")
    config = _config(directory)
    if "ssm_cfg" in config or ("d_model" in config and "model_type" not in config):
        weights = directory / "pytorch_model.bin"
        if not weights.is_file():
            raise GraftError(f"{weights} is missing from the host.")
        try:
            return _from_mamba_ssm(config, torch.load(weights, map_location="cpu", weights_only=True))
        except GraftError:
            raise
        except Exception as reason:  # whatever a file that is no such model makes PyTorch raise
            raise GraftError(f"{weights} holds no MambaLMHeadModel of its config: {first_line(reason)}") from reason
    kind = config.get("model_type")
    if family_of(kind) is None:
        told = ", ".join(class_names())
        raise GraftError(f"{directory} holds a {shown(kind)}, and a direct sum is for {told}{_branch_for(kind)}.")
    return opened(directory)


def opened(directory: Path) -> PreTrainedModel:
    """The model of a directory by transformers, without code from there; GraftError where it cannot be read whole."""
    try:
        return saved_model(directory, "auto")
    except CheckpointError as reason:
        raise GraftError(str(reason)) from reason


def tokenizer_of(directory: Path) -> Any:
    """The tokenizer of a directory, without code from there; GraftError where it cannot be read."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(directory)
    except Exception as reason:  # as above
        raise GraftError(f"{directory} holds a tokenizer that cannot be read: {first_line(reason)}") from reason


def _config(directory: Path) -> dict[str, Any]:
    try:
        content = json.loads(text_of(directory / "config.json"))
    except (OSError, ValueError, RecursionError) as reason:
        raise GraftError(f"{directory} holds no config.json that can be read, so it is no host.") from reason
    if not isinstance(content, dict):
        raise GraftError(f"the config.json of {directory} is {shown(content)}, and it must be an object.")
    return content


def _from_mamba_ssm(config: dict[str, Any], tensors: dict[str, torch.Tensor]) -> PreTrainedModel:
    """The same model by transformers; GraftError for options of mamba_ssm that transformers does not compute."""
    ssm = dict(config.get("ssm_cfg") or {})
    layer = ssm.pop("layer", "Mamba1")
    wrong = [
        (layer not in ("Mamba1", "Mamba2"), f"layers of kind {layer}"),
        (bool(config.get("attn_layer_idx")), "attention layers"),
        (config.get("d_intermediate", 0) != 0, "MLPs between its layers"),
        (not config.get("rms_norm", True), "LayerNorm in place of RMSNorm"),
        (ssm.get("norm_before_gate", False), "a norm before the gate"),
        (not ssm.get("rmsnorm", True), "no norm inside of its mixers"),
        (ssm.get("D_has_hdim", False), "a D for each channel of a head"),
        (ssm.get("d_ssm") is not None, "channels beside its SSM"),
    ]
    for applies, what in wrong:
        if applies:
            raise GraftError(f"the host is a MambaLMHeadModel with {what}, which transformers has no class for.")
    from transformers import AutoConfig, AutoModelForCausalLM

    named = {_renamed(name): tensor for name, tensor in tensors.items()}
    arguments = _sizes(named, config, layer, ssm)
    made = AutoConfig.for_model("mamba" if layer == "Mamba1" else "mamba2", **arguments)
    dtype = named["backbone.embeddings.weight"].dtype
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(made)
    named = {name: tensor.to(dtype) for name, tensor in named.items()}
    model.load_state_dict(named, assign=True)
    model.tie_weights()
    return model.eval()


def _renamed(name: str) -> str:
    return name.replace("backbone.embedding.weight", "backbone.embeddings.weight")


def _sizes(tensors: dict[str, torch.Tensor], config: dict[str, Any], layer: str, ssm: dict[str, Any]) -> dict[str, Any]:
    """transformers' arguments, from the tensors where they tell."""
    vocab, d_model = tensors["backbone.embeddings.weight"].shape
    first = "backbone.layers.0.mixer."
    shapes = {name.removeprefix(first): t.shape for name, t in tensors.items() if name.startswith(first)}
    inner = shapes["out_proj.weight"][1]
    common = {
        "vocab_size": vocab,
        "hidden_size": d_model,
        "num_hidden_layers": len({n.split(".")[2] for n in tensors if n.startswith("backbone.layers.")}),
        "conv_kernel": shapes["conv1d.weight"][2],
        "expand": inner // d_model,
        "use_conv_bias": "conv1d.bias" in shapes,
        "use_bias": "in_proj.bias" in shapes,
        "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": bool(config.get("tie_embeddings", True)),
        "residual_in_fp32": bool(config.get("residual_in_fp32", True)),
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    if layer == "Mamba1":
        return common | {"state_size": shapes["A_log"][1], "time_step_rank": shapes["dt_proj.weight"][1]}
    heads = shapes["A_log"][0]
    groups = ssm.get("ngroups", 1)
    state = (shapes["conv1d.weight"][0] - inner) // (2 * groups)
    sizes = {"num_heads": heads, "head_dim": inner // heads, "n_groups": groups, "state_size": state}
    limit = tuple(ssm.get("dt_limit", (0.0, float("inf"))))
    return common | sizes | {"chunk_size": ssm.get("chunk_size", 256), "time_step_limit": limit}
