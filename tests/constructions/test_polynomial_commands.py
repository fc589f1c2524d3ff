"""The commands of paper C: what they print, their exit codes, and that the docs show what the script gives."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from constructions.cli import app

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


@pytest.mark.parametrize("arguments", [("x1*10**60",), ("0",), ("7", "--length", "2"), ("x1**40",), ("x1/3 - 0.1*x2",)])
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
    assert "the argument of the logarithm" in construct("generalization")["reconstructed"]


@pytest.mark.parametrize(
    "arguments, fragment",
    [
        (("polynomial", "x1^2"), "powers with **"),
        (("polynomial", "sin(x1)"), "no variable"),
        (("polynomial", "x1*10**60", "--arch", "mamba"), "beyond the range of float32"),
        (("monomial", "--variable", "2", "--power", "3", "--position", "2"), "at least 4"),
        (("linear-attention", "--weights", "missing.npz"), "no .npz file"),
        (("generalization", "--contraction", "1"), "between 0 and 1"),
    ],
)
def test_refusals_are_one_sentence(arguments, fragment):
    with pytest.raises(ValueError) as refused:
        CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert fragment in str(refused.value) and "\n" not in str(refused.value)


def test_the_docs_show_what_the_script_draws(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "polynomial_figures.py", tmp_path],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT)},
    )
    docs = (ROOT / "docs" / "polynomials.md").read_text()
    assert done.stdout.strip() in docs
    for picture in tmp_path.iterdir():
        assert f"figures/{picture.name}" in docs and (ROOT / "docs" / "figures" / picture.name).stat().st_size < 200_000
