"""Numbers near the end of float32: what a scan multiplies on the way must stay finite, or the circuit is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import compiler
from compiler import (
    Alphabet,
    Circuit,
    CompileError,
    InputLanguage,
    Real,
    Tokens,
    bare,
    interpret,
    latch,
    memory,
    numbers,
)
from compiler.artifact.numeric import numeric_stack
from compiler.language.stream import Stream

AB = Alphabet.of("a", "b")
TOKENS = Tokens(AB)
EXPONENTS = range(100, 128, 2)
WORDS = np.array([[0, 1, 0, 0], [1, 0, 1, 1], [0, 0, 0, 0]])


def _kept(policy: str) -> Callable[[Stream], Stream]:
    return lambda v: memory.write(TOKENS.one_hot("a", "b"), v, policy=policy).read(TOKENS.one_hot("a", "b"))


KEPT: dict[str, Callable[[Stream], Stream]] = {
    "latch": lambda v: latch(v, TOKENS.is_in("a")),
    "first latch": lambda v: latch(v, TOKENS.is_in("a"), first=True),
    "last": _kept("last"),
    "first": _kept("first"),
    "sum": _kept("sum"),
    "cumsum": lambda v: v.cumsum(),
}


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept_of_huge_numbers_is_exact_or_refused(name: str, target: str):
    refused = []
    for exponent in EXPONENTS:
        value = TOKENS.rows(["a", "b"], np.array([[2.0**exponent], [0.0]]), "v")
        circuit = Circuit("t", KEPT[name](value), InputLanguage.everything(AB, WORDS.shape[1]))
        try:
            model = bare(compiler.compile(circuit, target))
        except CompileError:
            refused.append(exponent)
            continue
        with torch.no_grad():
            found = model(torch.from_numpy(WORDS)).double().numpy()
        assert np.array_equal(found, interpret(circuit, WORDS)[circuit.output].astype(float)), exponent
    assert refused and refused == list(range(max(refused[0], 102), 128, 2))


def test_sums_of_huge_real_numbers_are_within_their_bound_or_refused():
    refused = 0
    for exponent in EXPONENTS:
        x = numbers(Real(-(2.0**exponent), 2.0**exponent), "x")
        try:
            compiled = compiler.compile(Circuit("t", x.cumsum(), length=2))
        except CompileError:
            refused += 1
            continue
        found = numeric_stack(compiled).run({x: np.array([[[2.0**exponent], [0.0]]])})
        assert np.abs(found - 2.0**exponent).max() <= compiled.error_bound
    assert 0 < refused < len(EXPONENTS)
