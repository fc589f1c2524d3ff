"""Lemma 2: an S6 layer equal to a causal linear-attention head, against the head's definition."""

import re

import numpy as np
import pytest
import torch

from compiler.artifact.numeric import NumericStack
from compiler.errors import CompileError
from constructions.polynomials.linear_attention import (
    Head,
    HeadOnMamba,
    _against,
    on_polynomial_s6,
    random_head,
    report,
    tokens_of,
)
from constructions.polynomials.polynomial_circuit import lower
from constructions.polynomials.polynomial_s6 import torch_network
from constructions.polynomials.polynomial_transition import Exponential, Taylor

SHAPES = [(1, 1, 1), (3, 2, 4), (4, 4, 2), (2, 5, 1)]


def float_head(d, d_k, d_v, seed):
    rng = np.random.default_rng(seed)
    return Head(*(rng.normal(size=shape) for shape in ((d_k, d), (d_k, d), (d_v, d))))


def integer_tokens(d, seed, length=7):
    return np.array(np.random.default_rng(seed).integers(-4, 5, (3, length, d)).tolist(), dtype=object)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["sequential", "parallel"])
def test_equal_in_integers(shape, form):
    head, x = random_head(*shape, seed=1), integer_tokens(shape[0], 2)
    network = on_polynomial_s6([head])
    assert (network(tokens_of(network, x), form) == np.stack([head(row) for row in x])).all()
    assert head.weights == 2 * shape[0] * shape[1] + shape[2] * shape[0]
    assert network.blocks[0].write.weight.shape[0] == shape[1]


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_on_random_weights_in_float64(shape):
    head = float_head(*shape, seed=3)
    x = np.random.default_rng(4).normal(size=(2, 9, shape[0]))
    network = on_polynomial_s6([head])
    expected = np.stack([head(row) for row in x])
    assert np.abs(network(tokens_of(network, x)) - expected).max() <= 1e-10
    with torch.no_grad():
        assert np.abs(torch_network(network)(torch.from_numpy(tokens_of(network, x))).numpy() - expected).max() <= 1e-10


def test_stacked_heads():
    heads, x = [random_head(2, 2, 2, seed) for seed in range(3)], integer_tokens(2, 5, 4)
    network = on_polynomial_s6(heads)
    expected = np.stack([heads[2](heads[1](heads[0](row))) for row in x])
    assert (network(tokens_of(network, x))[..., -2:] == expected).all()


@pytest.mark.parametrize("shape", SHAPES)
def test_exact_on_integers_on_real_mamba(shape):
    head, x = random_head(*shape, seed=6), integer_tokens(shape[0], 7)
    model = HeadOnMamba(head, length=7)
    assert np.array_equal(model(x.astype(float)), np.stack([head(row) for row in x]).astype(float))
    assert len(model.stack.blocks) == 1 and not model.stack.residual


@pytest.mark.parametrize("shape", SHAPES)
def test_close_on_real_numbers_on_real_mamba(shape):
    head = float_head(*shape, seed=8)
    head = Head(*(m.astype(np.float32).astype(float) for m in (head.query, head.key, head.value)))
    x = np.random.default_rng(9).normal(size=(4, 30, shape[0])).astype(np.float32).astype(float)
    expected = np.stack([head(row) for row in x])
    majorant = np.stack([Head(*map(np.abs, (head.query, head.key, head.value)))(np.abs(row)) for row in x])
    assert (np.abs(HeadOnMamba(head, length=30)(x) - expected) <= 3e-6 * majorant).all()


@pytest.mark.parametrize("transition", [Taylor(2, 2), Exponential()])
def test_a_decay_is_refused(transition):
    with pytest.raises(CompileError, match="Ā = 1"):
        on_polynomial_s6([random_head(2, 2, 2, 0)], transition)


def test_misshapen_weights_are_refused():
    with pytest.raises(ValueError, match="d_k × d"):
        Head(np.ones((2, 3)), np.ones((3, 3)), np.ones((1, 3)))


def test_a_layer_whose_columns_are_not_constant_passes_no_constant_on():
    from constructions.polynomials.polynomial_circuit import Layer, PolynomialCircuit

    layer = Layer([], ["y"], write=({"one": 2},))
    with pytest.raises(CompileError, match="use the residual"):
        lower(PolynomialCircuit(["one"], ["one"], [layer, Layer([], ["z"])]))


# Weights that float32 loses, answers that underflow -----------------------------------------------------------


def test_answers_that_underflow_keep_the_proved_bound_and_are_counted():
    """Products of three weights near 1e-13 are below 2^-126: relative errors are not measured."""
    head = float_head(2, 2, 2, 0)
    small = Head(*(1e-13 * m for m in (head.query, head.key, head.value)))
    result = report(small, 6)["mamba"]
    for row in (result, result["given_weights"]):
        assert row["answers"] == row["answers_that_underflow"] == 48 and row["within_bound"]
        assert row["largest_error_against_absolute_sum"] is None
    model, x = HeadOnMamba(head, 6), np.random.default_rng(0).normal(size=(4, 6, 2)).astype(np.float32).astype(float)
    row = _against(head, x, model(x), 1e-5, 1e-5)
    assert row["answers_that_underflow"] == 0 < row["largest_error_against_absolute_sum"]


def test_without_the_proved_bound_answers_that_underflow_are_wrong():
    head = Head(*(1e-13 * m for m in vars(float_head(2, 2, 2, 0)).values()))
    x = np.random.default_rng(0).normal(size=(4, 6, 2)).astype(np.float32).astype(float)
    assert not _against(head, x, HeadOnMamba(head, 6)(x), 1e-6)["within_bound"]


def test_answers_without_terms_are_counted():
    head = Head(np.ones((1, 2)), np.ones((1, 2)), np.array([[1.0, 2.0], [0.0, 0.0]]))
    x = np.ones((1, 3, 2))
    row = _against(head, x, np.stack([head(each) for each in x]), 0.0)
    assert (row["answers"], row["answers_without_terms"]) == (6, 3)
    assert not _against(head, x, np.stack([head(each) for each in x]) + 1e-30, 1.0)["within_bound"]


@pytest.mark.parametrize("weight", [1e-60, 1e-36, 1.5e-38])
def test_a_weight_that_float32_loses_is_refused(weight):
    head = float_head(2, 2, 2, 0)
    head.key[1, 0] = weight
    with pytest.raises(ValueError, match=f"a weight of the head is {weight:.3g}, .* of their matrix to 0"):
        report(head, 6)


def filled(query, key=1.0, value=1.0):
    return Head(*(np.full((2, 2), size) for size in (query, key, value)))


@pytest.mark.parametrize(
    "sizes, advice",
    [
        ((1.1 * 2.0**-120,), r"backends flush them to 0; multiply W_Q by 2\^120 \(the answers by 2\^120\)\.$"),
        ((1.1 * 2.0**-103,), r"multiply W_Q by 2\^103 \(the answers by 2\^103\)\.$"),
        ((2.0**-90,), r"multiply W_Q by 2\^90 \("),
        ((2.0**-100, 2.0**-100), r"multiply W_Q by 2\^100, W_K by 2\^100 \(the answers by 2\^200\)"),
        ((2.0**40,) * 3, r"float32 ends at 1.70141e\+38; multiply W_Q by 2\^-40, W_K by 2\^-40, W_V by 2\^-40"),
    ],
)
def test_a_head_beyond_float32_is_refused_with_powers_of_two_that_do(sizes, advice):
    with pytest.raises(ValueError, match=advice) as refused:
        report(filled(*sizes), 4)
    assert "declare" not in str(refused.value) and "dyadic" not in str(refused.value)
    matrices = []
    for m, name in zip(vars(filled(*sizes)).values(), ("W_Q", "W_K", "W_V"), strict=True):
        shift = re.search(rf"{name} by 2\^(-?\d+)", str(refused.value))
        matrices.append(m * 2.0 ** int(shift[1]) if shift else m)
    assert report(Head(*matrices), 4)["mamba"]["within_bound"]


# Integers, where float32 adds them exactly ----------------------------------------------------------------------


@pytest.mark.parametrize("head", [filled(2.0**18 + 1, 3.0, 2.0), random_head(64, 64, 2, 0)])
def test_integers_are_compared_where_float32_adds_them_exactly(head):
    row = report(head, 48)["mamba"]
    assert row["exact_on_integers"] and row["within_bound"]
    assert row["integer_answers"] > 0 and row["integer_answers"] + row["integer_answers_left_out"] <= row["answers"]


def test_the_units_of_a_sum_are_the_last_bits_of_the_weights():
    """Large powers of two are as exact as ones."""
    row = report(filled(2.0**20, 2.0**20, 2.0**20), 8)["mamba"]
    assert row["exact_on_integers"] and row["integer_answers_left_out"] == 0


def test_a_weight_that_float32_rounds_leaves_every_answer_with_a_term_out():
    row = report(filled(2.0**30 + 1), 32)["mamba"]
    assert row["exact_on_integers"] is None and row["integer_answers"] == 0 < row["integer_answers_left_out"]


def test_a_wrong_integer_inside_is_found(monkeypatch):
    run = NumericStack.run
    monkeypatch.setattr(NumericStack, "run", lambda self, *given: run(self, *given) + 1)
    assert report(random_head(2, 2, 2, 0), 6)["mamba"]["exact_on_integers"] is False


@pytest.mark.parametrize("number, name", [(0, "W_Q"), (1, "W_K"), (2, "W_V")])
def test_a_head_that_is_0_is_refused(number, name):
    matrices = [*vars(float_head(2, 2, 2, 0)).values()]
    matrices[number] = np.zeros((2, 2))
    with pytest.raises(ValueError, match=f"{name} holds zeros only"):
        report(Head(*matrices), 6)
