"""Polynomials on real Mamba blocks: right on every polynomial, exact on integers, errors within their bound."""

from fractions import Fraction

import numpy as np
import pytest

from compiler.errors import CompileError
from compiler.runtime import mamba_classes
from constructions.polynomials.polynomial_expression import parse_polynomial
from constructions.polynomials.polynomial_mamba import build_on_mamba, depth, product_tree
from constructions.polynomials.polynomial_mamba_report import measured
from tests.constructions.test_polynomial import POLYNOMIALS
from tests.spread import some

EXAMPLE = "5*x1**2*x3**3 - x2 + 7"


def check_inputs(model, x):
    """The largest error relative to Σ |terms|, after asserting that each answer is within its forward error bound."""
    worst = 0.0
    for answer, row in zip(model(x), x, strict=True):
        exact_row = [Fraction(float(v)) for v in row]
        terms = [
            m.coefficient * np.prod([exact_row[i - 1] ** p for i, p in m.factors]) for m in model.polynomial.monomials
        ]
        error = float(abs(Fraction(float(answer)) - model.polynomial.at(exact_row)))
        assert error <= model.forward_error(row)
        total = float(abs(model.polynomial.constant) + sum(abs(t) for t in terms))
        worst = max(worst, error / total if total > 1e-30 else 0.0)
    return worst


def random_reals(rng, model, count):
    """Float32 inputs, the first all zeros, the second with a zero."""
    x = rng.normal(size=(count, model.polynomial.length)).astype(np.float32).clip(-model.bound, model.bound)
    x[0], x[1, 0] = 0, 0
    return x


@pytest.mark.parametrize("first", range(4))
def test_100_random_polynomials_on_the_real_modules(first):
    """Relative error (against Σ |terms|) at most 1e-6, 1 + ⌈log2 degree⌉ blocks; a fifth of those that the ideal
    machine is tried on.
    """
    for seed in some(range(first * 5, len(POLYNOMIALS), 20), 0.1):
        p = POLYNOMIALS[seed]
        model = build_on_mamba(p)
        assert len(model.compiled.blocks) == depth(model.polynomial)
        assert check_inputs(model, random_reals(np.random.default_rng(seed), model, 6)) <= 1e-6, str(p)


@pytest.mark.parametrize("seed", range(40))
def test_the_ternary_form_keeps_its_bound_in_fewer_blocks(seed):
    model = build_on_mamba(POLYNOMIALS[seed], "ternary")
    assert len(model.compiled.blocks) == depth(model.polynomial, "ternary") <= depth(model.polynomial)
    check_inputs(model, random_reals(np.random.default_rng(seed), model, 6))


@pytest.mark.parametrize("form", ["binary", "ternary"])
def test_exact_on_integers(form):
    """Every partial product and sum below 2^24."""
    rng = np.random.default_rng(0)
    for text, largest in (
        (EXAMPLE, 9),
        ("x1**3*x2**2*x3 - 4*x1*x3 + 1", 6),
        ("x1**9*x2**9*x3**5", 2),
        ("-x1", 1000),
        ("x2**2/2 - 5", 99),
    ):
        model = build_on_mamba(parse_polynomial(text, 3), form)
        x = rng.integers(-largest, largest + 1, (60, 3))
        exact = [model.polynomial.at([int(v) for v in row]) for row in x]
        small = np.array([abs(e) < 2**22 for e in exact])
        answers = model(x)
        assert small.sum() >= 20
        assert [Fraction(float(a)) for a in answers[small]] == [e for e, s in zip(exact, small, strict=True) if s]


def test_degree_27_at_every_magnitude_that_float32_holds():
    model = build_on_mamba(parse_polynomial("x1**9*x2**9*x3**9"), bound=16.0)
    assert len(model.compiled.blocks) == 6
    rng = np.random.default_rng(3)
    for exponent in np.linspace(-1.0, 1.1, 8):
        x = (rng.choice([-1, 1], (20, 3)) * 10.0 ** (exponent + rng.uniform(-0.05, 0.05, (20, 3)))).astype(np.float32)
        assert check_inputs(model, x) <= 1e-6


def test_degree_27_in_four_blocks():
    model = build_on_mamba(parse_polynomial("x1**9*x2**9*x3**9"), "ternary")
    assert len(model.compiled.blocks) == 4
    x = np.random.default_rng(4).uniform(0.5, 2, (40, 3)).astype(np.float32)
    assert check_inputs(model, x) <= 2e-6


def test_the_ternary_form_loses_small_numbers_and_the_binary_does_not():
    """x^27 at 0.08: the factor 0.08^9 ≈ 1e-10 stands at Δ with an absolute error."""
    x = np.full((1, 1), 0.08, dtype=np.float32)
    exact = Fraction(float(x[0, 0])) ** 27
    errors = {
        form: abs(Fraction(float(build_on_mamba(parse_polynomial("x1**27"), form, 4.0)(x)[0])) / exact - 1)
        for form in ("binary", "ternary")
    }
    assert errors["binary"] <= 1e-6 < errors["ternary"]


@pytest.mark.quick
def test_the_blocks_are_the_library_modules():
    model = build_on_mamba(parse_polynomial(EXAMPLE, 3))
    assert all(type(block) is mamba_classes().Mamba for block in model.stack.blocks)


def test_constants_and_single_variables():
    assert [*build_on_mamba(parse_polynomial("7", 2))(np.ones((2, 2)))] == [7, 7]
    assert [*build_on_mamba(parse_polynomial("x2", 2))(np.array([[3.0, -0.1]]))] == [np.float32(-0.1)]


@pytest.mark.parametrize(
    "degree, arity, levels",
    [(1, 2, 0), (2, 2, 1), (3, 2, 2), (27, 2, 5), (33, 2, 6), (3, 3, 1), (4, 3, 2), (27, 3, 3), (28, 3, 4)],
)
def test_product_trees_are_as_flat_as_can_be(degree, arity, levels):
    def height(tree):
        return 0 if isinstance(tree, int) else 1 + max(height(part) for part in tree)

    def leaves(tree):
        return [tree] if isinstance(tree, int) else [leaf for part in tree for leaf in leaves(part)]

    variables = tuple(i % 3 for i in range(degree))
    tree = product_tree(variables, arity)
    assert height(tree) == levels and tuple(leaves(tree)) == variables


def test_inputs_and_polynomials_beyond_the_range_are_refused():
    model = build_on_mamba(parse_polynomial("x1**27"))
    with pytest.raises(ValueError, match="x"):
        model(np.array([[2 * model.bound]]))
    with pytest.raises(CompileError, match="exceed|ends at"):
        build_on_mamba(parse_polynomial("x1**27"), "binary", 1024.0)


@pytest.mark.parametrize(
    "text", ["1e-60*x1", "1e-60*x1*x2", "1e-44*x1*x2", "1.5e-38*x1", "x1 + 1e-60*x2", "x1 - 1e-400"]
)
def test_a_coefficient_that_float32_loses_is_refused(text):
    with pytest.raises(ValueError, match="is too small: .* --arch s6") as refused:
        build_on_mamba(parse_polynomial(text))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("form", ["binary", "ternary"])
@pytest.mark.parametrize(
    "text", ["2**60*x1", "2**80*x1*x2", "2**60*x1**3 + x2", "x1**9", "2**40*x1**5*x2", "x1/2**100"]
)
def test_the_bound_holds_where_numbers_underflow(text, form):
    """Tiny inputs beside large coefficients, and powers below 2^-126: roundings alone do not explain the errors."""
    model, rng, lost = build_on_mamba(parse_polynomial(text), form), np.random.default_rng(0), 0
    for size in (-147, -130, -75, -70, -60, -40, -20, -14):
        shape = (20, model.polynomial.length)
        x = (rng.choice([-1, 1], shape) * 2.0 ** (size + rng.uniform(-2, 2, shape))).astype(np.float32)
        for answer, row in zip(model(x), x, strict=True):
            exact = model.polynomial.at([Fraction(float(v)) for v in row])
            error = abs(Fraction(float(answer)) - exact)
            assert error <= model.forward_error(row)
            lost += error > model.forward_error(row, lost=0.0)
    assert lost or (text, form) == ("x1**9", "ternary")  # whose factor at Δ is off by more


def test_small_terms_are_measured():
    """Σ|terms| is below 2^-90 on every input, and nothing underflows."""
    row = measured(build_on_mamba(parse_polynomial("1e-30*x1**3")), 50, 0)
    given = Fraction(1, 10**30)
    off = abs(Fraction(float(np.float32(1e-30))) / given - 1)
    assert row["coefficient_rounding"] == float(off) > 3e-9
    assert (row["inputs_where_all_terms_are_0"], row["inputs_that_underflow"]) == (0, 0)
    assert 1e-9 < row["largest_relative_error"] < 1e-6


@pytest.mark.parametrize("text, underflow, zero", [("x1/2**126", 40, 0), ("0", 0, 40)])
def test_what_was_not_measured_is_none_and_counted(text, underflow, zero):
    row = measured(build_on_mamba(parse_polynomial(text)), 40, 0)
    assert (row["inputs"], row["inputs_that_underflow"], row["inputs_where_all_terms_are_0"]) == (40, underflow, zero)
    assert row["largest_relative_error"] is None and row["within_bound"]
    assert row["coefficient_rounding"] == (None if zero else 0)


def test_every_other_input_is_so_large_that_no_power_underflows():
    row = measured(build_on_mamba(parse_polynomial("x1**1000")), 40, 0)
    assert 10 <= row["inputs_that_underflow"] <= 20 and 1e-6 < row["largest_relative_error"] < 1e-3


def test_the_error_of_one_product_is_what_its_docstring_counts():
    """Two rounded factors are right within 2^−21, silu and the sums add 12 units of 2^−24.

    One monomial and a constant add 3 of 2^−23.
    """
    model, (a, b) = build_on_mamba(parse_polynomial("x1*x2 + 0"), bound=16.0), (1.5, 2.5)
    read = 2.0**-21
    reached = a * (1 + read) * b * (1 + read)
    product = reached - a * b + 12 * 2.0**-24 * reached + 2.0**-124
    expected = product + 3 * 2.0**-23 * (a * b + product)
    assert model.forward_error(np.array([a, b])) == pytest.approx(expected, rel=1e-12)


def test_the_error_of_a_triple_product_is_what_its_docstring_counts():
    model, (a, b, c) = build_on_mamba(parse_polynomial("x1*x2*x3"), "ternary", bound=16.0), (1.5, 2.5, 0.5)
    reads = [v * (1 + 2.0**-21) for v in (a, b, c)]
    reached = float(np.prod(reads))
    product = reached - a * b * c + 2.0**-19 * reads[0] * reads[2] * (reads[1] + 1 / model.rate) + 2.0**-124
    expected = product + 3 * 2.0**-23 * (a * b * c + product)
    assert model.forward_error(np.array([a, b, c])) == pytest.approx(expected, rel=1e-12)
