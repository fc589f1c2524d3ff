"""The polynomial S6: one network on every number type, in both forms, and transitions that refuse what they cannot
reach.
"""

from fractions import Fraction
from math import log

import numpy as np
import pytest
import sympy
import torch

from compiler.errors import CompileError
from constructions.polynomials.polynomial_circuit import ALWAYS, Channel, Layer, PolynomialCircuit, lower
from constructions.polynomials.polynomial_s6 import PolynomialNetwork, torch_network
from constructions.polynomials.polynomial_transition import (
    Exponential,
    Linear,
    Need,
    Squashed,
    Taylor,
    horner,
    least_value,
    softplus_series,
)

SELECTIVE = PolynomialCircuit(
    ("x", "p"),
    ("p",),
    [
        Layer(
            [Channel("u", {"x": 1}, {"u": 1}, {"x": Fraction(1, 2), "p": 1}, {"y": 3})],
            ["y"],
            write=({"u": 1}, {"p": 1}),
            read=({"p": 2}, {"u": 1}),
        )
    ],
)
OTHERS = [Squashed(), Taylor(2, 2), Taylor(3, 2), Taylor(3, 3), Exponential()]


def inputs(rng, batch, length):
    x = rng.integers(-3, 4, (batch, length))
    return np.array(np.stack([x, np.ones_like(x)], -1).tolist(), dtype=object)


def recurrence(x):
    """SELECTIVE by hand, on (batch, time, 2) numbers."""
    rows = []
    for sequence in x:
        h, out = [0, 0], []
        for value, _ in sequence:
            h = [value * h[0] + value * value, value * h[1] + value]
            out.append(3 * (2 * h[0] + value * h[1]) * (Fraction(1, 2) * value + 1))
        rows.append(out)
    return np.array(rows, dtype=object)


@pytest.mark.parametrize("form", ["sequential", "parallel"])
@pytest.mark.parametrize("length", [1, 2, 3, 7, 8])
def test_exact_on_python_integers(form, length):
    x = inputs(np.random.default_rng(length), 5, length)
    assert (lower(SELECTIVE)(x, form)[..., 0] == recurrence(x)).all()


@pytest.mark.parametrize("form", ["sequential", "parallel"])
def test_exact_on_symbols(form):
    symbols = sympy.symbols("a b c d")
    x = np.array([[[s, 1] for s in symbols]], dtype=object)
    got, expected = lower(SELECTIVE)(x, form)[0, :, 0], recurrence(x)[0]
    assert all(sympy.expand(g - e) == 0 for g, e in zip(got, expected, strict=True))


@pytest.mark.parametrize("form", ["sequential", "parallel"])
def test_torch_and_numpy_floats_are_exact_on_small_integers(form):
    x = inputs(np.random.default_rng(0), 4, 6)
    expected, network = recurrence(x).astype(float), lower(SELECTIVE)
    assert np.array_equal(network(x.astype(float), form)[..., 0], expected)
    for dtype in (torch.float32, torch.float64):
        with torch.no_grad():
            got = torch_network(network, dtype, form)(torch.tensor(x.astype(float), dtype=dtype))
        assert np.array_equal(got[..., 0].double().numpy(), expected)


def test_gradients_pass_both_forms():
    x = torch.tensor(inputs(np.random.default_rng(1), 2, 5).astype(float), requires_grad=True)
    grads = []
    for form in ("sequential", "parallel"):
        modules = torch_network(lower(SELECTIVE), form=form)
        modules(x).square().sum().backward()
        grads.append([p.grad for p in modules.parameters()])
    assert all(torch.allclose(a, b) for a, b in zip(*grads, strict=True))


@pytest.mark.parametrize("transition", OTHERS)
def test_other_transitions_run_alike_in_both_forms(transition):
    network = PolynomialNetwork(lower(SELECTIVE).blocks, transition)
    x = inputs(np.random.default_rng(2), 3, 6).astype(float)
    a, b = network(x, "sequential"), network(x, "parallel")
    assert np.allclose(a, b)
    with torch.no_grad():
        assert np.allclose(torch_network(network)(torch.tensor(x)).numpy(), a)


# What each transition can reach (hidden assumption 1 of Theorem 2) --------------------------------


def test_softplus_series_is_that_of_softplus():
    z = sympy.Symbol("z")
    series = sympy.series(sympy.log(1 + sympy.exp(z)), z, 0, 7).removeO()
    ours = softplus_series(6)
    assert ours[0] == Fraction(log(2))
    assert [sympy.Rational(c.numerator, c.denominator) for c in ours[1:]] == [series.coeff(z, k) for k in range(1, 7)]


def test_degree_two_reaches_neither_zero_nor_one():
    """1 + z + z²/2 ≥ 1/2 and ln 2 + z/2 + z²/8 ≥ 0.193 (specification I.6)."""
    assert least_value(softplus_series(2)) == pytest.approx(0.193, abs=5e-4)
    assert least_value([Fraction(1), Fraction(1), Fraction(1, 2)]) == 0.5
    z = np.linspace(-50, 50, 100_001)
    keep, step = Taylor(2, 2)(z)
    assert keep.min() >= 0.5 and step.min() > 0.193
    assert not Taylor(2, 2).solutions(0.0)


def test_degree_three_is_zero_at_single_points_only():
    transition = Taylor(3, 2)
    for root in transition.solutions(0.0):
        assert horner(transition.composed(), np.array(root)) == pytest.approx(0, abs=1e-9)
        assert -transition(np.array(root))[1] == pytest.approx(-1.596, abs=1e-3)


def test_exponential_lies_strictly_between():
    keep, _ = Exponential()(np.linspace(-30, 30, 1001))
    assert keep.min() > 0 and keep.max() < 1


@pytest.mark.parametrize("transition", OTHERS)
def test_a_running_product_is_refused_with_the_reason(transition):
    with pytest.raises(CompileError) as refused:
        lower(SELECTIVE, transition)
    assert "any real number" in str(refused.value) and "channel u" in str(refused.value)
    assert transition.refusal(Need.VALUE) and transition.refusal(Need.KEEP)


def test_linear_refuses_nothing():
    assert not any(Linear().refusal(need) for need in Need)


def test_squashed_can_forget_but_not_keep():
    forget = PolynomialCircuit(("x", "p"), ("p",), [Layer([Channel("u", {"x": 1}, out={"y": 1})], ["y"])])
    keep = PolynomialCircuit(("x", "p"), ("p",), [Layer([Channel("u", {"x": 1}, ALWAYS, out={"y": 1})], ["y"])])
    x = inputs(np.random.default_rng(0), 2, 4).astype(float)
    assert np.array_equal(lower(forget, Squashed())(x)[..., 0], x[..., 0])
    with pytest.raises(CompileError, match="below 1"):
        lower(keep, Squashed())
