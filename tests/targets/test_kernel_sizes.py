"""Sizes of Mamba-2 language models: what in_proj gives is what causal_conv1d's CUDA kernel reads."""

from __future__ import annotations

import pytest

from compiler import compile
from compiler.artifact.artifact import packaged
from compiler.artifact.config import cuda_limits, module_limits
from compiler.targets import target_of
from compiler.targets.mamba2.emit import Mamba2Sizes
from compiler.targets.mamba2.family import kernel_columns
from compiler.targets.sizes import MambaSizes
from conformance.models.circuits import CORES


@pytest.mark.parametrize("n_groups", [1, 2, 4])
@pytest.mark.parametrize("name", [name for name, core in CORES.items() if "mamba2" in core.targets])
def test_kernels_take_what_is_compiled(name: str, n_groups: int) -> None:
    config = packaged(compile(CORES[name].build(60), "mamba2", n_groups=n_groups)).config
    assert cuda_limits(config) == []
    inner, ports = config["intermediate_size"], 2 * n_groups * config["state_size"]
    assert (inner + ports) % 8 == 0 and (2 * inner + ports + config["num_heads"]) % 8 == 0


def test_the_fewest_columns_are_added() -> None:
    assert [kernel_columns(n, 1) for n in (1, 4, 5, 256)] == [4, 4, 8, 256]
    assert [kernel_columns(n, 2) for n in (1, 3, 4)] == [2, 4, 4] and kernel_columns(3, 4) == 3


def test_a_bare_mamba_may_have_any_number_of_channels() -> None:
    """Its convolution reads one channel after the other; random programs of all widths ran on the kernels."""
    assert module_limits(target_of("mamba"), MambaSizes(3, 17, 1, 1)) == []
    assert "state_size is 300" in module_limits(target_of("mamba"), MambaSizes(3, 17, 300, 1))[0]
    assert "17 convolved channels" in module_limits(target_of("mamba2"), Mamba2Sizes(3, 15, 1, 1))[0]
