"""Absolute time: the clock against its oracle, at every length."""

import pytest
import torch

from compiler.artifact.model import Stack
from compiler.artifact.package import bare, language_model
from compiler.driver import compile
from constructions.selectivity.absolute_time import AbsoluteTime


def built(**parameters):
    construction = AbsoluteTime(**parameters)
    compiled = compile(construction.circuit(), construction.target)
    return construction, compiled, bare(compiled)


@pytest.mark.parametrize("arch", ["mamba", "mamba2", "s4d"])
@pytest.mark.parametrize("count", [63.0, 64.0, 2.0**24, 2.0**24 + 2048, 2.0**40])
def test_the_clock_stops_at_its_horizon_for_ever(count):
    """As a language model, its counter set as if that many tokens had passed."""
    _, compiled, _ = built()
    packaged = language_model(compiled)
    stack = Stack.from_language_model(packaged.config, packaged.tensors)
    state = stack.initial_state(1)
    _, state = stack.step(torch.tensor([0]), state)
    state[0][1].mul_(count - 1)
    scores, _ = stack.step(torch.tensor([1]), state)
    alphabet = compiled.source.alphabet
    assert alphabet.tokens[int(scores[0, : alphabet.size].argmax())] == ("t63" if count == 63 else "t64")
