"""Theorem 2 and Lemma 3 of paper C: identities proved in Q[x1 … xL], sizes equal to the formulas, controls that must
fail.
"""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import sympy

from compiler.errors import CompileError
from constructions.polynomials import polynomial
from constructions.polynomials.polynomial import PolynomialModel, build, build_monomial, formula, measured, report
from constructions.polynomials.polynomial_circuit import ALWAYS, lower
from constructions.polynomials.polynomial_circuits import FORMS, expected_widths, padded_length, theorem2
from constructions.polynomials.polynomial_expression import parse_polynomial
from constructions.polynomials.polynomial_terms import Monomial, Polynomial, from_terms
from constructions.polynomials.polynomial_transition import Exponential, Squashed, Taylor
from tests.spread import some
from verify import forward_error

EXAMPLE = "5*x1**2*x3**3 - x2 + 7"


def random_polynomial(rng, most_variables=5, most_exponent=6, whole=False):
    """Up to five monomials whose factors may repeat a variable; some coefficients 0, some polynomials constant."""
    length = rng.randint(1, most_variables)
    terms = {}
    for _ in range(rng.randint(0, 5)):
        factors, room = [], dict.fromkeys(range(1, length + 1), most_exponent)
        for _ in range(rng.randint(0, length + 1)):
            i = rng.randint(1, length)
            p = rng.randint(0, room[i])
            room[i] -= p
            factors.append((i, p))
        coefficient = Fraction(rng.randint(-9, 9), 1 if whole else rng.randint(1, 7))
        terms[tuple(factors)] = terms.get(tuple(factors), 0) + coefficient
    return from_terms(length, terms)


POLYNOMIALS = [random_polynomial(random.Random(seed)) for seed in range(500)]


def test_the_random_polynomials_cover_the_cases():
    assert any(not p.monomials for p in POLYNOMIALS)
    assert any(len(p.variables) == 1 for p in POLYNOMIALS)
    assert any(len(p.variables) == 5 for p in POLYNOMIALS)
    assert max(p.largest_exponent for p in POLYNOMIALS) == 6


@pytest.mark.parametrize("form", FORMS)
def test_500_random_polynomials_are_proved_and_have_the_formulas_sizes(form):
    """The network is run on the generators of Q[x1 … x5]: a zero difference is the identity for all inputs."""
    for p in some(POLYNOMIALS, 0.007):
        model = build(p, form)
        assert model.difference() == 0, str(p)
        assert model.circuit.widths() == expected_widths(p, form)
        assert model.padded == padded_length(p, form)
        excess = max((m.degree - len(m.factors) for m in p.monomials), default=0)
        assert model.padded <= p.length + (excess if form == "three-block" else p.largest_exponent - 1)


@pytest.mark.parametrize("form", FORMS)
def test_residual_and_parallel_forms(form):
    for p in POLYNOMIALS[:40]:
        model = build(p, form, residual=True)
        assert model.difference() == 0
        if form != "three-block":
            assert set(model.circuit.widths()) == {
                2 + model.padded + len(p.variables) + 2 * p.factors + 2 * len(p.monomials)
            }
        x = np.array([[random.Random(i).randint(-4, 4) for i in range(p.length)]], dtype=object)
        assert model(x, "parallel")[0] == model(x)[0] == p.at(x[0])


@pytest.mark.parametrize("form", FORMS)
def test_the_example_on_sympy_symbols(form):
    model = build(parse_polynomial(EXAMPLE, 3), form)
    x = sympy.symbols("x1 x2 x3")
    (answer,) = model(np.array([x], dtype=object))
    assert sympy.expand(answer - (5 * x[0] ** 2 * x[2] ** 3 - x[1] + 7)) == 0


def test_the_examples_printed_sizes():
    """Specification I.6: T = 5, V = 3, F = 3, M = 2, width 11, nonzeros 54/96/71/77; x1 x2 x3 x4: T = 4, width 12."""
    model = build(parse_polynomial(EXAMPLE, 3))
    assert (model.padded, max(model.circuit.widths()), model.network.nonzeros) == (5, 11, [54, 96, 71, 77])
    multilinear = build(parse_polynomial("x1*x2*x3*x4"))
    assert (multilinear.padded, max(multilinear.circuit.widths())) == (4, 12)


@pytest.mark.parametrize("form", FORMS)
def test_exact_on_fractions_with_negative_and_zero_inputs(form):
    rng = random.Random(1)
    for p in POLYNOMIALS[::10]:
        x = np.array(
            [[rng.choice([0, -1, 3, Fraction(-5, 3), -4]) for _ in range(p.length)] for _ in range(6)], dtype=object
        )
        assert [*build(p, form)(x)] == [p.at(row) for row in x]


@pytest.mark.parametrize("form", FORMS)
def test_float_errors_keep_their_bound(form):
    for seed, p in some(enumerate(POLYNOMIALS[:30]), 0.06):
        rows = measured(build(p, form), 20, seed)
        assert set(rows) == {"float32", "float64"} and all(row["within_bound"] for row in rows.values()), str(p)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("text", ["x1*x2*x3/2**124", "x1*x2*x3*x4*x5/2**126"])
def test_float_errors_keep_their_bound_where_float32_underflows(monkeypatch, form, text):
    """They do not keep that of their roundings alone."""
    model = build(parse_polynomial(text), form)
    assert measured(model, 40, 0)["float32"]["within_bound"]
    monkeypatch.setitem(forward_error.LEAST_NORMAL, "float32", 0.0)
    assert not measured(model, 40, 0)["float32"]["within_bound"]


def test_a_dtype_that_a_coefficient_underflows_is_not_run():
    rows = measured(build(parse_polynomial("1e-60*x1")), 5, 0)
    assert rows["float32"] == {"not_run": "a coefficient is below 2^-126"} and rows["float64"]["within_bound"]
    rows = measured(build(parse_polynomial("1e-400*x1 + 10**400*x2")), 5, 0)
    assert [*rows["float32"]] == [*rows["float64"]] == ["not_run"]


def test_a_relative_error_of_no_input_is_none():
    for text, count in (("0", 5), ("x1 + 1", 0)):
        row = measured(build(parse_polynomial(text)), 5, 0)["float32"]
        assert (row["inputs"], row["inputs_where_it_is_0"]) == (5, count)
        assert (row["largest_relative_error"] is None) == (count == 5)


def test_inputs_that_would_take_too_long_are_counted(monkeypatch):
    model = build(parse_polynomial("x1**20"))
    monkeypatch.setattr(polynomial, "MOST_PRODUCTS", 3 * model.products)
    row = measured(model, 50, 0)["float64"]
    assert (row["inputs"], row["inputs_left_out"]) == (3, 47) and row["within_bound"]


@pytest.mark.parametrize("run", ["exactly", "majorant"])
def test_a_network_runs_once_for_all_inputs(monkeypatch, run):
    """Its constants, T lanes of them, are computed once: for each input it took minutes at a power of 400."""
    batches, right = [], PolynomialModel.__call__
    monkeypatch.setattr(
        PolynomialModel, "__call__", lambda self, x, form="sequential": batches.append(len(x)) or right(self, x, form)
    )
    model, x = build(parse_polynomial("x1**3*x2 - x2/3 + 1/7")), np.array([[1, 2], [3, -4], [0, 5]])
    answers = getattr(model, run)(x)
    assert batches == [1]
    if run == "exactly":
        assert [*answers] == [model.polynomial.at([Fraction(int(v)) for v in row]) for row in x]
    else:
        assert answers.bound.shape == (3,)


def test_torch_holds_a_few_inputs_at_once(monkeypatch):
    model, x = build(parse_polynomial("x1**9 - x2")), np.random.default_rng(0).normal(size=(20, 2))
    whole, widest, right = model.in_torch(x, "float64"), [], PolynomialModel.tokens
    monkeypatch.setattr(polynomial, "MOST_NUMBERS", 4 * model.padded * len(model.network.blocks[1].channels))
    monkeypatch.setattr(PolynomialModel, "tokens", lambda self, x: widest.append(len(x)) or right(self, x))
    assert model.in_torch(x, "float64").tolist() == whole.tolist() and max(widest) <= 4


@pytest.mark.parametrize("text, length", [("x1", 10**5), ("x99999", 0), ("x1**999*x2000", 0)])
def test_a_network_too_large_to_run_is_refused_before_it_is_built(text, length):
    with pytest.raises(ValueError, match="weights are built; .*--arch mamba"):
        build(parse_polynomial(text, length))


def test_a_position_too_far_is_refused_before_anything_is_built():
    with pytest.raises(ValueError, match="weights are built"):
        build_monomial(1, 2, 1, 1, 10**9)


def test_telescoping_cancels_and_the_other_form_does_not():
    """Relative error of x^40 at 0.9 in float32 (specification I.5)."""
    p, x = parse_polynomial("x1**40"), np.array([[np.float32(0.9)]])
    exact = Fraction(float(x[0, 0])) ** 40
    errors = {form: abs(Fraction(float(build(p, form).in_torch(x, "float32")[0])) / exact - 1) for form in FORMS}
    assert errors["paper"] > 2e-6 > 1e-6 > max(errors["cancellation-free"], errors["three-block"])


# Lemma 3 --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length, variable, power, position", [(3, 2, 3, 4), (3, 2, 1, 2), (4, 4, 5, 9), (2, 1, 4, 7)])
def test_a_monomial_stands_at_its_position_alone(length, variable, power, position):
    model = build_monomial(variable, power, Fraction(-3, 2), length, position)
    x = np.array([[2, -3, 5, 7][:length]], dtype=object)
    everywhere = model.network(model.tokens(x))[0, :, 0]
    expected = [0] * model.padded
    expected[position - 1] = Fraction(-3, 2) * x[0, variable - 1] ** power
    assert [*everywhere] == expected
    assert len(model.network.blocks) == 3 and model.difference() == 0


def test_a_monomial_needs_room_for_its_copies():
    with pytest.raises(ValueError, match="at least 4.$"):
        build_monomial(2, 3, 1, 3, 3)


# Negative controls ------------------------------------------------------------------------------------


def altered(model, number, change):
    """The model with `change` applied to every channel of one block."""
    layers = list(model.circuit.layers)
    layers[number] = replace(layers[number], channels=[change(c) for c in layers[number].channels])
    circuit = replace(model.circuit, layers=layers)
    return PolynomialModel(model.polynomial, circuit, lower(circuit), model.padded, model.position)


def test_without_the_gate_of_block_three_most_polynomials_are_wrong():
    """Correction of the specification: the ungated difference carries all powers x, …, x^p."""
    rng, wrong, tried = random.Random(4), 0, 0
    while tried < 60:
        p = random_polynomial(rng, most_variables=3, most_exponent=4, whole=True)
        if p.monomials and p.largest_exponent >= 2:
            tried += 1
            wrong += altered(build(p), 2, lambda c: replace(c, gate=ALWAYS)).difference() != 0
    assert wrong >= 0.8 * tried
    assert altered(build(parse_polynomial("x1**2")), 2, lambda c: replace(c, gate=ALWAYS)).difference() != 0


def test_windows_that_start_at_the_variable_leave_nothing_at_the_end():
    """The printed prose: copies of x_2 at positions 2 … 4 of 6 give 3, 12, 39 and then 0."""
    model = build_monomial(2, 3, 1, 6, 6)
    moved = {"p[4]": "p[2]", "p[5]": "p[3]", "p[6]": "p[4]"}
    early = altered(model, 1, lambda c: replace(c, gate={moved.get(k, k): v for k, v in c.gate.items()}))
    x = np.array([[1, 3, 1, 1, 1, 1]], dtype=object)
    inside = early.network.trace(early.tokens(x))[2]
    assert [*inside["state"][0, :, 0, 0]] == [0, 3, 12, 39, 0, 0]
    assert early(x)[0] == 0


def test_sorting_saves_padding():
    """x1·x4 with L = 4 needs T = 4 sorted, and T = 5 with the factors the other way round."""
    sorted_factors = parse_polynomial("x1*x4")
    reverse = Polynomial(4, Fraction(0), (Monomial(Fraction(1), ((4, 1), (1, 1))),))
    assert (padded_length(sorted_factors), padded_length(reverse)) == (4, 5)
    model = PolynomialModel(reverse, circuit := theorem2(reverse), lower(circuit), 5, 5)
    assert model.difference() == 0


@pytest.mark.parametrize("transition", [Squashed(), Taylor(2, 2), Taylor(3, 3), Exponential()])
@pytest.mark.parametrize("form", FORMS)
def test_theorem_two_is_refused_where_its_hidden_assumption_fails(transition, form):
    with pytest.raises(CompileError) as refused:
        lower(theorem2(parse_polynomial(EXAMPLE, 3), form), transition)
    assert "block 2" in str(refused.value) and "Ā" in str(refused.value)


# Expressions --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, same",
    [
        ("(x1 + x2)**2 - x1**2 - x2**2", "2*x1*x2"),
        ("x2*x1*x2", "x1*x2**2"),
        ("-(-x1)/4 + 0.1", "x1/4 + 1/10"),
        ("x1**0 + 3*2**3", "25"),
        (sympy.Symbol("x1") ** 2 / 3 - 1, "x1**2/3 - 1"),
        ("x1 - x1", "0"),
    ],
)
def test_expressions_mean_what_they_say(text, same):
    assert parse_polynomial(text, 3) == parse_polynomial(same, 3)


@pytest.mark.parametrize(
    "text, exact",
    [
        ("1e-400", Fraction(1, 10**400)),
        ("0.12345678901234567890123", Fraction(12345678901234567890123, 10**23)),
        ("1_000.5e-3", Fraction(10005, 10**4)),
    ],
)
def test_a_decimal_is_read_digit_by_digit(text, exact):
    """As float64 1e-400 is 0, and the other one has 17 digits."""
    assert parse_polynomial(f"{text}*x1 - x1/3").monomials == (Monomial(exact - Fraction(1, 3), ((1, 1),)),)


@pytest.mark.parametrize("p", POLYNOMIALS[:60])
def test_printing_and_parsing_are_inverse(p):
    assert parse_polynomial(str(p), p.length) == p


@pytest.mark.parametrize(
    "text, fragment",
    [
        ("", "empty"),
        ("x1 +", "no expression"),
        ("x1 x2", "no expression"),
        ("(" * 3000 + "x1" + ")" * 3000, "nested too deeply"),
        ("9" * 5000, "a number of the expression has more than 4096 bits"),
        ("9" * 2000, "has more than 4096 bits as a fraction"),
        ("__import__('os').system('true')", "no variable"),
        ("sin(x1)", "'sin' is no variable"),
        ("x1.real", "cannot stand in a polynomial"),
        ("x1[0]", "cannot stand in a polynomial"),
        ("lambda: 3", "cannot stand in a polynomial"),
        ("x1, x2", "cannot stand in a polynomial"),
        ("'a'", "no rational number"),
        ("True", "no rational number"),
        ("2j", "no rational number"),
        ("1e5000", "'1e5000' has more than 4096 bits"),
        ("x1^2", "write powers with **"),
        ("x1 & x2", "uses an operator"),
        ("x1**-1", "whole numbers"),
        ("x1**x2", "whole numbers"),
        ("x1**0.5", "whole numbers"),
        ("x1/x2", "divides by 'x2'"),
        ("x1/0", "divides by '0'"),
        ("9**9**9", "too large"),
        ("x1**900*x1**900", "too large"),
        ("9" * 2000, "bits"),
        ("1e-9999", "bits"),
        ("1e-999999999", "bits"),
        ("(x1+x2+x3)**900", "terms"),
        ("x4", "raise --length to 4"),
        ("x0", "no variable"),
    ],
)
def test_anything_else_gets_one_sentence(text, fragment):
    with pytest.raises(ValueError) as refused:
        parse_polynomial(text, 3)
    message = str(refused.value)
    assert fragment in message and "\n" not in message and len(message) < 200


def test_the_report_agrees_with_the_formulas():
    result = report(build(parse_polynomial(EXAMPLE, 3)), samples=20)
    assert result["proved"] and result["exact_on_integers"]["right"] == 20
    assert formula(parse_polynomial(EXAMPLE, 3)) == {
        "padded_length": result["padded_length"],
        "widths": result["widths"],
    }
    assert all(row["within_bound"] for row in result["float"].values())
