"""What a target cannot print it refuses: no weight of a block is dropped or changed in silence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from compiler.driver import compile
from compiler.errors import CompileError
from compiler.ir.block import SelectiveBlock
from compiler.ir.decay import ERASE, FAINT, KEEP, Fade
from compiler.language.words import count, latch
from compiler.targets import target_names, target_of
from tests.circuits import is_a, is_b, over_abc, token


def _block(target: str, stream=None) -> SelectiveBlock:
    plain = latch(token, is_a) if target.startswith("gated-deltanet") else is_a.cumsum()
    stream = plain if stream is None else stream
    return compile(over_abc("one", stream), target).blocks[-1]


def _emitted(target: str, block: SelectiveBlock) -> dict[str, torch.Tensor]:
    lanes = block.features.rows.shape[1]
    mixer = target_of(target)
    return mixer.emit(block, mixer.sizes(block, lanes), np.arange(lanes), np.arange(lanes)).tensors


def _with(block: SelectiveBlock, **channels) -> SelectiveBlock:
    return replace(block, channels=replace(block.channels, **channels))


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d"])
@pytest.mark.parametrize("decay", [KEEP, ERASE, FAINT, Fade(-5.5)], ids=str)
def test_every_decay_is_printed_as_it_is(target: str, decay: Fade):
    block = _block(target)
    block = _with(block, decay=(decay,) * len(block.channels.names))
    printed = -torch.exp(_emitted(target, block)["A_log"].float()).reshape(-1)
    assert (
        printed[0] == -torch.exp(torch.tensor(decay.a_log)) and abs(float(printed[0]) + decay.rate) <= 1e-6 * decay.rate
    )


def test_a_decay_that_float32_does_not_hold_is_refused():
    block = _block("mamba")
    with pytest.raises(CompileError, match="A_log.*float32"):
        _emitted("mamba", _with(block, decay=(Fade(-0.1),) * len(block.channels.names)))


def test_a_count_decays_in_the_block_as_in_the_weights():
    block = _block("mamba", count(is_a, is_b))
    (at,) = (i for i, decay in enumerate(block.channels.decay) if decay == FAINT)
    printed = torch.exp(_emitted("mamba", block)["A_log"][at])
    assert float(printed) == pytest.approx(block.channels.decay[at].rate, rel=1e-6)


@pytest.mark.parametrize(
    ("foreign", "target"),
    [
        ("mamba-delta-t", "mamba"),
        ("mamba-delta-t", "mamba2"),
        ("mamba-delta-t", "s4d"),
        ("mamba", "mamba2"),
        ("mamba", "s4d"),
        ("mamba", "mamba-delta-t"),
        ("mamba2", "mamba"),
        ("mamba2", "s4d"),
        ("mamba2", "mamba-delta-t"),
    ],
)
def test_no_target_takes_a_block_of_another(foreign: str, target: str):
    with pytest.raises(CompileError, match=f"{target} has no place for"):
        _emitted(target, _block(foreign, latch(token, is_a)))


def test_what_s4d_fits_real_mamba_prints_too():
    assert set(_emitted("mamba", _block("s4d"))) == set(_emitted("mamba", _block("mamba")))


@pytest.mark.parametrize("target", target_names())
def test_blocks_verify_and_broken_ones_do_not(target: str):
    block = _block(target)
    block.verify()
    with pytest.raises(ValueError, match="skip of a block has shape"):
        _with(block, skip=np.zeros(99)).verify()
    with pytest.raises(ValueError, match="gate of a block holds an infinity or a NaN"):
        _with(block, gate=sparse.csr_array(block.channels.gate * np.nan)).verify()


def test_an_unknown_target_is_named():
    with pytest.raises(
        ValueError, match="'mamba3' is no target; there are mamba, mamba2, s4d, mamba-delta-t, gated-deltanet, gated-"
    ):
        target_of("mamba3")
