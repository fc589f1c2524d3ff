"""Real numbers on unmodified Mamba blocks: products, memories and inner products against Fractions, and what is
refused.
"""

from fractions import Fraction

import numpy as np
import pytest
import torch

from compiler.artifact.numeric import numeric_stack, reference
from compiler.artifact.package import language_model
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.interpreter import interpret
from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.reals import choose, differs, exceeds
from compiler.language.source import Tokens, numbers
from compiler.language.stream import constant
from compiler.language.types import Bool, Int, OneHot, Real
from compiler.language.words import concatenate, dot, latch, latch_bank, lti, running_max, scaled_sum, select

LENGTH, BATCH = 6, 8
X = numbers(Real(-1024, 1024, 2), "x")
W = numbers(Real(-1024, 1024, 2), "w")
FLAG = numbers(Bool(), "flag")
N = numbers(Int(-9, 9), "n")
KEY = numbers(OneHot(3), "key")
Q = np.array([[1, -2], [3, 0.5]])

CIRCUITS = {
    "product": (X * W, 1),
    "square": (X.square(), 1),
    "power": (X**5, 3),
    "power-of-two": (X**8, 3),
    "product-with-flag": (FLAG * X, 1),
    "product-with-integer": (N * X, 1),
    "shifted-product": (X.shift(2) * W.shift(1), None),
    "linear": (Q @ X + 3 * W.shift(5) - 1, None),
    "select": (select(FLAG, X, W), 1),
    "latch": (latch(X, FLAG), 1),
    "latched-product": (latch(X, FLAG) * W, 2),
    "gated-latch": (latch(X, FLAG) * FLAG, 1),
    "cumsum": (X.cumsum(), 1),
    "filter": (lti(X, [1, Fraction(-1, 2), 0, 4]), None),
    "dot": (dot(X, W), 1),
    "quadratic-form": (dot(X, Q @ X), 1),
    "linear-attention": (memory.outer_sum(X, write=Q @ X, read=W), 1),
    "last-value": (memory.write(KEY, X, FLAG, "last").read(KEY), 1),
    "first-latched": (latch(X, FLAG, first=True), None),
    "memory": (memory.write(KEY, X, FLAG).read(KEY), 1),
    "scaled-sum": (scaled_sum(X, W, N * constant(1)[[0, 0]]), None),
    "scaled-sum-of-real": (scaled_sum(X, W, X - W), 1),
    "integers-through-scaled-sum": (scaled_sum(N, N - 1, N), 1),
}


def random_inputs(seed, draw):
    """Values for all four input streams; `draw` makes those of the real ones."""
    rng = np.random.default_rng(seed)
    shape = (BATCH, LENGTH)
    return {
        X: draw(rng, (*shape, 2)),
        W: draw(rng, (*shape, 2)),
        FLAG: rng.integers(0, 2, (*shape, 1)).astype(float),
        N: rng.integers(-9, 10, (*shape, 1)).astype(float),
        KEY: np.eye(3)[rng.integers(0, 3, shape)],
    }


def integers(rng, shape):
    return rng.integers(-5, 6, shape).astype(float)


def every_magnitude(rng, shape):
    """Float32 numbers of either sign between 1e-6 and 1e3."""
    return (rng.choice([-1, 1], shape) * 10.0 ** rng.uniform(-6, 3, shape)).astype(np.float32).astype(float)


def exact(values):
    """The values as Fractions."""
    return {s: np.vectorize(lambda v: Fraction(float(v)), otypes=[object])(v) for s, v in values.items()}


def compiled(name):
    output, blocks = CIRCUITS[name]
    result = compile(Circuit(name, output, length=LENGTH))
    if blocks is not None:
        assert len(result.blocks) == blocks
    return result


@pytest.mark.parametrize("name", CIRCUITS)
def test_exact_on_integers(name):
    circuit, values = compiled(name), random_inputs(1, integers)
    expected = reference(circuit, exact(values)).astype(float)
    assert np.array_equal(numeric_stack(circuit).run(values), expected)


@pytest.mark.parametrize("name", CIRCUITS)
def test_within_a_few_units_on_real_numbers(name):
    """Against the sum of the absolute values of what is added up: the circuit run on |inputs| and |weights|."""
    circuit, values = compiled(name), random_inputs(2, every_magnitude)
    expected = reference(circuit, exact(values)).astype(float)
    error = np.abs(numeric_stack(circuit).run(values) - expected)
    assert (error <= 2e-6 * magnitude(circuit, values) + 1e-12).all()


def magnitude(circuit, values):
    """A scale for the error of each number: products alone are compared with themselves, sums with their
    largest run.
    """
    expected = np.abs(reference(circuit, exact(values)).astype(float))
    alone = circuit.source.name in (
        "product",
        "square",
        "power",
        "power-of-two",
        "product-with-flag",
        "shifted-product",
        "latch",
        "latched-product",
    )
    return expected if alone else expected.max()


@pytest.mark.parametrize("name", CIRCUITS)
def test_the_block_ir_computes_the_same(name):
    circuit, values = compiled(name), random_inputs(3, integers)
    stack = numeric_stack(circuit)
    lanes = stack.pack(values).double().numpy()[..., : circuit.lanes.count]
    if not stack.residual:  # one block without residual packs its lanes more tightly
        lanes = np.concatenate(
            [
                lanes[..., : circuit.lanes.n_inputs],
                np.zeros((*lanes.shape[:2], circuit.lanes.count - circuit.lanes.n_inputs)),
            ],
            -1,
        )
    for block in circuit.blocks:
        lanes = lanes + block.run(lanes)
    assert np.array_equal(lanes @ circuit.head.toarray().T, stack.run(values))


def test_silu_halves_differ_by_the_number():
    """|silu(x) − silu(−x) − x| ≤ 4u|x|, on which the error bounds rest."""
    x = torch.logspace(-30, 4, 400_001, dtype=torch.float64).float()
    halves = torch.nn.functional.silu(x).double() - torch.nn.functional.silu(-x).double()
    assert ((halves - x.double()).abs() <= 4 * 2.0**-24 * x.double()).all()


def test_softplus_halves_are_off_by_little():
    """|softplus(u) − softplus(−u) − u| ≤ 2^−20 (|u| + 1), on which the bound of scaled sums rests."""
    u = torch.logspace(-30, 4, 400_001, dtype=torch.float64).float()
    halves = torch.nn.functional.softplus(u).double() - torch.nn.functional.softplus(-u).double()
    assert ((halves - u.double()).abs() <= 2.0**-20 * (u.double() + 1)).all()


def test_equal_powers_are_computed_once():
    circuit = compile(Circuit("power", numbers(Real(-8, 8), "y") ** 16, length=LENGTH))
    assert [len(block.channels.names) for block in circuit.blocks] == [4, 4, 4, 4]


# Refusals -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "reason"),
    [
        (running_max(X[0], FLAG), "must be shown to be an integer"),
        (X > W, "take exceeds"),
        (X == W, "take exceeds"),
        (X[0].one_hot(3), "an Int is needed"),
        (X[0].lookup([1, 2]), "an Int, a Bool or a OneHot is needed"),
    ],
)
def test_jumps_of_real_numbers_are_refused(stream, reason):
    with pytest.raises(CompileError, match=reason):
        compile(Circuit("t", stream, length=LENGTH))


@pytest.mark.parametrize("target", ["mamba2", "s4d"])
def test_other_targets_refuse_real_numbers(target):
    with pytest.raises(CompileError, match="for mamba only"):
        compile(Circuit("t", X * W, length=LENGTH), target)


def test_numbers_and_tokens_do_not_mix():
    alphabet = Alphabet.of("a", "b")
    token = Tokens(alphabet).is_in("a")
    with pytest.raises(CompileError, match="tokens or numbers, not both"):
        compile(Circuit("t", token * X, InputLanguage.everything(alphabet, LENGTH)))
    with pytest.raises(CompileError, match="no vocabulary"):
        language_model(compile(Circuit("t", X * W, length=LENGTH)))
    with pytest.raises(ValueError, match="reads tokens"):
        numeric_stack(compile(Circuit("t", token.cumsum(), InputLanguage.everything(alphabet, LENGTH))))


def test_a_product_beyond_float32_is_refused():
    with pytest.raises(CompileError, match="float32 ends at"):
        compile(Circuit("t", X[0] ** 16, length=LENGTH))
    with pytest.raises(CompileError, match="leaves no range"):
        wide = numbers(Real(-(2.0**35), 2.0**35), "wide")
        compile(Circuit("t", scaled_sum(wide, wide, wide), length=LENGTH))


@pytest.mark.parametrize(
    "values, fragment",
    [(np.full((1, 2, 1), 2.5), "2.5"), (np.full((1, 2, 1), 10.0), "10"), (np.full((1, 2, 1), np.nan), "nan")],
)
def test_inputs_outside_their_type_are_refused(values, fragment):
    stack = numeric_stack(compile(Circuit("t", N + 1, length=LENGTH)))
    with pytest.raises(ValueError, match=fragment):
        stack.run({N: values})
    with pytest.raises(ValueError, match="has no values"):
        stack.run({FLAG: values})


def test_a_number_just_outside_is_not_written_as_the_bound():
    y = numbers(Real(-0.001, 0.001), "y")
    stack = numeric_stack(compile(Circuit("t", y + 1, length=LENGTH)))
    with pytest.raises(ValueError, match=r"'y' holds 0.0010000000474974513, and it must be .* from -0.001 to 0.001"):
        stack.run({y: np.full((1, 2, 1), np.float32(0.001), dtype=float)})


@pytest.mark.parametrize("gap", [0.5, 0.75, 0.99])
def test_comparisons_are_linear_up_to_the_power_of_two_within_the_gap(gap):
    """As their docstrings say: 0.5 here."""
    y = numbers(Real(-2, 2), "y")
    values = np.array([Fraction(n, 8) for n in range(-8, 9)], dtype=object).reshape(1, -1, 1)
    ramps = {
        exceeds(y, 0, gap): [min(max(2 * v, 0), 1) for v in values.flat],
        differs(y, 0, gap): [min(2 * abs(v), 1) for v in values.flat],
        choose(y, 3, -1, gap): [min(max(4 * v + 1, -1), 3) for v in values.flat],
    }
    for stream, expected in ramps.items():
        assert interpret(Circuit("t", stream, length=17), inputs={y: values})[stream].ravel().tolist() == expected
    for word in (exceeds, differs, choose):
        assert "g is the largest power of two that is at most the gap" in word.__doc__


def test_concatenated_inputs_and_one_hots():
    place = numbers(OneHot(LENGTH), "place")
    circuit = compile(Circuit("t", latch_bank(concatenate(X, W), place), length=LENGTH))
    values = random_inputs(5, integers) | {place: np.broadcast_to(np.eye(LENGTH), (BATCH, LENGTH, LENGTH)).copy()}
    got = numeric_stack(circuit).run(values)[:, -1].reshape(BATCH, LENGTH, 4)
    assert np.array_equal(got, np.concatenate([values[X], values[W]], -1))
