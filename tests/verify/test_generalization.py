"""The generalisation bound: how it scales, and the provable bound on magnitudes on random layers of every length."""

import re
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest

import verify.generalization
from constructions.polynomials.polynomial_s6 import Affine, PolynomialBlock, PolynomialNetwork
from constructions.polynomials.polynomial_transition import Squashed
from verify.bounds import generalization
from verify.generalization import magnitude, measured_magnitude

DEFAULTS = {
    "rho": 5.0,
    "contraction": 0.9,
    "margin": 0.5,
    "samples": 10_000,
    "delta": 0.05,
    "channels": 16,
    "states": 4,
    "classes": 10,
}


def total(**changes):
    return generalization(**(DEFAULTS | changes)).total


@pytest.mark.parametrize(
    "name, values",
    [
        ("rho", [0, 1, 5, 50]),
        ("contraction", [0, 0.5, 0.9, 0.999]),
        ("classes", [2, 10, 1000]),
        ("channels", [1, 16, 64]),
    ],
)
def test_increasing(name, values):
    bounds = [total(**{name: value}) for value in values]
    assert bounds == sorted(bounds) and bounds[0] < bounds[-1]


@pytest.mark.parametrize(
    "name, values", [("margin", [0.1, 1, 10]), ("samples", [10, 1000, 10**6]), ("delta", [0.001, 0.1, 0.9])]
)
def test_decreasing(name, values):
    bounds = [total(**{name: value}) for value in values]
    assert bounds == sorted(bounds, reverse=True) and bounds[0] > bounds[-1]


def test_one_over_the_root_of_the_samples():
    assert total(samples=10_000) / total(samples=1_000_000) == pytest.approx(10)


def test_the_formula_by_hand():
    """rho = 0, no contraction, one channel, state and class: (2√2/γ√m)(1 + √(2 ln 2)) + 3√(ln(8/δ)/2m)."""
    bound = generalization(0, 0, 1, 4, 0.5, 1, 1, 1)
    assert bound.complexity == pytest.approx(sqrt(2) * (1 + sqrt(2 * np.log(2))))
    assert bound.confidence == pytest.approx(3 * sqrt(np.log(16) / 8))


def test_a_delta_whose_inverse_no_float_holds():
    assert total(delta=1e-320) == pytest.approx(total(delta=1e-300), rel=0.05)
    ratio = generalization(**DEFAULTS | {"delta": 1e-320}).confidence / generalization(**DEFAULTS).confidence
    inverse = lambda delta: log(2) + 2 * log(7) - log(delta)
    assert ratio == pytest.approx(sqrt(inverse(1e-320) / inverse(0.05)))


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [("samples", 10**400, "samples is too large"), ("margin", 1e-320, "the bound lies beyond every float")],
)
def test_a_bound_that_no_float_holds_is_refused(name, value, words):
    with pytest.raises(ValueError, match=words):
        total(**{name: value})


def test_a_layer_beyond_memory_is_not_drawn():
    with pytest.raises(ValueError, match="channels · states is 16,000,000,000"):
        measured_magnitude(1.0, 0.5, 10**9, 16)


PAGE = Path(__file__).parents[2] / "docs" / "polynomials.md"


@pytest.mark.parametrize("text", [verify.generalization.__doc__, PAGE.read_text("utf-8")], ids=["docstring", "page"])
def test_what_is_reconstructed_is_told_by_the_same_names_everywhere(text):
    """The report's names, in their order: all of the inequality is lost in the text that was read."""
    told = re.search(r"all of\s+it(?: is RECONSTRUCTED[^:]*)?: (.*?)\.\s", text, re.DOTALL | re.IGNORECASE)
    assert told and tuple(" ".join(told[1].split()).split("; ")) == generalization(**DEFAULTS).reconstructed


def test_every_part_of_the_inequality_is_told_as_reconstructed():
    """What stands in the formula of the docstring, but for what the caller gives."""
    formula, told = generalization.__doc__.split("rho:")[0], " ".join(generalization(**DEFAULTS).reconstructed)
    for part, name in {
        "2√2/": "2√2",
        "(rho + 1)": "(rho + 1)",
        "= 3·": "), 3 and",
        "(rho + 2)²": "(rho + 2)²",
        "/(1 − contraction)": "1/(1 − K)",
        "ln(2·channels·states·classes)": "logarithm",
    }.items():
        assert part in formula and name in told


def random_layer(rng, d, n, contraction):
    maps = {name: rng.normal(size=shape) for name, shape in (("keep", (d, d)), ("write", (n, d)), ("read", (n, d)))}
    zero, one = np.zeros(d), np.ones(d)
    affine = {name: Affine(weight, np.zeros(len(weight))) for name, weight in maps.items()}
    block = PolynomialBlock(
        value=Affine(np.eye(d), zero),
        gate=Affine(np.zeros((d, d)), one),
        out=Affine(np.eye(d), zero),
        **affine,
        channels=(),
        lanes_in=(),
        lanes_out=(),
    )
    return PolynomialNetwork([block], Squashed(contraction)), maps


@pytest.mark.parametrize("length", [1, 10, 1000])
@pytest.mark.parametrize("contraction", [0.1, 0.9, 0.999])
def test_no_layer_exceeds_the_magnitude(length, contraction):
    rng = np.random.default_rng(length)
    for d, n in ((1, 1), (4, 3), (8, 2)):
        network, maps = random_layer(rng, d, n, contraction)
        x = rng.normal(size=(4, length, d))
        x[0] = x[0, 0]  # a constant sequence adds up most
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        classifier = rng.normal(size=d)
        scores = np.abs(network(x, "parallel")[:, -1] @ classifier)
        assert scores.max() <= magnitude(
            np.linalg.norm(classifier), np.linalg.norm(maps["write"]), np.linalg.norm(maps["read"]), contraction
        )


@pytest.mark.parametrize(
    "changes, fragment",
    [
        ({"contraction": 1.0}, "grow"),
        ({"contraction": -0.5}, "no absolute value"),
        ({"contraction": float("nan")}, "^contraction is no number"),
        ({"rho": float("nan")}, "^rho is no number"),
        ({"delta": 0}, "probability"),
        ({"margin": 0}, "positive"),
        ({"samples": 0}, "at least one"),
    ],
)
def test_arguments_outside_the_theorem_are_refused(changes, fragment):
    with pytest.raises(ValueError, match=fragment):
        total(**changes)
