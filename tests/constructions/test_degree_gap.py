"""Lemma 1: degrees by finite differences, against the printed polynomial and the formulas of the specification."""

import random

import pytest
import sympy

from constructions.polynomials.degree_gap import (
    attention_degree,
    binary_degree,
    channel,
    f,
    last_output,
    report,
    s6_degree,
    taylor_degree,
    taylor_formula,
)
from verify.polynomial_degree import attention_layers, degree, degree_on_ray, multilinear_degree


@pytest.mark.parametrize("length", [1, 2, 3, 6])
def test_the_channel_is_the_printed_polynomial(length):
    rng = random.Random(length)
    a, b, c = (rng.randint(-4, 4) for _ in range(3))
    x = [rng.randint(-5, 5) for _ in range(length)]
    assert last_output(channel(a, b, c), x) == f(x, a, b, c)


@pytest.mark.parametrize("length", [1, 2, 4])
def test_exactly_l_monomials(length):
    x = sympy.symbols(f"x1:{length + 1}")
    polynomial = sympy.Poly(last_output(channel(2, 3, 5), list(x)), *x)
    assert len(polynomial.terms()) == length and polynomial.total_degree() == length + 2


@pytest.mark.parametrize("length", [1, 2, 3, 5, 12, 20])
def test_s6_has_degree_l_plus_two(length):
    assert s6_degree(length) == length + 2


@pytest.mark.parametrize("length", [1, 2, 5, 8])
def test_on_binary_inputs_the_degree_is_l(length):
    assert binary_degree(length) == length


@pytest.mark.parametrize("length, p, q", [(1, 2, 2), (2, 1, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2), (3, 3, 1)])
def test_taylor_degrees(length, p, q):
    assert taylor_degree(length, p, q) == taylor_formula(length, p, q) == p * q * (length - 1) + q + 3


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_stacked_attention_has_degree_three_to_the_layers(layers):
    assert attention_degree(layers) == 3**layers


def test_layers_that_equality_needs():
    assert [attention_layers(d) for d in (1, 3, 4, 9, 10, 27, 28)] == [0, 1, 2, 2, 3, 3, 4]
    assert [attention_layers(d, gated=True) for d in (1, 4, 5, 16, 17)] == [0, 1, 2, 2, 3]
    assert attention_layers(3**40) == 40 and attention_layers(3**40 + 1) == 41


def test_degrees_of_known_functions():
    assert degree(lambda x: x[0] ** 3 * x[1] - 7, 2, 6) == 4
    assert degree_on_ray(lambda x: 0, [1], 3) == -1 and degree_on_ray(lambda x: 5, [1], 3) == 0
    assert multilinear_degree(lambda x: x[0] ** 5 + 2 * x[0] * x[2], 3) == 2
    with pytest.raises(ValueError, match="exceeds 3"):
        degree_on_ray(lambda x: x[0] ** 4, [1], 3)
    with pytest.raises(ValueError, match="exceeds"):
        degree_on_ray(lambda x: 2 ** x[0], [1], 9)


def test_the_report_holds_measured_degrees():
    result = report(8, 2)
    assert [row["s6_degree"] for row in result["s6"]] == [3, 4, 6, 10]
    assert [row["attention_layers"] for row in result["s6"]] == [1, 2, 2, 3]
    assert [row["degree"] for row in result["attention"]] == [3, 9]
