"""Scores made of tiny numbers and tiny factors: what a format flushes to 0 must be refused, whatever it is made of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import compiler
from compiler import Alphabet, Circuit, CompileError, InputLanguage, Tokens, bare, readout_one_hot
from compiler.artifact.model import Stack
from compiler.artifact.package import language_model
from compiler.formats import format_of
from tests.flushed import flushed

AB = Alphabet.of("a", "b")
EXPONENTS = {"float32": range(-88, -48, 4), "bfloat16": range(-88, -48, 4), "float16": range(-18, -4, 2)}


def _circuit(exponent: int) -> Circuit:
    """The letter that is not present scores 2^(2·exponent), which is a lane times a weight."""
    tokens, tiny = Tokens(AB), 2.0**exponent
    value = tokens.rows(["a", "b"], np.array([[0, tiny], [tiny, 0]]), "v")
    return Circuit("tiny", readout_one_hot(value * tiny, AB), InputLanguage.everything(AB, 3))


@pytest.mark.parametrize("dtype", EXPONENTS)
def test_a_score_is_exact_or_refused(dtype: str) -> None:
    words, refused, exact = np.array([[0, 1, 0], [1, 1, 0]]), [], 0
    for exponent in EXPONENTS[dtype]:
        circuit = _circuit(exponent)
        try:
            compiled = compiler.compile(circuit, dtype=dtype)
            packaged = language_model(compiled)
        except CompileError as reason:
            refused.append(str(reason))
            continue
        exact += 1
        with torch.no_grad(), flushed():
            for model in (bare(compiled), Stack.from_language_model(packaged.config, packaged.tensors)):
                found = model.to(getattr(torch, dtype))(torch.from_numpy(words)).double().numpy()
                assert np.array_equal(found[..., :2], compiled.interpret(words)), exponent
    smallest = f"{format_of(dtype).smallest:g}"
    assert exact and any("a score, or a term of it," in reason and smallest in reason for reason in refused)
