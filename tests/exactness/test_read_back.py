"""Nothing is printed that its block does not say: weights are read back, and each changed one is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch

import compiler
from compiler.artifact import package
from compiler.compiled import Compiled
from compiler.exactness.compare import Miscompiled
from compiler.exactness.levels import KEEP_LOG, OFF
from compiler.exactness.read_back import check_read_back
from compiler.ir.block import SelectiveBlock
from compiler.targets import target_of
from compiler.targets.target import Target
from tests.circuits import over_abc
from tests.targets.harness import STREAMS, WITHOUT_LATCH

PRINTED = {
    "mamba": STREAMS,
    "mamba2": STREAMS,
    "s4d": WITHOUT_LATCH,
    "mamba-delta-t": STREAMS,
}
CASES = [(target, name) for target, streams in PRINTED.items() for name in streams]


def _compiled(target: str, name: str) -> Compiled:
    return compiler.compile(over_abc("alone", PRINTED[target][name]), target)


def _emissions(target: str, name: str, spare: int) -> Iterator[tuple[Target, SelectiveBlock, np.ndarray, dict, object]]:
    compiled, mixer = _compiled(target, name), target_of(target)
    lanes = np.arange(compiled.lanes.count)
    for block in compiled.blocks:
        size = mixer.packaged(mixer.sizes(block, len(lanes)), block)
        size = replace(size, d_state=size.d_state + spare)
        yield mixer, block, lanes, dict(mixer.printed(block, size, lanes, lanes).tensors), size


@pytest.mark.parametrize(("target", "name"), CASES)
def test_every_weight_that_is_not_of_padding_is_read_back(target: str, name: str):
    rng = np.random.default_rng(0)
    for mixer, block, lanes, tensors, size in _emissions(target, name, spare=1):
        for key, tensor in tensors.items():
            used = torch.nonzero((tensor != 0) & (tensor != OFF) & (tensor != KEEP_LOG)).numpy()
            for at in rng.permutation(used)[:3]:
                for factor in (-1.0, 2.0, 0.0):
                    planted = tensor.clone()
                    planted[tuple(at)] *= factor
                    with pytest.raises(Miscompiled, match="the weights that were printed"):
                        check_read_back(mixer.read(tensors | {key: planted}, size), block, lanes, lanes)


@pytest.mark.parametrize("target", PRINTED)
def test_a_weight_more_is_told(target: str):
    for mixer, block, lanes, tensors, size in _emissions(target, "sum", spare=1):
        for key, at in (("in_proj.weight", (0, -1)), ("out_proj.weight", (-1, 0))):
            planted = tensors[key].clone()
            planted[at] += 1
            with pytest.raises(Miscompiled):
                check_read_back(mixer.read(tensors | {key: planted}, size), block, lanes, lanes)


def test_a_writer_that_never_stops_is_told_where_nothing_reads_it():
    """It would outgrow the dtype: 0 · ∞ is NaN."""
    for mixer, block, lanes, tensors, size in _emissions("mamba", "memory", spare=0):
        planted = tensors["dt_proj.bias"].clone()
        planted[len(block.channels.names)] = 32.0  # a channel that only feeds ports
        with pytest.raises(Miscompiled, match="that its block lacks"):
            check_read_back(mixer.read(tensors | {"dt_proj.bias": planted}, size), block, lanes, lanes)


@pytest.mark.parametrize("form", ["bare", "language model"])
def test_every_form_reads_back_what_it_prints(form: str, monkeypatch: pytest.MonkeyPatch):
    compiled = _compiled("mamba", "memory")
    mixer = type(target_of("mamba"))
    right = mixer.emit

    def wrong(self, *arguments):
        emission = right(self, *arguments)
        emission.tensors["D"][0] += 1
        return emission

    monkeypatch.setattr(mixer, "emit", wrong)
    with pytest.raises(Miscompiled, match="do not hold channel"):
        package.bare(compiled) if form == "bare" else package.language_model(compiled)


@pytest.mark.parametrize("name", ["_embedding", "_head", "_norm_weight"])
def test_what_stands_around_the_blocks_is_read_back(name: str, monkeypatch: pytest.MonkeyPatch):
    right = getattr(package, name)

    def wrong(*arguments):
        tensor = right(*arguments)
        tensor.view(-1)[0] += 1
        return tensor

    monkeypatch.setattr(package, name, wrong)
    with pytest.raises(Miscompiled, match="the weights that were printed as|special tokens or the ballast"):
        package.language_model(_compiled("mamba", "memory"))
