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
def test_sizes_keep_to_the_bound(arch):
    construction, compiled, _ = built(arch=arch)
    sizes, bound = bare_sizes(compiled), construction.bound()
    assert len(sizes) == bound["layers"]
    for name in ("d_model", "d_inner", "d_state"):
        assert max(getattr(size, name) for size in sizes) <= max(
            bound[name], 8 if (arch, name) == ("mamba2", "d_model") else 0
        )


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
