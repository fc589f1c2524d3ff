"""The chunked scan of Mamba-2, against the plain recurrence: int64 on lattice data, float64 on random data."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.runtime import ssd, ssd_scan
from tests.runtime.lattice import STEP, assert_exact, exact_ssd, int64, integers, ssd_inputs


def sequential(x, dt, A, B, C, state):
    """The recurrence one step at a time, in the dtype of x. Returns y (b, l, h, p) and the last state (b, h, p, n)."""
    B, C = (m.repeat_interleave(x.shape[2] // m.shape[2], dim=2) for m in (B, C))
    ys = []
    for t in range(x.shape[1]):
        decay = (dt[:, t] * A).exp()[..., None, None]
        state = decay * state + (dt[:, t, :, None] * x[:, t])[..., None] * B[:, t, :, None]
        ys.append((state * C[:, t, :, None]).sum(-1))
    return torch.stack(ys, dim=1), state


def random_inputs(seed, batch, length, heads, headdim, groups, d_state):
    g = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=g)
    A = -4 * torch.rand(heads, generator=g)
    columns = (batch, length, groups, d_state)
    return draw(batch, length, heads, headdim), draw(batch, length, heads), A, draw(*columns), draw(*columns)


def relative_error(actual, expected):
    return ((actual.double() - expected.double()).abs().max() / expected.double().abs().max()).item()


@pytest.mark.parametrize("length, chunk_size", [(1, 64), (63, 64), (64, 64), (65, 64), (200, 7), (1000, 256), (5, 1)])
@pytest.mark.parametrize("groups", [1, 2])
def test_exact_on_lattice_data(length, chunk_size, groups):
    inputs = ssd_inputs(0, 2, length, 4, 3, groups, 5)
    y, last = ssd_scan(*inputs, chunk_size, return_final_states=True)
    expected_y, expected_last = exact_ssd(*inputs)
    assert_exact(y, expected_y)
    assert_exact(last, expected_last)


def test_rows_of_a_large_batch_are_scanned_a_few_at_a_time(monkeypatch):
    inputs, seen = ssd_inputs(1, 5, 20, 4, 3, 2, 5), []
    whole, chunk = ssd_scan(*inputs, 8, return_final_states=True), ssd._chunk
    monkeypatch.setattr(ssd, "_AT_ONCE", 2 * 4 * 8**2)
    monkeypatch.setattr(ssd, "_chunk", lambda x, *rest: seen.append(len(x)) or chunk(x, *rest))
    for found, expected in zip(ssd_scan(*inputs, 8, return_final_states=True), whole, strict=True):
        assert torch.equal(found, expected)
    assert seen == [2, 2, 2] * 2 + [1, 1, 1]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_exact_on_any_shape(data):
    groups = data.draw(st.integers(1, 3))
    shape = dict(
        batch=data.draw(st.integers(1, 2)),
        length=data.draw(st.integers(1, 150)),
        heads=groups * data.draw(st.integers(1, 3)),
        headdim=data.draw(st.integers(1, 5)),
        groups=groups,
        d_state=data.draw(st.integers(1, 9)),
    )
    inputs = ssd_inputs(data.draw(st.integers(0, 2**31)), **shape)
    y = ssd_scan(*inputs, data.draw(st.integers(1, 100)))
    assert_exact(y, exact_ssd(*inputs)[0])


def test_long_and_wide_memory_is_exact():
    inputs = ssd_inputs(1, 1, 3000, 2, 4, 1, 64)
    assert_exact(ssd_scan(*inputs, 256), exact_ssd(*inputs)[0])


@pytest.mark.parametrize("rate", [-1.0, -2.0, -32.0])
def test_every_reset_from_128_to_4096_is_exact(rate):
    x, dt, _, B, C = ssd_inputs(2, 1, 300, 2, 3, 1, 4)
    A = torch.tensor([rate, -0.0])
    assert_exact(ssd_scan(x, dt, A, B, C, 64), exact_ssd(x, dt, A, B, C)[0])


def test_initial_states_continue_a_sequence():
    inputs = ssd_inputs(3, 2, 150, 4, 3, 2, 5)
    halves = [[m[:, part] if m.dim() > 1 else m for m in inputs] for part in (slice(0, 77), slice(77, None))]
    first, state = ssd_scan(*halves[0], 64, return_final_states=True)
    second = ssd_scan(*halves[1], 64, initial_states=state)
    assert_exact(torch.cat([first, second], dim=1), exact_ssd(*inputs)[0])


@pytest.mark.parametrize("per_channel", [False, True])
def test_skip_gate_bias_and_softplus_are_exact(per_channel):
    x, dt, A, B, C = ssd_inputs(4, 2, 90, 4, 3, 1, 5)
    g = torch.Generator().manual_seed(4)
    D = integers(g, 4, 3, low=-3, high=3) if per_channel else integers(g, 4, low=-3, high=3)
    bias = integers(g, 4, low=-8, high=8)
    z = 32 * integers(g, *x.shape, low=0)
    raw = torch.where(dt == 0, -160.0, dt) - bias
    y = ssd_scan(x, raw, A, B, C, 64, D=D, z=z, dt_bias=bias, dt_softplus=True)
    skip = int64(x) * (int64(D) if per_channel else int64(D)[:, None])
    assert_exact(y, (exact_ssd(x, dt, A, B, C)[0] + skip) * int64(z))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_keeps_a_wide_state_and_rounds_once(dtype):
    x, dt, A, B, C = ssd_inputs(5, 1, 200, 2, 3, 1, 4)
    x, dt, B, C = (m.to(dtype) for m in (x, dt / STEP, B, C))
    A = 128 * A
    y, last = ssd_scan(x, dt, A, B, C, 64, return_final_states=True)
    assert y.dtype == dtype and last.dtype == torch.float32
    assert_exact(y, exact_ssd(x, dt, A, B, C)[0])


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2e-6), (torch.float64, 1e-13)])
def test_agrees_with_the_recurrence_on_random_data(dtype, tolerance):
    x, dt, A, B, C = (m.to(dtype) for m in random_inputs(6, 2, 150, 6, 4, 3, 8))
    start = torch.randn(2, 6, 4, 8, generator=torch.Generator().manual_seed(6)).to(dtype)
    options = dict(dt_softplus=True, dt_limit=(0.1, 1.5), initial_states=start, return_final_states=True)
    y, last = ssd_scan(x, dt, A, B, C, 64, **options)
    wide = [m.double() for m in (x, F.softplus(dt.double()).clamp(0.1, 1.5), A, B, C, start)]
    expected, expected_last = sequential(*wide)
    assert relative_error(y, expected) < tolerance
    assert relative_error(last, expected_last) < tolerance


def test_small_decays_survive_beside_large_resets():
    """Differences of prefix sums would lose four digits here; sums over segments do not."""
    x, dt, _, B, C = random_inputs(7, 1, 256, 1, 4, 1, 8)
    dt = torch.where(torch.arange(256)[:, None] % 20 == 0, 150.3, dt.abs() * 1e-3)
    A = torch.tensor([-1.0])
    wide = [m.double() for m in (x, dt, A, B, C)]
    expected, _ = sequential(*wide, torch.zeros(1, 1, 4, 8, dtype=torch.float64))
    assert relative_error(ssd_scan(x, dt, A, B, C, 256), expected) < 1e-6


def test_gradients_agree_with_the_recurrence():
    inputs = [m.double() for m in random_inputs(8, 1, 70, 2, 3, 1, 4)]
    inputs[1] = inputs[1].abs()
    grads = []
    for scan in (lambda *m: ssd_scan(*m, 32), lambda *m: sequential(*m, torch.zeros(1, 2, 3, 4).double())[0]):
        leaves = [m.clone().requires_grad_() for m in inputs]
        scan(*leaves).square().sum().backward()
        grads.append([m.grad for m in leaves])
    for ours, expected in zip(*grads, strict=True):
        assert relative_error(ours, expected) < 1e-12


@pytest.mark.parametrize(
    "options, message",
    [(dict(seq_idx=torch.zeros(1)), "seq_idx is not supported"), (dict(chunk_size=0), "chunk_size is 0")],
)
def test_refuses_in_one_sentence(options, message):
    inputs = ssd_inputs(9, 1, 8, 2, 3, 1, 4)
    with pytest.raises(ValueError, match=message):
        ssd_scan(*inputs, **({"chunk_size": 4} | options))


def test_refuses_groups_that_do_not_divide_the_heads():
    x, dt, A, _, _ = ssd_inputs(9, 1, 8, 3, 3, 1, 4)
    columns = torch.zeros(1, 8, 2, 4)
    with pytest.raises(ValueError, match="B has 2 groups"):
        ssd_scan(x, dt, A, columns, columns, 4)


def test_a_block_without_heads_gives_nothing():
    """A circuit that needs no state has Mamba-2 blocks of no head."""
    x, B = torch.zeros(2, 5, 0, 4), torch.ones(2, 5, 1, 3)
    y, state = ssd_scan(x, torch.zeros(2, 5, 0), torch.zeros(0), B, B, 4, return_final_states=True)
    assert y.shape == x.shape and state.shape == (2, 0, 4, 3)
