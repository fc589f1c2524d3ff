"""The product by four values of silu: what it computes on the real module, how far that is from a·b, and its size."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from compiler.artifact.artifact import Artifact
from compiler.artifact.numeric import numeric_stack
from compiler.compiled import Compiled
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.language.source import numbers
from compiler.language.stream import Stream, constant
from compiler.language.types import Int, Real
from compiler.language.words import fading_sum, silu_product
from tests.gadgets.harness import LETTERS, compiled, counted, signed

A, B = (numbers(Real(-1, 1, 2), name) for name in "ab")
SCALES = (2, 16, 128, 1024)


def _made(scale: int) -> Compiled:
    return compile(Circuit("alone", silu_product(A, B, scale), length=64))


def _pairs() -> dict[str, np.ndarray]:
    """Real numbers of at most 1, with the corners and zeros."""
    random = np.random.default_rng(0).uniform(-1, 1, (2, 4, 64, 2)).astype(np.float32).astype(np.float64)
    random[:, 0, :3, 0] = [[1, -1, 0], [1, 1, 1]]
    return dict(zip("ab", random, strict=True))


def _ran(made: Compiled, values: dict[str, np.ndarray]) -> np.ndarray:
    return numeric_stack(made).run({A: values["a"], B: values["b"]})


def _lemma(a: float, b: float, scale: int) -> float:
    """(λ²/2)·Σ ±silu(±(a ± b)/λ) in float64."""

    def silu(z: float) -> float:
        return z / (1 + math.exp(-z))

    p, m = (a + b) / scale, (a - b) / scale
    return scale**2 / 2 * (silu(p) + silu(-p) - silu(m) - silu(-m))


def _rounding(size: np.ndarray, scale: int) -> np.ndarray:
    """Four silu of at most (s/2λ)(1 + s/2λ), times λ²/2, each with twelve roundings of float32; size: s = |a| + |b|."""
    return scale * size * (1 + size / (2 * scale)) * 12.001 * 2.0**-24


@pytest.mark.parametrize("scale", SCALES)
def test_the_module_computes_the_four_values_of_the_lemma(scale: int):
    values = _pairs()
    expected = np.vectorize(_lemma)(values["a"], values["b"], scale)
    size = np.abs(values["a"]) + np.abs(values["b"])
    assert (np.abs(_ran(_made(scale), values) - expected) <= _rounding(size, scale) + 1e-12).all()


@pytest.mark.parametrize("scale", SCALES)
def test_it_is_the_product_within_its_claim(scale: int):
    values, made = _pairs(), _made(scale)
    size = np.abs(values["a"]) + np.abs(values["b"])
    off = np.abs(_ran(made, values) - values["a"] * values["b"])
    assert (off <= size**4 / (48 * scale**2) + _rounding(size, scale)).all()
    assert off.max() <= made.error_bound


def test_at_a_small_scale_the_curve_is_seen():
    """At λ = 2 and a = b = 1/2 the lemma is 0.0051 short, of at most 0.0052: silu itself stands there, and no relu."""
    values = {name: np.full((1, 1, 2), 0.5) for name in "ab"}
    short = 0.25 - _ran(_made(2), values)
    claim = 1 / (48 * 2**2)
    assert (0.9 * claim < short).all() and (short < claim).all()


@pytest.mark.parametrize("target", ["mamba", "mamba2", "s4d", "mamba-delta-t"])
def test_it_takes_four_channels_of_one_block_without_a_state(target: str):
    made = compiled(silu_product(signed, counted), target)
    (block,) = made.blocks
    assert len(block.channels.names) == 4 and block.d_state == 0 and not block.channels.writes.any()
    assert block.channels.curved_gates == {0, 1, 2, 3}
    lanes = made.lanes.embedding.toarray()[np.arange(len(LETTERS.tokens))[None]]
    got = (lanes + block.run(lanes)) @ made.head.toarray().T
    assert np.allclose(got[0, :, 0], [_lemma(a, b, 128) for a, b in ((3, 1), (-2, 2), (0, 0), (7, 5))], atol=1e-9)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_formats_without_a_proof_are_refused(dtype: str):
    with pytest.raises(CompileError, match=rf"proved in float32 only, and the dtype is {dtype}; write a \* b"):
        compile(Circuit("alone", silu_product(A, B), length=8), dtype=dtype)


ZEROS: dict[str, Callable[[Stream, Stream], Stream]] = {
    "a declared 0": lambda a, zero: zero,
    "before the start": lambda a, zero: a.shift(9),
    "a rectifier never on": lambda a, zero: (a - 6).relu(),
    "a multiple by 0": lambda a, zero: a * 0,
    "a constant": lambda a, zero: constant(0),
}


@pytest.mark.parametrize("kind", ZEROS)
@pytest.mark.parametrize("flipped", [False, True])
def test_a_factor_that_is_always_0_promises_no_bits(kind: str, flipped: bool):
    """Four silus that should cancel do not to the last bit, and λ² multiplies what is left of them."""
    a, zero = numbers(Int(-6, 6), "a"), numbers(Int(0, 0), "zero")
    factors = (a, ZEROS[kind](a, zero))
    product = silu_product(*(factors[::-1] if flipped else factors), 16) * 2**20
    made = compile(Circuit("nothing", product, length=4))
    assert made.error_bound > 0
    assert Artifact.of(made).promise["level"] == "bounded-error"
    stack = numeric_stack(made)
    for sequences in (1, 2, 3, 8, 13):
        values = np.resize(np.arange(-6.0, 7.0), (sequences, 4, 1))
        given = {record.name: {"a": values, "zero": 0 * values}[record.name] for record in stack.inputs}
        assert np.abs(stack.run(given)).max() <= made.error_bound


def test_what_is_decided_of_a_product_by_0_is_refused():
    """Known to be 0 of the circuit, and not of its weights: no comparison of it is decided."""
    a = numbers(Int(-6, 6), "a")
    with pytest.raises(CompileError, match="lattice"):
        compile(Circuit("sign", silu_product(a, (a - 6).relu(), 16) * 2**20 >= 1, length=4))


def test_of_two_factors_that_are_0_all_four_silus_are():
    a = numbers(Int(0, 0), "a")
    made = compile(Circuit("nothing", silu_product(a, a.shift(1), 16) * 2**20, length=4))
    assert made.error_bound == 0
    assert Artifact.of(made).promise["level"] == "bit-exact"
    assert not numeric_stack(made).run({a: np.zeros((3, 4, 1))}).any()


def test_a_product_by_0_that_is_curved_keeps_its_bound_behind_others():
    """It adds to sums and states that its own domain would let pass for those of zeros."""
    a = numbers(Int(-6, 6), "a")
    nothing = silu_product(a, (a - 6).relu(), 8)
    for after in (nothing.cumsum(), fading_sum(nothing, 0.5), nothing * a, silu_product(nothing, a, 8)):
        assert compile(Circuit("behind", after, length=4)).error_bound > 0


@pytest.mark.parametrize(("most", "scale"), [(2.0**90, 2**60), (2.0**126, 128), (1.0, 2**64)])
def test_terms_beyond_float32_are_refused(most: float, scale: int):
    """λ²/2 · silu(s/λ) was infinite, and so was its counterpart: the model gave NaN within a finite bound."""
    x, y = numbers(Real(0, most), "x"), numbers(Real(0, 2.0**-10), "y")
    with pytest.raises(
        CompileError, match="its (weights|four terms, before they cancel,) can reach .*, and float32 ends at"
    ):
        compile(Circuit("far", silu_product(x, y, scale), length=1))


def test_terms_just_within_float32_are_finite():
    x, y = numbers(Real(0, 2.0**64), "x"), numbers(Real(0, 1), "y")
    made = compile(Circuit("near", silu_product(x, y, 2**60), length=1))
    out = numeric_stack(made).run({x: np.full((1, 1, 1), 2.0**64), y: np.ones((1, 1, 1))})
    assert np.isfinite(out).all() and abs(out[0, 0, 0] - 2.0**64) <= made.error_bound
