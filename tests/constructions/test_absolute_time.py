"""Absolute time: the clock against its oracle, at every length."""

import numpy as np
import pytest
import torch

from compiler.artifact.model import Stack
from compiler.artifact.package import bare, bare_sizes, language_model
from compiler.driver import compile
from constructions.selectivity.absolute_time import AbsoluteTime


def built(**parameters):
    construction = AbsoluteTime(**parameters)
    compiled = compile(construction.circuit(), construction.target)
    return construction, compiled, bare(compiled)


@pytest.mark.parametrize("arch", ["mamba", "mamba2", "s4d"])
@pytest.mark.parametrize("horizon", [1, 2, 64, 2000])
def test_every_answer(arch, horizon):
    construction, compiled, model = built(horizon=horizon, arch=arch)
    (task,) = construction.tasks()
    for batch in [*task.random(16, seed=0), *task.adversarial()]:
        with torch.no_grad():
            scores = model(torch.from_numpy(batch.tokens)).numpy()
        assert np.array_equal(scores, compiled.interpret(batch.tokens))
        assert (scores.argmax(-1) == batch.labels).all()


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_sizes_are_those_of_a_count_a_ramp_and_a_constant(arch):
    """Mamba-2's class takes eight lanes at least."""
    sizes = bare_sizes(built(arch=arch)[1])
    assert len(sizes) == 2 and max(size.d_inner for size in sizes) == max(size.d_state for size in sizes) == 1
    assert max(size.d_model for size in sizes) <= (8 if arch == "mamba2" else 3)


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
