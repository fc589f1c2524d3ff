"""The skip path: what costs no channel needs no residual, and what would cost some keeps it."""

import numpy as np
import pytest
import torch

from compiler.artifact.package import bare, bare_sizes, needs_residual
from compiler.driver import compile
from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import constant
from compiler.language.words import concatenate, latch

ABC = Alphabet.of("a", "b", "c")
X = Tokens(ABC)
TOKEN, NUMBER = X.one_hot(name="token"), X.number({"a": 1, "b": 3})
READ = memory.outer_sum(TOKEN, write=TOKEN.shift(1), read=TOKEN, name="read")
KEPT = latch(NUMBER, X.is_in(["a"]))
MIX = np.array([[1, 2, 0], [0, -1, 4]])


def compiled(output, target):
    return compile(Circuit("skip", output, InputLanguage.everything(ABC, 24)), target)


@pytest.mark.parametrize("target", ["mamba", "mamba2", "mamba-delta-t"])
@pytest.mark.parametrize(
    "output, plain",
    [(READ - TOKEN / 2, READ), (READ + 3 * TOKEN, READ), (MIX @ READ - 2 * (MIX @ TOKEN), MIX @ READ)],
)
def test_a_multiple_of_what_is_written_goes_through_d(output, plain, target):
    with_skip, without = compiled(output, target), compiled(plain, target)
    assert_exact(with_skip)
    if len(with_skip.blocks) == 1:
        assert not needs_residual(with_skip) and bare_sizes(with_skip) == bare_sizes(without)


def test_the_constant_comes_from_the_channel_that_is_always_on():
    with_one, without = compiled(KEPT + 5, "mamba"), compiled(KEPT, "mamba")
    assert_exact(with_one)
    assert not needs_residual(with_one) and bare_sizes(with_one)[0].d_inner == bare_sizes(without)[0].d_inner


@pytest.mark.parametrize("target", ["mamba", "mamba2", "mamba-delta-t"])
@pytest.mark.parametrize(
    "output",
    [
        READ + X.one_hot(["b", "c", "a"]),
        concatenate(READ, TOKEN),
        READ[0] + TOKEN[1],
        READ + constant(1),
        KEPT + NUMBER,
        KEPT - READ[0] + 2,
    ],
)
def test_everything_else_keeps_the_residual_and_stays_exact(output, target):
    assert_exact(compiled(output, target))


def assert_exact(result):
    tokens = np.random.default_rng(0).integers(3, size=(12, 20))
    with torch.no_grad():
        assert np.array_equal(bare(result)(torch.from_numpy(tokens)).numpy(), result.interpret(tokens))


@pytest.mark.parametrize("target", ["mamba", "mamba2", "mamba-delta-t", "s4d"])
def test_a_memory_of_zeros_has_nothing_to_skip(target):
    assert_exact(compiled(memory.outer_sum(constant(0), write=TOKEN, read=TOKEN), target))
    assert_exact(compiled(memory.outer_sum(constant(0), write=TOKEN, read=TOKEN) + TOKEN[0], target))
