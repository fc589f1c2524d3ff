"""How many numbers a mixer carries to the next position: what its sizes say is what its caches hold."""

from __future__ import annotations

import pytest

from compiler import Compiled, bare, compile
from compiler.artifact.package import bare_sizes, packaged_sizes
from constructions.checkpoints.artifact import capacity
from constructions.gadgets import costs
from constructions.selectivity.mqar import MQAR

MIXERS = [
    ("mamba", 1),
    ("mamba2", 1),
    ("mamba2", 2),
    ("s4d", 1),
    ("mamba-delta-t", 1),
    ("gated-deltanet", 1),
    ("gated-deltanet-qwen", 1),
]


def recall(arch: str, groups: int) -> Compiled:
    write = {"write": "last"} if arch.startswith("gated") else {}
    circuit = MQAR(kappa=4, vocab=8, max_length=64, arch=arch, **write).circuit()
    return compile(circuit, arch, n_groups=groups)


def in_least(made: Compiled, taps: int) -> int:
    """Numbers of the least sizes: states and windows of the channels, and what the caches hold besides the channels.

    Whole heads have more channels, but no more of B and C.
    """
    besides = sum(
        (window.shape[1] - size.d_inner) * taps
        for (window, _), size in zip(bare(made).initial_state(1), packaged_sizes(made), strict=True)
    )
    return besides + sum(size.d_inner * (size.d_state + taps) for size in bare_sizes(made))


@pytest.mark.parametrize(("arch", "groups"), MIXERS)
def test_sizes_say_what_the_caches_hold(arch: str, groups: int) -> None:
    made = recall(arch, groups)
    sizes, (windows, states) = packaged_sizes(made), zip(*bare(made).initial_state(1), strict=True)
    held = sum(state.numel() for state in states)
    assert sum(size.carried(0) for size in sizes) == held
    assert sum(size.carried(size.d_conv) for size in sizes) == held + sum(window.numel() for window in windows)


@pytest.mark.parametrize(("arch", "groups"), MIXERS)
def test_the_capacity_of_a_model_has_all_that_it_carries(arch: str, groups: int) -> None:
    made = recall(arch, groups)
    assert capacity(made).numbers == in_least(made, made.context.target.max_lag)


@pytest.mark.parametrize("length", [8, 64])
def test_table_1_counts_what_mamba2_convolves_besides_its_channels(length: int) -> None:
    circuit, arch = costs.places(length)
    told = costs._built("places", length, circuit, arch, False, length)["state"]
    assert told == in_least(compile(circuit, arch, max_d_state=length), 4) and (length, told) in ((8, 197), (64, 1261))
