"""The commands of paper C: what they print, their exit codes, and that the docs show what the script gives."""

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from compiler.errors import CompileError
from constructions.command.cli import app
from constructions.polynomials import (
    degree_gap,
    linear_attention,
    polynomial,
    polynomial_mamba,
    polynomial_mamba_report,
)
from constructions.polynomials.polynomial_s6 import PolynomialNetwork
from verify import generalization

ROOT = Path(__file__).parents[2]
EXAMPLE = "5*x1**2*x3**3 - x2 + 7"


def construct(*arguments):
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.parametrize("form, blocks", [("paper", 4), ("cancellation-free", 4), ("three-block", 3)])
def test_polynomial(form, blocks):
    report = construct("polynomial", EXAMPLE, "--length", "3", "--form", form, "--samples", "20")
    assert report["proved"] and report["blocks"] == blocks
    assert all(report[name] == value for name, value in report["formula"].items())


@pytest.mark.parametrize("factors, blocks", [("2", 4), ("3", 3)])
def test_polynomial_on_mamba(factors, blocks):
    report = construct("polynomial", EXAMPLE, "--arch", "mamba", "--factors", factors, "--samples", "20")
    assert report["blocks"] == report["formula"]["blocks"] == blocks
    assert report["exact_on_integers"] == {"inputs": 20, "right": 20}
    assert report["float32"]["within_bound"] and report["float32"]["largest_relative_error"] <= 1e-6


@pytest.mark.parametrize(
    "arguments",
    [
        ("x1*10**60",),
        ("1e-60*x1",),
        ("1e-400*x1",),
        ("1/3",),
        ("0",),
        ("7", "--length", "2"),
        ("x1**40",),
        ("x1/3 - 0.1*x2",),
    ],
)
def test_unusual_polynomials_are_answered(arguments):
    assert construct("polynomial", *arguments, "--samples", "5")["proved"]


@pytest.mark.parametrize("arguments", [("0",), ("x1**200",), ("x1*10**30",), ("x1/3",)])
def test_unusual_polynomials_on_mamba(arguments):
    construct("polynomial", *arguments, "--arch", "mamba", "--samples", "5")


def test_monomial():
    report = construct(
        "monomial", "--variable", "2", "--power", "3", "--coefficient", "-1/2", "--position", "6", "--samples", "20"
    )
    assert report["proved"] and report["blocks"] == 3 and report["padded_length"] == 6


def test_degree_gap():
    report = construct("degree-gap", "--length", "8", "--layers", "2")
    assert [row["s6_degree"] for row in report["s6"]] == [3, 4, 6, 10]
    assert CliRunner().invoke(app, ["degree-gap", "--length", "4", "--layers", "1"]).exit_code == 0


def test_linear_attention(tmp_path):
    assert construct("linear-attention", "--d", "3", "--d-k", "2")["mamba"]["exact_on_integers"]
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "head.npz", W_Q=rng.normal(size=(2, 3)), W_K=rng.normal(size=(2, 3)), W_V=rng.normal(size=(1, 3))
    )
    report = construct("linear-attention", "--weights", str(tmp_path / "head.npz"))
    assert (
        report["polynomial_s6"]["largest_error"] < 1e-4 and report["mamba"]["largest_error_against_absolute_sum"] < 1e-6
    )


def test_generalization():
    assert construct("generalization")["reconstructed"] == list(generalization.RECONSTRUCTED)


@pytest.mark.parametrize(
    "arguments, fragment",
    [
        (("polynomial", "x1^2"), "powers with **"),
        (("polynomial", "sin(x1)"), "no variable"),
        (("polynomial", "x1*10**60", "--arch", "mamba"), "beyond the range of float32"),
        (("polynomial", "1e-60*x1", "--arch", "mamba"), "is too small"),
        (("polynomial", "x20000"), "--arch mamba"),
        (("monomial", "--power", "3", "--position", "9999999"), "--arch mamba"),
        (("monomial", "--variable", "2", "--power", "3", "--position", "2"), "at least 4"),
        (("linear-attention", "--weights", "missing.npz"), "cannot be read: no such file"),
        (("generalization", "--contraction", "1"), "between 0 and 1"),
    ],
)
def test_refusals_are_one_sentence(arguments, fragment):
    with pytest.raises(ValueError) as refused:
        CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert fragment in str(refused.value) and "\n" not in str(refused.value)


def test_the_docs_show_what_the_script_draws(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["polynomial_figures.py", str(tmp_path)])
    runpy.run_path(str(ROOT / "examples" / "polynomial_figures.py"), run_name="__main__")
    docs = (ROOT / "docs" / "polynomials.md").read_text()
    tables = capsys.readouterr().out.strip().split("\n\n")
    assert len(tables) == 2 and all(table in docs for table in tables) and any(tmp_path.iterdir())
    for picture in tmp_path.iterdir():
        assert f"figures/{picture.name}" in docs and (ROOT / "docs" / "figures" / picture.name).stat().st_size < 200_000


# Checks that can fail: what is checked is broken, and the exit code says so --------------------------------


def fails(*arguments):
    """The command ends with exit code 1 and one sentence on what failed."""
    for form in ([], ["--json"]):
        result = CliRunner().invoke(app, [*arguments, *form])
        assert result.exit_code == 1 and "a check failed" in result.output
    return True


@pytest.fixture
def float_head(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "head.npz", **{name: rng.normal(size=(2, 2)) for name in ("W_Q", "W_K", "W_V")})
    return str(tmp_path / "head.npz")


@pytest.mark.parametrize(
    "answer", [lambda y: 0 * y + 123, lambda y: y * (1 + 2.0**-12), lambda y: 0 * y, lambda y: y * np.nan]
)
def test_wrong_answers_of_a_float_head_on_mamba_are_seen(monkeypatch, float_head, answer):
    right = linear_attention.HeadOnMamba.__call__
    monkeypatch.setattr(linear_attention.HeadOnMamba, "__call__", lambda self, x: answer(right(self, x)))
    assert fails("linear-attention", "--weights", float_head, "--length", "6")


def test_wrong_answers_of_a_float_head_on_the_polynomial_s6_are_seen(monkeypatch, float_head):
    right = PolynomialNetwork.__call__
    monkeypatch.setattr(PolynomialNetwork, "__call__", lambda self, x: right(self, x).astype(float) * (1 + 2.0**-40))
    assert fails("linear-attention", "--weights", float_head, "--length", "6")


@pytest.mark.parametrize("measured", ["s6_degree", "binary_degree", "attention_degree"])
def test_a_degree_that_is_not_the_lemmas_is_seen(monkeypatch, measured):
    right = getattr(degree_gap, measured)
    monkeypatch.setattr(degree_gap, measured, lambda n: right(n) + 1)
    assert fails("degree-gap", "--length", "2", "--layers", "1")


@pytest.mark.parametrize("layers", [0, 5])
def test_a_number_of_attention_layers_that_is_not_the_least_is_seen(monkeypatch, layers):
    monkeypatch.setattr(degree_gap, "attention_layers", lambda degree, gated=False: layers)
    assert fails("degree-gap", "--length", "2", "--layers", "1")


def test_an_output_beyond_the_magnitude_is_seen(monkeypatch):
    right = generalization.magnitude
    monkeypatch.setattr(generalization, "magnitude", lambda *norms: 0.99 * right(*norms))
    assert fails("generalization")


@pytest.mark.parametrize("coefficient", ["10**30", "3"])
def test_wrong_floats_of_large_coefficients_are_seen(monkeypatch, coefficient):
    monkeypatch.setattr(polynomial.PolynomialModel, "in_torch", lambda self, x, dtype: 0 * x[:, 0] + 123)
    assert fails("polynomial", f"x1*{coefficient}", "--samples", "5")


def test_what_was_not_measured_says_so():
    """In words for people, null for machines; it is no 0."""
    result = CliRunner().invoke(app, ["polynomial", "0", "--arch", "mamba", "--samples", "5"])
    assert result.exit_code == 0 and result.output.count("nothing was measured") == 2
    floats = construct("polynomial", "0", "--arch", "mamba", "--samples", "5")["float32"]
    assert floats["largest_relative_error"] is floats["coefficient_rounding"] is None


def test_a_dtype_that_a_coefficient_leaves_says_so():
    rows = construct("polynomial", "x1*10**30", "--samples", "5")["float"]
    assert rows["float32"] == {"not_run": "a coefficient is beyond 2^60"} and rows["float64"]["within_bound"]


# Transitions, coefficients that float32 rounds, weights as they were given -----------------------------------


@pytest.mark.parametrize(
    "transition, need",
    [
        ("squashed", "keeps |Ā| below 1, and the circuit needs Ā = 1"),
        ("taylor", "Ā never falls below 0.5"),
        ("taylor-3", "Ā never reaches 1"),
        ("exponential", "strictly between 0 and 1"),
    ],
)
@pytest.mark.parametrize("command", [("polynomial", "x1*x2"), ("monomial", "--power", "2")])
def test_a_transition_that_cannot_is_refused_with_the_reason(command, transition, need):
    with pytest.raises(CompileError) as refused:
        CliRunner().invoke(app, [*command, "--transition", transition], catch_exceptions=False)
    assert need in str(refused.value) and "channel" in str(refused.value)


@pytest.mark.parametrize("constant", ["7", "0", "x1-x1", "1/3"])
@pytest.mark.parametrize("transition", ["taylor", "taylor-3", "exponential"])
def test_a_constant_too_needs_a_channel_that_forgets(constant, transition):
    with pytest.raises(CompileError, match=r"block 1, channel p\[1\]: .* the circuit needs Ā = 0"):
        CliRunner().invoke(app, ["polynomial", constant, "--transition", transition], catch_exceptions=False)


@pytest.mark.parametrize("factors", ["2", "3"])
def test_coefficients_beyond_float32_are_refused_with_a_scale_that_does(factors):
    command = ["polynomial", "1e38*x1-1e38*x2", "--arch", "mamba", "--factors", factors]
    with pytest.raises(ValueError, match=r"divide its coefficients by 2\^2, which would do") as refused:
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert "declare" not in str(refused.value)
    assert construct("polynomial", "1e38/4*x1-1e38/4*x2", "--arch", "mamba", "--samples", "5")["float32"]


def test_decimals_beyond_float64_are_read_and_shown_as_they_were_typed():
    assert construct("polynomial", "1e400*x1", "--samples", "3")["proved"]
    assert construct("monomial", "--coefficient", "1e400", "--samples", "3")["proved"]
    for text, said in (
        ("1e5000*x1", "'1e5000' has more than 4096 bits"),
        ("x1/(x1+1e400)", "'x1 / \\(x1 \\+ 1e400\\)' divides"),
    ):
        with pytest.raises(ValueError, match=said):
            CliRunner().invoke(app, ["polynomial", text], catch_exceptions=False)


def test_a_transition_is_built_where_the_circuit_asks_nothing_of_it():
    """A constant needs no memory: Ā = 0 is all, and tanh 0 = 0."""
    assert construct("polynomial", "7/2", "--transition", "squashed", "--samples", "3")["proved"]
    with pytest.raises(ValueError, match="real Mamba has its own"):
        CliRunner().invoke(
            app, ["polynomial", "x1", "--arch", "mamba", "--transition", "taylor"], catch_exceptions=False
        )


def test_errors_are_those_from_the_polynomial_that_was_asked_for():
    report = construct("polynomial", "x1*x2/3 + x1/7", "--arch", "mamba", "--samples", "40")
    assert report["polynomial"] == "x1*x2/3 + x1/7" and report["rounded_coefficients"] == 2
    floats = report["float32"]
    assert floats["within_bound"] and 2.0**-27 < floats["coefficient_rounding"] <= 2.0**-24
    assert construct("polynomial", "x1*x2 - 5", "--arch", "mamba", "--samples", "5")["rounded_coefficients"] == 0


def test_a_coefficient_off_by_more_than_its_rounding_is_seen(monkeypatch):
    right = polynomial_mamba.rounded
    monkeypatch.setattr(
        polynomial_mamba,
        "rounded",
        lambda p: replace(right(p), monomials=tuple(replace(m, coefficient=2 * m.coefficient) for m in p.monomials)),
    )
    monkeypatch.setattr(polynomial_mamba_report, "coefficient_rounding", lambda asked, held, x: 0.0)
    assert fails("polynomial", "x1*x2 + x1", "--arch", "mamba", "--samples", "20")


@pytest.mark.parametrize("text", [EXAMPLE, "1000*x1**5*x2**5 + x1", "x1**12 - 40000*x1", "x1/4096 + x2**3"])
def test_half_of_the_integers_are_tested_where_the_coefficients_allow(text):
    whole = construct("polynomial", text, "--arch", "mamba", "--samples", "40")["exact_on_integers"]
    assert 20 <= whole["inputs"] == whole["right"]


def test_a_head_is_compared_with_the_weights_as_given(float_head):
    given = construct("linear-attention", "--weights", float_head, "--length", "6")["mamba"]["given_weights"]
    assert given["within_bound"]
    assert 2.0**-26 < given["largest_error_against_absolute_sum"] < given["bound_against_absolute_sum"] < 1e-5


def test_a_weight_off_by_more_than_its_rounding_is_seen(monkeypatch, float_head):
    right = linear_attention._floats
    monkeypatch.setattr(linear_attention, "_floats", lambda m: right(m.astype(float) * (1 + 2.0**-14)))
    assert fails("linear-attention", "--weights", float_head, "--length", "6")


@pytest.mark.parametrize(
    "options, said",
    [
        (("--factors", "3"), "--factors 3 is of products on real Mamba"),
        (("--arch", "mamba", "--form", "three-block"), "--form three-block is a circuit on the polynomial S6"),
    ],
)
def test_an_option_of_the_other_architecture_is_refused(options, said):
    with pytest.raises(ValueError, match=said):
        CliRunner().invoke(app, ["polynomial", "x1*x2", *options], catch_exceptions=False)
