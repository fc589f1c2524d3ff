"""Where the real functions round, the block IR refuses: each of its constants stands where float32 needs it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import silu, softplus

from compiler.exactness.levels import COUNT, FAINT_LOG, KEPT, OFF, SAFE_NEGATIVE, SAFE_POSITIVE
from compiler.ir.block import UnsafePreactivation, kept, rectified


def _rectified(value: float) -> float:
    return float(rectified(np.full((1, 1, 1), value), ("x",), "the pre-activation")[0, 0, 0])


@pytest.mark.parametrize("value", [1e-30, 0.5, 12.0, 16.0, 20.0, 20.09, -1e-30, -20.1, -60.0, -88.0, -103.0, -103.9])
def test_preactivations_between_the_safe_sets_are_refused(value: float):
    with pytest.raises(UnsafePreactivation, match="it must be 0, at least 20.1 or at most −104"):
        _rectified(value)


@pytest.mark.parametrize("value", [0.0, 20.1, 21.0, 2.0**40, -104.0, -128.0, -(2.0**40)])
def test_preactivations_in_the_safe_sets_are_those_of_relu_in_float32(value: float):
    single = torch.tensor(value, dtype=torch.float32)
    assert _rectified(value) == max(value, 0)
    assert silu(single) == single.clamp(min=0)
    assert value == 0 or softplus(single) == single.clamp(min=0)


def test_the_safe_sets_hold_for_every_float32_beyond_their_ends():
    """softplus leaves the identity below 20 (torch) and 0 above −104, silu above −104 in the largest of its small
    values.
    """
    up = torch.arange(SAFE_POSITIVE, 400, 2**-10, dtype=torch.float32)
    down = torch.arange(SAFE_NEGATIVE, -400, -(2**-10), dtype=torch.float32)
    assert torch.equal(silu(up), up) and torch.equal(softplus(up), up)
    assert not silu(down).any() and not softplus(down).any() and not torch.exp(down).any()
    assert softplus(torch.tensor(-103.0)) > 0 and silu(torch.tensor(-60.0)) < 0 and silu(torch.tensor(12.0)) < 12
    assert softplus(torch.tensor(OFF)) == 0


@pytest.mark.parametrize("exponent", [2.0**-25, 2.0**-12, 1.0, 60.0, 103.9])
def test_states_that_would_fade_are_refused(exponent: float):
    with pytest.raises(UnsafePreactivation, match="kept or erased whole"):
        kept(np.array([exponent]))


def test_states_are_kept_up_to_2_to_the_minus_26_and_erased_from_104_on():
    assert kept(np.array([0.0, COUNT * np.exp(FAINT_LOG), KEPT, 104.0, 2.0**50])).tolist() == [1, 1, 1, 0, 0]
    exponents = -torch.cat([torch.linspace(0, KEPT, 10_000), torch.tensor([2.0**-23])]).float()
    assert (torch.exp(exponents[:-1]) == 1).all() and torch.exp(exponents[-1]) < 1
