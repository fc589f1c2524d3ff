"""The plain operations against numbers worked out by hand, and that they refuse what is not exact."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
import torch
from torch import tensor

from conformance import exact
from conformance.cases import OPERATIONS, cases
from conformance.exact import Exact, Faint, Inexact, Near
from conformance.loader import HOW


def test_two_steps_by_hand() -> None:
    # h1 = 2·3·1 = 6, y1 = 6·1 + 10·3 = 36; Δ2 A = −128 erases: h2 = 1·5·2 = 10, y2 = 10·4 + 10·5 = 90, gated by 32.
    found = exact.selective_scan(
        Exact,
        u=tensor([[[3.0, 5.0]]]),
        delta=tensor([[[2.0, 1.0]]]),
        A=tensor([[-128.0]]),
        B=tensor([[[1.0, 2.0]]]),
        C=tensor([[[1.0, 4.0]]]),
        D=tensor([10.0]),
        z=tensor([[[-128.0, 32.0]]]),
    )
    assert found["y"].tolist() == [[[0, 90 * 32]]] and found["last_state"].tolist() == [[[10]]]


def test_groups_belong_to_neighbours() -> None:
    ones = torch.ones(1, 1, 4, 1)
    found = exact.ssd(Exact, ones, ones[..., 0], torch.zeros(4), tensor([[[[1.0], [10.0]]]]), torch.ones(1, 1, 2, 1))
    assert found["y"].reshape(-1).tolist() == [1, 1, 10, 10]


def test_a_document_begins_with_nothing() -> None:
    ones = torch.ones(1, 1, 3)
    ids = tensor([[0, 0, 1]])
    scan = exact.selective_scan(Exact, ones, ones, torch.zeros(1, 1), ones, ones, seq_idx=ids)
    assert scan["y"].tolist() == [[[1, 2, 1]]]
    conv = exact.conv(Exact, tensor([[[1.0, 2.0, 3.0]]]), tensor([[10.0, 1.0]]), seq_idx=ids)
    assert conv["y"].tolist() == [[[1, 12, 3]]] and conv["last_state"].tolist() == [[[3]]]


def test_the_window_comes_before() -> None:
    x, weight = tensor([[[1.0, 2.0]]]), tensor([[100.0, 10.0, 1.0]])
    found = exact.conv(Exact, x, weight, initial_states=tensor([[[7.0, 8.0]]]))
    assert found["y"].tolist() == [[[781, 812]]]


def test_norms_of_groups() -> None:
    x = tensor([[[1024.0, -1024.0, 4096.0, 4096.0]]])
    found = exact.norm(Exact, x, tensor([1.0, 2.0, 3.0, 4.0]), group_size=2)
    assert found["y"].tolist() == [[[1, -2, 3, 4]]]
    assert exact.norm(Exact, 0 * x, torch.ones(4))["y"].tolist() == [[[0, 0, 0, 0]]]


def test_what_is_not_exact_is_refused() -> None:
    for function, value in ((Exact.exp, -1), (Exact.softplus, 5), (Exact.silu, -3)):
        with pytest.raises(Inexact):
            function(Fraction(value))
    for mean in (3, 2**20 + 1, Fraction(1, 2)):
        with pytest.raises(Inexact):
            Exact.norm_factor(mean, 1e-5)
    assert Faint.exp(Fraction(-1, 2**30)) == 1
    with pytest.raises(Inexact):
        Faint.exp(Fraction(-1, 2**20))


def test_decimals_are_decimals() -> None:
    assert abs(Near.exp(Decimal(-1)) - Decimal("0.3678794411714423215955237701614608674458")) < Decimal(10) ** -39
    assert abs(Near.softplus(Decimal(0)) - Decimal("0.6931471805599453094172321214581765680755")) < Decimal(10) ** -39


@pytest.mark.parametrize("op", OPERATIONS)
def test_every_exact_result_is_exact_in_any_order(op: str) -> None:
    """No sum of absolute values reaches 2^24 quanta, so no order of adding rounds."""
    if op in ("conv", "norm", "delta_rule"):  # of the last see test_delta.py
        return
    for case in cases(op, full=True):
        if not case.tolerance:
            size, step = _headroom(case)
            assert size / step < 2**24, case.name


def _headroom(case) -> tuple[float, float]:
    """The largest sum of absolute values, and the step of the lattice that all terms lie on."""
    skip = (*HOW, "dt_limit", "chunk_size")
    options = {key: value for key, value in case.options.items() if key not in skip}
    absolute = ("u", "x", "B", "C", "D", "initial_state", "initial_states")
    inputs = {k: m.float() if m.is_floating_point() else m for k, m in case.inputs.items() if k != "z"}
    inputs = {k: m.abs() if k in absolute else m for k, m in inputs.items()}
    found = getattr(exact, op := case.op)(Exact, **inputs, **options)
    largest = max(float(max(m.reshape(-1))) for m in found.values())
    values = torch.cat([inputs["u" if op == "selective_scan" else "x"].reshape(-1), inputs["B"].reshape(-1)])
    steps = inputs["delta" if op == "selective_scan" else "dt"].abs().reshape(-1)
    lowest = lambda m: min((float(v) for v in m if v), default=1.0)
    return largest, min(1.0, lowest(values)) * min(1.0, lowest(steps))
