"""Checks of a config.json, whatever the family of its model."""

from collections.abc import Iterable, Mapping
from typing import Any

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import same_json, shown
from compiler.artifact.numbers_config import check_numbers_config, is_numbers
from compiler.formats import FORMATS
from compiler.targets import family_of, target_of
from compiler.targets.family import Family
from compiler.targets.target import KERNEL_COLUMNS, KERNEL_WIDTH, Target

# Entries of a config that change nothing that is computed or written, and why.
HARMLESS = {"transformers_version": "a note of the version that wrote the file"}


def check_config(config: Mapping) -> None:
    """Raise CheckpointError unless this is a config that a family of ours writes, and nothing else.

    Any other entry could change what programs compute or write (`quantization_config`, `auto_map`, …).
    """
    if not isinstance(config, Mapping):
        raise CheckpointError(f"the config is {shown(config)}, expected an object.")
    if is_numbers(config):
        return check_numbers_config(config)
    try:
        expected = _family(config).rewritten(config)
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
        target = target_of(config["mixer"])
        found = [sentence for b in config["blocks"] for sentence in module_limits(target, target.sizes_of(b))]
        return list(dict.fromkeys(found))
    sizes = _family(config).kernel_sizes(config)
    return [] if sizes is None else kernel_limits(*sizes)


def module_limits(target: Target, size: Any) -> list[str]:
    """The same for one module of a bare stack, from its sizes."""
    widths = (target.convolved(size), target.projected(size)) if target.channels_last else (0, 0)
    return kernel_limits(size.d_conv, size.d_state, *widths)


def kernel_warnings(limits: Iterable[str]) -> list[str]:
    """What a model card says of these limits."""
    return [f"Not for the CUDA kernels of mamba_ssm: {sentence}" for sentence in limits]


def kernel_limits(taps: int, states: int, channels: int, rows: int) -> list[str]:
    """The same for one mixer: taps of its convolution, state columns, channels in the convolution and rows of in_proj.

    channels, rows: 0 where the convolution does not read a position's channels side by side.
    """
    whole = f"the kernels want a multiple of {KERNEL_WIDTH}"
    reasons = [
        (not 2 <= taps <= 4, f"conv_kernel is {taps}, the kernels take 2 to 4."),
        (states > KERNEL_COLUMNS, f"state_size is {states}, the kernels take at most {KERNEL_COLUMNS}."),
        (channels % KERNEL_WIDTH != 0, f"there are {channels} convolved channels, {whole}."),
        (rows % KERNEL_WIDTH != 0, f"in_proj has {rows} rows, {whole}."),
    ]
    return [sentence for applies, sentence in reasons if applies]


def _family(config: Mapping) -> Family:
    try:
        return family_of(config["model_type"])
    except ValueError as reason:
        raise CheckpointError(f"the config is of no checkpoint of ours: {reason}.") from reason
