"""The ballast of norms: its margin, and what a norm divides by it, which must not be flushed to 0."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

import compiler
from compiler import (
    Alphabet,
    Circuit,
    CompileError,
    InputLanguage,
    Tokens,
    bare,
    concatenate,
    interpret,
    language_model,
)
from compiler.artifact.model import RMSNorm, Stack
from compiler.exactness.ballast import Ballast, choose_ballast, with_margin
from compiler.formats import BFLOAT16, FLOAT16, FLOAT32
from tests.flushed import flushed

AB = Alphabet.of("a", "b")
TOKENS = Tokens(AB)
LENGTH = 1 << 20


def _beside_a_count(unit: float) -> Circuit:
    """5 and −7 of these units, one position late, beside a number that reaches 2^21."""
    fine = TOKENS.rows(("a", "b"), np.array([[5 * unit], [-7 * unit]]), "fine").shift(1)
    language = InputLanguage.of(AB, "q", [("q", "q", ("a", "b"))], LENGTH, "any")
    return Circuit("fine", concatenate(fine, TOKENS.number({"a": 1, "b": 2}).cumsum()), language)


def _normed(data: torch.Tensor, ballast: Ballast) -> torch.Tensor:
    """The data behind a norm with this ballast in the last places."""
    lanes = torch.tensor(ballast.factors) * ballast.level
    norm = RMSNorm(len(data) + len(lanes))
    norm.weight.data.fill_(ballast.level)
    with torch.no_grad():
        return norm(torch.cat([data, lanes]))[: len(data)]


@pytest.mark.parametrize("width", [16, 64, 512])
def test_with_a_margin_data_beyond_their_bounds_are_absorbed(width: int):
    bounds = np.full(width - 4, 3.0)
    least = choose_ballast(width, bounds, FLOAT32)
    wider = with_margin(least, width, Fraction(1), FLOAT32)
    assert (wider.level, wider.factors) == (16 * least.level, least.factors)
    data = torch.full((width - len(least.factors),), 45.0)
    assert torch.equal(_normed(data, wider), data)
    assert not torch.equal(_normed(data, least), data)


def test_the_margin_ends_where_squares_or_quotients_leave_float32_and_narrow_formats_have_none():
    ballast = Ballast((4.0,), 2.0**56)
    assert with_margin(ballast, 16, Fraction(1), FLOAT32).level == 2.0**57
    ballast = Ballast((4.0,), 2.0**40)
    assert with_margin(ballast, 16, Fraction(1, 1 << 84), FLOAT32).level == 2.0**42
    assert with_margin(ballast, 16, Fraction(1, 1 << 90), FLOAT32) == ballast
    for format in (BFLOAT16, FLOAT16):
        assert with_margin(Ballast((4.0,), 16.0), 16, Fraction(1), format).level == 16


@pytest.mark.parametrize(
    ("bound", "remedy"), [(2.0**52, "a max_length [48] times shorter may fit"), (2.0**90, "; declare smaller bounds")]
)
def test_data_that_no_ballast_absorbs_are_refused_with_what_would_fit(bound: float, remedy: str):
    with pytest.raises(CompileError, match=remedy):
        choose_ballast(64, np.array([bound]), FLOAT32)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
def test_lanes_that_a_norm_would_flush_are_refused_and_the_finest_others_are_exact(target: str):
    with pytest.raises(CompileError, match="fine.*multiples of 2.52435e-29, .* keeps multiples of 5.04871e-29"):
        language_model(compiler.compile(_beside_a_count(2.0**-95), target))
    circuit = _beside_a_count(2.0**-94)
    model = language_model(compiler.compile(circuit, target))
    assert model.ballast.level == 2.0**32
    ids = np.array([[0, 1, 1, 0, 0, 1] * 3])
    with torch.no_grad(), flushed():
        found = Stack.from_language_model(model.config, model.tensors)(torch.from_numpy(ids))
    wanted = interpret(circuit, ids)[circuit.output].astype(float)
    assert np.array_equal(found[..., :2].double().numpy(), wanted) and wanted[0, 1:, 0].all()


def test_a_weight_that_is_flushed_is_refused():
    """5 and −7 of 2^-122 are numbers of float32; the weight that gives them back is none that every backend has."""
    with pytest.raises(CompileError, match="a weight that float32 does not hold exactly; .* is out of the range"):
        bare(compiler.compile(_beside_a_count(2.0**-122)))
