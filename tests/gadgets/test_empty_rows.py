"""A zero row of a matrix beside rows that are rectified in the same block: it is 0 at every port, on every target."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch

from compiler import Circuit, InputLanguage, Stream, Tokens, bare, compile, memory, permute, readout_one_hot
from compiler.language.types import OneHot
from compiler.language.words import latch
from tests.circuits import ABC, is_a, is_b, token

number = Tokens(ABC).number({"a": 4, "b": 1})
FIRST, SECOND = np.array([[1], [0], [0]]), np.array([[0], [1], [0]])
rise = FIRST @ (number - number.shift(1)).relu()
key = (SECOND @ (is_a & is_b.shift(1))).retyped(OneHot(3))
MADE: dict[str, tuple[Callable[[], Stream], set[str]]] = {
    "a sum": (lambda: rise.cumsum(), {"mamba", "mamba2", "s4d"}),
    "a product": (lambda: rise * token, {"mamba", "mamba2", "s4d", "gated-deltanet"}),
    "a latch": (lambda: latch(rise, Tokens(ABC).is_in("c")), {"mamba", "mamba2", "gated-deltanet"}),
    "a value": (
        lambda: memory.write(token, rise, policy="last").read(token),
        {"mamba", "mamba2", "gated-deltanet", "gated-deltanet-qwen"},
    ),
    "a key": (lambda: memory.write(key, token, policy="last").read(token), {"gated-deltanet", "gated-deltanet-qwen"}),
    "a key of a sum": (lambda: memory.write(key, token, policy="sum").read(token), {"mamba", "mamba2"}),
    "a reset that never comes": (
        lambda: permute(None, Tokens(ABC).one_hot("a"), [(0, 1)], Tokens(ABC).one_hot("b", "c").shift(7)),
        {"gated-deltanet"},
    ),
}
CASES = [(name, target) for name, (_, targets) in MADE.items() for target in sorted(targets)]


@pytest.mark.parametrize(("name", "target"), CASES)
def test_an_empty_row_is_zero(name: str, target: str):
    stream = MADE[name][0]()
    stream = np.eye(3)[:, : stream.width] @ stream
    circuit = Circuit("empty", readout_one_hot(stream, ABC), InputLanguage.everything(ABC, 5))
    compiled = compile(circuit, target)
    ids = np.array(list(product(range(3), repeat=5)))
    with torch.no_grad():
        scores = bare(compiled)(torch.from_numpy(ids)).numpy()[..., :3]
    assert np.array_equal(scores, compiled.interpret(ids))
