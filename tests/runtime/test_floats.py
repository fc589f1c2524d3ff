"""The float facts that exact circuits rest on, each checked where the real modules use it (CPU)."""

import os
from fractions import Fraction

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from compiler.runtime import exact_float32, selective_scan

DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def at_least(low, dtype):
    """Returns values from `low` up to the largest that a circuit may hold, as the dtype has them."""
    high = 2**15 if dtype == torch.float16 else 2**24
    values = torch.cat([torch.linspace(low, 130, 20_001), torch.logspace(2, 24, 5_001, base=2)])
    return values[(values >= low) & (values <= high)].to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_silu_is_the_identity_from_20_1(dtype):
    x = at_least(20.1, dtype)
    assert torch.equal(F.silu(x), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_silu_is_zero_from_minus_104_down(dtype):
    assert (F.silu(-at_least(104, dtype)) == 0).all()
    assert F.silu(torch.zeros(1, dtype=dtype)) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_softplus_is_the_identity_from_20_1(dtype):
    x = at_least(20.1, dtype)
    assert torch.equal(F.softplus(x), x)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softplus_is_zero_from_minus_104_down(dtype):
    assert (F.softplus(-at_least(104, dtype)) == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_log_of_minus_200_never_forgets(dtype):
    A = -torch.exp(torch.tensor(-200.0, dtype=dtype).float())
    assert A == 0
    assert (torch.exp(torch.tensor([0.0, 1e-30, 32.0, 128.0, 1e30]) * A) == 1).all()


def test_exp_is_zero_from_minus_104_down_and_one_near_zero():
    """One up to 2^-26: between that and 2^-25, where rounding allows it too, torch's vectorised exp is an ulp low."""
    assert (torch.exp(-at_least(104, torch.float32)) == 0).all()
    near = torch.logspace(-45, -26, 5_001, base=2)
    assert (torch.exp(-near) == 1).all() and (torch.exp(near) == 1).all()


def test_exp_is_right_to_2_to_the_minus_17_where_float32_has_all_its_digits():
    """Below −87 it may have few digits left, or none."""
    x = torch.linspace(-87, 88, 200_001)
    assert ((torch.exp(x).double() / torch.exp(x.double()) - 1).abs() <= 2.0**-17).all()
    x = torch.linspace(-104, -87, 200_001)
    off = (torch.exp(x).double() - torch.exp(x.double())).abs()
    assert ((torch.exp(x) == 0) | (off <= 2.0**-17 * torch.exp(x.double()) + 2.0**-127)).all()
    assert (off > 2.0**-16 * torch.exp(x.double())).any()


def test_parts_in_sequence_count_at_most_twice_and_more_than_a_tree():
    """Beyond 2^24 float32 adds 3 as 4: after 2^22 parts a count is a seventh more than it should be."""
    held, added = np.float32(1 << 24), 0
    for _ in range(1 << 10):
        held, added = held + np.float32(3), added + 3
        assert held <= np.float32(1 << 24) + 2 * added
    assert held == (1 << 24) + 4 * added // 3
    truth, far = (1 << 24) + 3 * (1 << 22), np.float32((1 << 24) + 4 * (1 << 22))
    assert far + np.float32(3) == far + 4 and far > Fraction(9, 8) * truth


def test_rsqrt_is_exact_at_powers_of_four_and_nearly_so_elsewhere():
    """Norms in float32 need the first; in narrower formats, whose mean is not quite a power of four, the second."""
    k = torch.arange(-60, 61)
    assert torch.equal(torch.rsqrt(torch.ldexp(torch.ones(121), 2 * k)), torch.ldexp(torch.ones(121), -k))
    x = torch.logspace(-100, 120, 100_001, base=2)
    assert ((torch.rsqrt(x).double() * x.double().sqrt() - 1).abs() <= 2.0**-21).all()


@pytest.mark.parametrize("delta_times_rate, survives", [(2.0**-26, True), (0.0, True), (104.0, False), (4096.0, False)])
def test_a_transition_keeps_or_erases_exactly(delta_times_rate, survives):
    """The same facts through the scan: write 1, take one step of the given decay, read."""
    u, ones = torch.tensor([[[1.0, 0.0]]]), torch.ones(1, 1, 2)
    delta = torch.tensor([[[1.0, delta_times_rate]]])
    y = selective_scan(u, delta, torch.tensor([[-1.0]]), ones, ones)
    assert y[0, 0, 1] == float(survives)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_signed_lanes_are_exact_on_small_integers(dtype):
    n = torch.arange(1, 65).to(dtype)
    assert torch.equal(F.silu(n) - F.silu(-n), n)


def test_signed_lanes_are_exact_from_17_in_float32():
    x = at_least(17, torch.float32)
    assert torch.equal(F.silu(x) - F.silu(-x), x)


@pytest.fixture
def tf32_allowed():
    """Starts from TF32 allowed, as on a fresh GPU process, and restores the settings afterwards."""
    settings = (torch.backends.cudnn, torch.backends.cuda.matmul)
    earlier = [place.allow_tf32 for place in settings]
    for place in settings:
        place.allow_tf32 = True
    yield
    for place, value in zip(settings, earlier, strict=True):
        place.allow_tf32 = value


def test_exact_float32_sets_the_process(monkeypatch, tf32_allowed):
    monkeypatch.setenv("TRITON_F32_DEFAULT", "tf32")
    exact_float32()
    assert os.environ["TRITON_F32_DEFAULT"] == "ieee"
    assert not torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32
