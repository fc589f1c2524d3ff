"""What a checkpoint directory holds: its files, and the tensors that a config.json asks for."""

from collections.abc import Mapping

from compiler.artifact.errors import CheckpointError
from compiler.artifact.numbers_config import is_numbers, numbers_shapes
from compiler.artifact.tokenizer import TOKENIZER_FILES

CONFIG = "config.json"
GENERATION = "generation_config.json"
WEIGHTS = "model.safetensors"
MANIFEST = "construction.json"
CIRCUIT = "circuit.json"
CARD = "README.md"  # the user may edit it
SEALED_FILES = (CONFIG, GENERATION, WEIGHTS, CIRCUIT, *TOKENIZER_FILES)  # whose hashes the manifest holds
NUMBERS_FILES = (CONFIG, WEIGHTS, CIRCUIT)  # the same of a model over numbers

Shape = tuple[int, ...]


def tensor_shapes(config: Mapping) -> dict[str, Shape]:
    """Shape of every tensor of this model, by its name; the config is one of ours."""
    if is_numbers(config):
        return numbers_shapes(config)
    mixer = _mamba2_shapes(config) if config["model_type"] == "mamba2" else _mamba_shapes(config)
    width, vocab = config["hidden_size"], config["vocab_size"]
    shapes: dict[str, Shape] = {"backbone.embeddings.weight": (vocab, width)}
    for i in range(config["num_hidden_layers"]):
        shapes |= {f"backbone.layers.{i}.mixer.{name}": shape for name, shape in mixer.items()}
        shapes[f"backbone.layers.{i}.norm.weight"] = (width,)
    return shapes | {"backbone.norm_f.weight": (width,), "lm_head.weight": (vocab, width)}


def check_shapes(config: Mapping, found: Mapping[str, Shape]) -> None:
    """Raise CheckpointError unless these are exactly the tensors that the config asks for."""
    layers = len(config["blocks"]) if is_numbers(config) else config["num_hidden_layers"]
    if layers > len(found):  # before any work that grows with the number of layers
        raise CheckpointError(f"{CONFIG} has {layers} layers, but {WEIGHTS} has {len(found)} tensors.")
    expected = tensor_shapes(config)
    for name in sorted(expected.keys() | found.keys()):
        if name not in found:
            raise CheckpointError(f"{WEIGHTS} has no tensor {name}, which {CONFIG} asks for.")
        if name not in expected:
            raise CheckpointError(f"{WEIGHTS} has a tensor {name}, for which {CONFIG} has no place.")
        if tuple(found[name]) != expected[name]:
            raise CheckpointError(
                f"{WEIGHTS} has {name} of shape {tuple(found[name])}, but {CONFIG} asks for {expected[name]}."
            )


def _mamba_shapes(config: Mapping) -> dict[str, Shape]:
    """x_proj rows are [dt; B; C], in_proj rows [x; z]."""
    width, inner = config["hidden_size"], config["expand"] * config["hidden_size"]
    states, rank = config["state_size"], config["time_step_rank"]
    return {
        "A_log": (inner, states),
        "D": (inner,),
        "conv1d.weight": (inner, 1, config["conv_kernel"]),
        "conv1d.bias": (inner,),
        "dt_proj.weight": (inner, rank),
        "dt_proj.bias": (inner,),
        "in_proj.weight": (2 * inner, width),
        "out_proj.weight": (width, inner),
        "x_proj.weight": (rank + 2 * states, inner),
    }


def _mamba2_shapes(config: Mapping) -> dict[str, Shape]:
    """in_proj rows are [z; x; B; C; dt], convolved channels [x; B; C]."""
    width, inner = config["hidden_size"], config["expand"] * config["hidden_size"]
    heads, convolved = config["num_heads"], inner + 2 * config["n_groups"] * config["state_size"]
    return {
        "A_log": (heads,),
        "D": (heads,),
        "dt_bias": (heads,),
        "conv1d.weight": (convolved, 1, config["conv_kernel"]),
        "conv1d.bias": (convolved,),
        "in_proj.weight": (inner + convolved + heads, width),
        "norm.weight": (inner,),
        "out_proj.weight": (width, inner),
    }
