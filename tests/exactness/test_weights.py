"""Weights that a dtype does not hold, and sums beyond its significand, are refused by name, in every dtype."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from compiler.artifact.package import bare, language_model
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.formats import BFLOAT16, FORMATS, Format
from compiler.interpreter import interpret
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import position
from compiler.language.stream import Stream
from compiler.language.words import lti
from tests.circuits import abc

DTYPES = sorted(FORMATS)
LETTERS = abc.alphabet


def _circuit(output: Stream, length: int = 100) -> Circuit:
    return Circuit("weights", output, InputLanguage.everything(LETTERS, length))


@pytest.mark.parametrize("format", FORMATS.values(), ids=lambda f: f.name)
def test_what_a_format_holds_is_what_torch_gives_back(format: Format):
    """Within the range that no backend flushes to 0."""
    rng = np.random.default_rng(0)
    odd = rng.integers(0, 2**27, 4000) >> rng.integers(0, 27, 4000)
    values = np.ldexp(odd.astype(float), rng.integers(-30, 4, 4000)) * rng.choice([-1, 1], 4000)
    values = np.append(values, [0.0, format.largest, -format.smallest, 2 * format.largest, 0.1, 2.0**-300])
    in_range = (np.abs(values) <= format.largest) & ((np.abs(values) >= format.smallest) | (values == 0))
    same = torch.from_numpy(values).to(format.torch_dtype).double().numpy() == values
    assert np.array_equal(format.holds(values), same & in_range)
    assert not format.holds(np.array([format.smallest / 2]))


def _odd_weights() -> dict[str, Stream]:
    number = abc.number({"a": 1, "b": 2})
    return {
        "count": 0.1 * abc.is_in(["a"]).cumsum(),
        "rows": abc.rows(["a", "b"], np.array([[0.1], [0.2]]), "rows"),
        "matrix": np.full((1, 3), 1 / 3) @ abc.one_hot(),
        "filter": lti(number, [0.1]),
        "stored": abc.rows(["a", "b"], np.array([[0.1], [0.2]]), "rows").relu(),
        "offset": (number * (2**24 + 1) + 1).relu(),
    }


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", _odd_weights())
def test_weights_that_would_be_rounded_are_refused_where_they_are_written(name: str, dtype: str):
    with pytest.raises(
        CompileError, match=rf"test_weights\.py:\d+\): it needs the weight .* which no {dtype} holds exactly"
    ):
        compile(_circuit(_odd_weights()[name]), dtype=dtype)


def test_a_weight_that_fits_one_dtype_may_not_fit_another():
    output = abc.number({"a": 621})
    with pytest.raises(CompileError, match=r"number .*the weight 621.0, which no bfloat16 holds exactly"):
        compile(_circuit(output), dtype="bfloat16")
    compile(_circuit(output), dtype="float16")


def test_weights_are_compared_before_the_cast_when_they_are_packaged(monkeypatch: pytest.MonkeyPatch):
    """The last line of defence, should the compiler's own check ever let one pass."""
    monkeypatch.setattr("compiler.exactness.sums.unheld_weights", lambda *_: [])
    for output, where in (
        (abc.rows(["a"], np.array([[0.1]]), "rows"), "embedding"),
        (_odd_weights()["matrix"], "head"),
    ):
        monkeypatch.setattr("compiler.exactness.sums._partial_sums", lambda *_: [])
        with pytest.raises(CompileError, match=f"{where} would need the weight 0.[13]"):
            bare(compile(_circuit(output)))
    wide = compile(_circuit((621 * abc.number({"a": 1}).shift(1) - 621 * abc.number({"b": 1})).relu()))
    for package in (bare, language_model):
        with pytest.raises(CompileError, match="has a weight that bfloat16 does not hold exactly"):
            package(replace(wide, context=replace(wide.context, format=BFLOAT16)))


SUMS = {
    "multiples of 1000": (lambda: abc.number({"a": 1000, "c": 5000}).cumsum(), 26_843, "float32"),
    "multiples of a prime": (lambda: abc.number({"a": 999_983}).cumsum(), 16, "float32"),
    "three times a position": (lambda: 3 * position(), 85, "bfloat16"),
}


def test_the_length_that_a_refusal_names_is_the_longest_that_works():
    """Of sums that grow faster than the length, of such with a constant part, and of all sums of a circuit at once."""
    number = abc.number({"a": 3, "b": -2})
    for output, dtype in (
        (number.cumsum() ** 2, "float32"),
        (abc.number({"a": 1}).cumsum().cumsum(), "float32"),
        (abc.number({"a": 1}).cumsum() + 200, "bfloat16"),
        (number.cumsum() * (abc.number({"b": 1}).cumsum() + 9), "float32"),
    ):
        with pytest.raises(CompileError) as refusal:
            compile(_circuit(output, 10**6), dtype=dtype)
        (fits,) = set(re.findall("a max_length of ([0-9]+) would fit", str(refusal.value)))
        compile(_circuit(output, int(fits)), dtype=dtype)
        with pytest.raises(CompileError, match=f"a max_length of {fits} would fit"):
            compile(_circuit(output, int(fits) + 1), dtype=dtype)


@pytest.mark.parametrize("output", [abc.number({"a": 2**40, "b": 1}), abc.number({"a": 1}).cumsum() + 2**40])
def test_where_no_length_works_the_refusal_names_none(output):
    with pytest.raises(CompileError, match="no shorter max_length would do, so make numbers smaller"):
        compile(_circuit(output, 4))


@pytest.mark.parametrize("name", SUMS)
def test_sums_are_counted_in_powers_of_two(name: str):
    """Exact up to the length that the refusal names, and refused one position later."""
    output, fits, dtype = SUMS[name]
    with pytest.raises(CompileError, match=f"a max_length of {fits} would fit"):
        compile(_circuit(output(), fits + 1), dtype=dtype)
    circuit = _circuit(output(), fits)
    length = min(fits, 100)
    tokens = np.full((1, length), LETTERS.index("a"))
    tokens[:, ::3] = LETTERS.index("c")
    model = bare(compile(circuit, dtype=dtype)).to(getattr(torch, dtype))
    with torch.no_grad():
        assert np.array_equal(
            model(torch.from_numpy(tokens)).double().numpy(), interpret(circuit, tokens)[circuit.output]
        )


def test_products_of_numbers_whose_steps_are_no_powers_of_two():
    """4093·4095 < 2^24; 4097·4099 needs 25 bits, so no float32 is the answer."""
    fits = _circuit(abc.number({"a": 4093}) * abc.number({"b": 4095, "a": 4095}).shift(1))
    tokens = np.random.default_rng(0).integers(0, LETTERS.size, (2, 60))
    model = bare(compile(fits))
    with torch.no_grad():
        assert np.array_equal(model(torch.from_numpy(tokens)).double().numpy(), interpret(fits, tokens)[fits.output])
    with pytest.raises(CompileError, match="its value can reach 16793603 quanta"):
        compile(_circuit(abc.number({"a": 4097}) * abc.number({"b": 4099}).shift(1)))


def test_numbers_too_wide_for_float64_are_refused_when_they_are_read():
    with pytest.raises(ValueError, match="holds 9007199254740993, which no float64 holds exactly"):
        abc.number({"a": 2**53 + 1})
    with pytest.raises(ValueError, match="weights are exact up to 2\\^53"):
        np.array([[2**53 + 1]]) @ abc.number({"a": 1})


def test_values_beyond_the_range_of_the_format_are_refused():
    """Few steps of a lattice may still be too large or too fine a number."""
    large = (2**80 * abc.number({"a": 1})).shift(1)
    with pytest.raises(
        CompileError, match="it can reach .*, and float32 ends at 1.70141e\\+38; declare smaller bounds"
    ):
        compile(_circuit(large * large))
    small = (abc.number({"a": 1}) / 2**70).shift(1)
    with pytest.raises(
        CompileError, match="its lattice is as fine as .*, and float32 flushes what is below 1.17549e-38 to 0"
    ):
        compile(_circuit((small * small).shift(1)))


def test_a_weight_out_of_float32s_range_is_told_apart_from_one_of_many_bits():
    """A row of 2^-126 is scaled up to where silu is exact."""
    with pytest.raises(CompileError, match="float32 reaches from .* less small or large"):
        bare(compile(_circuit(abc.rows(("a",), np.array([[2.0**-126]]), "fine").shift(1))))
