"""The real kernels on lattice data, where there is a GPU: the same integers as on the CPU, bit for bit."""

import pytest
import torch

from compiler.runtime import exact_float32, mamba_classes, selective_scan, ssd_scan
from compiler.runtime.fake_triton import is_missing
from tests.runtime.lattice import (
    assert_exact,
    exact_scan,
    exact_ssd,
    lattice_block,
    one_hot_inputs,
    scan_inputs,
    ssd_inputs,
)

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(
        not torch.cuda.is_available() or is_missing("selective_scan_cuda") or is_missing("triton"),
        reason="needs a CUDA device with mamba-ssm's compiled kernels and triton",
    ),
]


@pytest.fixture(autouse=True)
def exact_products():
    """For the rest of the process: the kernels compile once, with whatever precision is then set."""
    exact_float32()


@pytest.mark.parametrize("length, d_state, groups", [(3000, 3, None), (90, 256, None), (2049, 16, 3), (1, 1, None)])
def test_selective_scan_kernel(length, d_state, groups):
    mamba_classes()
    from mamba_ssm.ops.selective_scan_interface import selective_scan_fn

    inputs = scan_inputs(0, 2, 48, d_state, length, groups)
    y, last = selective_scan_fn(*(m.cuda() for m in inputs), return_last_state=True)
    expected_y, expected_last = exact_scan(*inputs)
    assert_exact(y.cpu(), expected_y)
    assert_exact(last.cpu(), expected_last)
    assert torch.equal(y.cpu(), selective_scan(*inputs))


@pytest.mark.parametrize("length, chunk_size, groups", [(64, 64, 1), (65, 64, 2), (1000, 256, 1), (5, 16, 1)])
def test_ssd_kernels(length, chunk_size, groups):
    mamba_classes()
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    inputs = ssd_inputs(0, 2, length, 4, 16, groups, 16)
    y, last = mamba_chunk_scan_combined(*(m.cuda() for m in inputs), chunk_size, return_final_states=True)
    expected_y, expected_last = exact_ssd(*inputs)
    assert_exact(y.cpu(), expected_y)
    assert_exact(last.cpu(), expected_last)
    assert torch.equal(y.cpu(), ssd_scan(*inputs, chunk_size))


@pytest.mark.parametrize("fast", [False, True])  # the fast paths need causal_conv1d
@pytest.mark.parametrize("name", ["Mamba", "Mamba2"])
@torch.no_grad()
def test_blocks_and_their_steps_agree_with_the_cpu(name, fast):
    if fast and is_missing("causal_conv1d"):
        pytest.skip("the fast paths need causal_conv1d")
    # in_proj of the Mamba2 has 104 rows, a multiple of 8, inside of which the convolution reads its channels
    options = {"Mamba": dict(d_state=4), "Mamba2": dict(d_state=16, headdim=4, rmsnorm=False)}[name]
    block = lattice_block(getattr(mamba_classes(), name)(16, **options))
    block.use_fast_path = block.use_mem_eff_path = fast
    x = one_hot_inputs(2, 60, 16)
    expected = block(x)
    block.cuda()
    conv, ssm = block.allocate_inference_cache(2, 60)
    stepped = torch.cat([block.step(x[:, t : t + 1].cuda(), conv, ssm)[0] for t in range(60)], dim=1)
    assert torch.equal(block(x.cuda()).cpu(), expected)
    assert torch.equal(stepped.cpu(), expected)
