"""The selective scan: every path, against int64 on lattice data and against mamba_ssm's reference on random data."""

import math
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.runtime import mamba_classes, native, selective_scan
from tests.runtime.lattice import STEP, assert_exact, exact_scan, int64, integers, scan_inputs

SCAN = sys.modules["compiler.runtime.selective_scan"]
PATHS = {"native": native.native_scan, "chunked": SCAN._chunked, "differentiable": SCAN._differentiable}


@pytest.fixture(params=PATHS)
def path(request, monkeypatch):
    """Runs the test with each recurrence in turn."""
    if request.param == "native" and not native.is_native():
        pytest.skip("no C++ compiler on this machine")
    monkeypatch.setattr(SCAN, "_recurrence", lambda *inputs: PATHS[request.param])
    return request.param


@pytest.fixture(scope="module")
def reference():
    """mamba_ssm's own sequential scan."""
    mamba_classes()
    from mamba_ssm.ops.selective_scan_interface import selective_scan_ref

    return selective_scan_ref


def random_inputs(seed, batch, channels, d_state, length, groups=None, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed)
    columns = (batch, d_state, length) if groups is None else (batch, groups, d_state, length)
    draw = lambda *shape: torch.randn(*shape, generator=g).to(dtype)
    u, z, delta = (draw(batch, channels, length) for _ in range(3))
    A = -4 * torch.rand(channels, d_state, generator=g, dtype=torch.float32)
    B, C = draw(*columns), draw(*columns)
    D, bias = torch.randn(2, channels, generator=g)
    return dict(u=u, delta=delta, A=A, B=B, C=C, D=D, z=z, delta_bias=bias, delta_softplus=True)


def relative_error(actual, expected):
    return ((actual.double() - expected.double()).abs().max() / expected.double().abs().max()).item()


@pytest.mark.parametrize(
    "batch, channels, d_state, length, groups",
    [(2, 5, 3, 3000, None), (1, 3, 1024, 90, None), (2, 48, 16, 130, 3), (1, 1, 1, 1, None), (3, 17, 1, 64, 1)],
)
def test_exact_on_lattice_data(path, batch, channels, d_state, length, groups):
    inputs = scan_inputs(0, batch, channels, d_state, length, groups)
    y, last = selective_scan(*inputs, return_last_state=True)
    expected_y, expected_last = exact_scan(*inputs)
    assert_exact(y, expected_y)
    assert_exact(last, expected_last)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(PATHS)))
def test_exact_on_any_shape(data, name):
    if name == "native" and not native.is_native():
        return
    groups = data.draw(st.integers(1, 3))
    shape = dict(
        batch=data.draw(st.integers(1, 3)),
        channels=groups * data.draw(st.integers(1, 20)),
        d_state=data.draw(st.integers(1, 9)),
        length=data.draw(st.integers(1, 150)),
        groups=groups,
    )
    inputs = scan_inputs(data.draw(st.integers(0, 2**31)), **shape)
    y, last = PATHS[name](*inputs)
    expected_y, expected_last = exact_scan(*inputs)
    assert_exact(y, expected_y)
    assert_exact(last, expected_last)


def test_skip_gate_bias_and_softplus_are_exact(path):
    u, delta, A, B, C = scan_inputs(1, 2, 20, 4, 100)
    g = torch.Generator().manual_seed(1)
    D, bias = integers(g, 20, low=-3, high=3), integers(g, 20, low=-8, high=8)
    z = 32 * integers(g, *u.shape)
    z[z < 0] = -128
    raw = torch.where(delta == 0, -160.0, delta) - bias[:, None]
    out = selective_scan(u, raw, A, B, C, D, z, bias, delta_softplus=True)
    expected = exact_scan(u, delta, A, B, C)[0] + int64(u) * int64(D)[:, None]
    assert_exact(out, expected * int64(z.clamp(min=0)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_keeps_a_wide_state_and_rounds_once(path, dtype):
    u, delta, A, B, C = scan_inputs(2, 1, 6, 5, 400)
    u, delta, B, C = (m.to(dtype) for m in (u, delta / STEP, B, C))
    A = 128 * A
    y, last = selective_scan(u, delta, A, B, C, return_last_state=True)
    expected_y, expected_last = exact_scan(u, delta, A, B, C)
    assert y.dtype == dtype and last.dtype == torch.float32
    assert_exact(y, expected_y)
    assert_exact(last, expected_last)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_gate_is_computed_wide(path, dtype):
    inputs = random_inputs(3, 1, 4, 3, 50, dtype=dtype)
    wide = {name: m.float() if torch.is_tensor(m) else m for name, m in inputs.items()}
    out = selective_scan(**inputs)
    assert out.dtype == dtype
    expected = selective_scan(**wide).to(dtype)
    different = (out != expected).float().mean()
    assert different == 0, "low-precision inputs must be widened before anything else"


def test_float64_stays_float64(monkeypatch):
    inputs = random_inputs(4, 2, 6, 5, 80)
    doubles = {name: m.double() if torch.is_tensor(m) else m for name, m in inputs.items()}
    out = selective_scan(**doubles)
    monkeypatch.setattr(SCAN, "_recurrence", lambda *inputs: SCAN._differentiable)
    assert out.dtype == torch.float64
    assert relative_error(selective_scan(**doubles), out) < 1e-14


@pytest.mark.parametrize(
    "shape",
    [(2, 33, 16, 300, None), (1, 64, 7, 129, 4), (3, 5, 1, 1, None), (1, 2, 600, 10, 2)],
)
def test_agrees_with_the_reference_on_random_data(path, reference, shape):
    inputs = random_inputs(5, *shape)
    out, last = selective_scan(**inputs, return_last_state=True)
    expected, expected_last = reference(**inputs, return_last_state=True)
    assert relative_error(out, expected) < 3e-6
    assert relative_error(last, expected_last) < 3e-6


def test_non_contiguous_inputs(path):
    inputs = random_inputs(6, 2, 8, 4, 50)
    strided = {
        name: m.movedim(-1, 0).contiguous().movedim(0, -1) if torch.is_tensor(m) and m.dim() > 1 else m
        for name, m in inputs.items()
    }
    assert torch.equal(selective_scan(**strided), selective_scan(**inputs))


def test_groups_of_b_and_c_may_differ(path):
    inputs = random_inputs(7, 2, 12, 4, 30, groups=3)
    inputs["C"] = inputs["C"][:, :1]
    full = dict(inputs, C=inputs["C"].expand(-1, 3, -1, -1))
    assert torch.equal(selective_scan(**inputs), selective_scan(**full))


def test_gradients_agree_with_the_reference(reference):
    inputs = random_inputs(8, 2, 6, 4, 25)
    grads = []
    for scan in (selective_scan, reference):
        leaves = {n: m.clone().requires_grad_() if torch.is_tensor(m) else m for n, m in inputs.items()}
        scan(**leaves).square().sum().backward()
        grads.append({n: m.grad for n, m in leaves.items() if torch.is_tensor(m)})
    for name, gradient in grads[0].items():
        assert relative_error(gradient, grads[1][name]) < 1e-5, name


def test_no_gradient_means_the_fast_path():
    inputs = scan_inputs(9, 1, 2, 2, 5)
    fast = native.native_scan if native.is_native() else SCAN._chunked
    assert SCAN._recurrence(*inputs) is fast
    inputs[0].requires_grad_()
    assert SCAN._recurrence(*inputs) is SCAN._differentiable
    with torch.no_grad():
        assert SCAN._recurrence(*inputs) is fast
    assert SCAN._recurrence(*(m.detach().double() for m in inputs)) is SCAN._chunked


def transition(exponent):
    """Returns exp of `exponent` (any shape) as the native path computes it: write 1, then step by the exponent."""
    x = exponent.flatten()
    u = torch.tensor([1.0, 0.0]).expand(1, len(x), 2)
    ones = torch.ones(1, 1, 1, 2)
    delta = torch.stack([torch.ones_like(x), x], dim=-1)[None]
    y, _ = native.native_scan(u, delta, torch.ones(len(x), 1), ones, ones)
    return y[0, :, 1].view(exponent.shape)


@pytest.mark.skipif(not native.is_native(), reason="no C++ compiler on this machine")
class TestNativeExponential:
    def test_within_two_units_in_the_last_place(self):
        x = torch.cat([torch.linspace(-87.3, 88.7, 200_001), torch.logspace(-12, 0, 20_001) * -1])
        exact = x.double().exp()
        unit = 2.0 ** (exact.log2().floor() - 23)
        assert ((transition(x).double() - exact).abs() / unit).max() <= 2

    def test_exactly_one_near_zero(self):
        near = torch.cat([torch.tensor([0.0, 1e-45]), torch.logspace(-45, -25, 5_001, base=2)])
        assert (transition(near) == 1).all() and (transition(-near) == 1).all()

    def test_exactly_zero_from_104_down(self):
        x = torch.cat([torch.linspace(-104, -300, 5000), torch.tensor([-4096.0, -1e30])])
        assert (transition(x) == 0).all()

    def test_denormals_overflow_and_nan(self):
        x = torch.tensor([-100.0, 88.73, 1e30, math.nan])
        assert torch.equal(transition(x).isnan(), x.isnan())
        assert (transition(x)[1:3] == math.inf).all()
        assert abs(transition(x)[0].item() - math.exp(-100)) <= 2**-149


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(A=torch.zeros(4, 3, dtype=torch.complex64)), "A is complex"),
        (dict(A=torch.zeros(5, 3)), "do not match u"),
        (dict(B=torch.zeros(4, 3)), "B has shape"),
        (dict(C=torch.zeros(2, 3, 3, 7)), "C has 3 groups"),
        (dict(u=torch.zeros(2, 4, 0), delta=torch.zeros(2, 4, 0)), "at least 1 entry"),
    ],
)
def test_refuses_in_one_sentence(change, message):
    inputs = dict(zip(("u", "delta", "A", "B", "C"), scan_inputs(0, 2, 4, 3, 7), strict=True))
    with pytest.raises(ValueError, match=message):
        selective_scan(**(inputs | change))


def test_without_a_compiler_there_is_no_native_path(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert all(native._library.__wrapped__(name) is None for name in ("scan", "inner"))


@pytest.mark.skipif(not native.is_native(), reason="no C++ compiler on this machine")
@pytest.mark.parametrize("place", [0, 5, 15, 16])
def test_a_channel_that_forgets_is_not_taken_for_one_that_keeps(place):
    """Sixteen channels are one vector, whose exponentials are left out where all of them are 1."""
    channels, length = 17, 130
    step = torch.full((1, channels, length), 2.0**-25)
    step[0, place, 100] = 2.0**-12
    nothing, ones = torch.zeros(1, channels, length), torch.ones(1, 1, 2, length)
    A = -torch.ones(channels, 2)
    y, last = native.native_scan(nothing, step, A, ones, ones, torch.ones(1, channels, 2))
    kept = torch.ones(channels, dtype=torch.bool)
    kept[place] = False
    assert (last[0, kept] == 1).all() and (y[0, kept] == 2).all()
    assert torch.allclose(last[0, place], torch.exp(torch.tensor(-(2.0**-12))), rtol=1e-6)
    step[0, place, 100] = float("nan")
    _, last = native.native_scan(nothing, step, A, ones, ones, torch.ones(1, channels, 2))
    assert last[0, place].isnan().all() and (last[0, kept] == 1).all()
    A[place] = float("-inf")
    step[0, place] = 0
    assert native.native_scan(nothing, step, A, ones, ones)[1][0, place].isnan().all()  # exp(0 · −∞), as everywhere


@pytest.mark.skipif(not native.is_native(), reason="no C++ compiler on this machine")
@pytest.mark.parametrize("fault", [None, "B", "C", "step", "u", "state", "growth"])
def test_what_is_left_out_adds_nothing(fault):
    """Columns that rest and channels that hold nothing are left out; not where a number there is not finite."""
    draw = torch.Generator().manual_seed(0)
    channels, n, length = 40, 6, 200
    draws = lambda low, high, *shape: torch.randint(low, high, shape, generator=draw).float()
    u, step = draws(-3, 4, 1, channels, length), torch.ones(1, channels, length)
    u[:, 16:35] = 0
    A = torch.full((channels, n), -0.0)
    A[:, 4:] = -200.0
    B, C = (draws(0, 2, 1, 1, n, length) * (torch.arange(length) % 130 < 60) for _ in "BC")
    initial = torch.zeros(1, channels, n)
    initial[0, 3] = 3.0
    if fault == "growth":
        A[18] = 100.0
        step[0, 18, 70] = float("inf")
    elif fault is not None:
        place = {"B": (B, (0, 0, 1, 80)), "C": (C, (0, 0, 1, 80)), "step": (step, (0, 17, 80)), "u": (u, (0, 18, 80))}
        tensor, at = (place | {"state": (initial, (0, 19, 2))})[fault]
        tensor[at] = float("inf")
    expected = SCAN._chunked(u, step, A, B, C, initial)
    for found, right in zip(native.native_scan(u, step, A, B, C, initial), expected, strict=True):
        assert torch.equal(found.isnan(), right.isnan())
        assert torch.equal(found.nan_to_num(7.0), right.nan_to_num(7.0))
    assert expected[0].isfinite().all() == (fault is None)
