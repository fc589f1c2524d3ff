"""dot, scaled_sum, products and powers of integers in token circuits: exact on real Mamba, refused where a target has
no form.
"""

from functools import cache

import numpy as np
import pytest
import torch

from compiler.artifact.package import bare
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.words import concatenate, count, dot, scaled_sum
from tests.random_circuits import ALPHABET, LENGTH, Pool, random_tokens
from tests.spread import some

KINDS = [
    lambda p: dot(concatenate(p.number(), p.number()), concatenate(p.number(), p.flag())),
    lambda p: dot(p.symbol(), p.symbol().shift(1 + p.choose(5))),
    lambda p: scaled_sum(p.number(), p.number(), p.number()),
    lambda p: scaled_sum(p.number().shift(2) / 4, p.flag() - 3, p.number() - p.flag()),
    lambda p: count(p.flag(), p.flag()) * p.number(),
    lambda p: p.number() ** (1 + p.choose(4)),
    lambda p: p.number().square() - p.number(),
]


def circuit(seed):
    """Three such operations, the later ones on results of the earlier."""
    rng = np.random.default_rng(seed)
    pool = Pool(lambda n: int(rng.integers(n)))
    for _ in range(3):
        pool.numbers.append(KINDS[pool.choose(len(KINDS))](pool))
    return Circuit("numbers", concatenate(*pool.numbers[2:]), InputLanguage.everything(ALPHABET, LENGTH))


@cache
def compiled_or_refused(seed):
    """What the circuit compiles to, or the refusal: once in a process."""
    try:
        return compile(circuit(seed))
    except CompileError as refused:
        return refused


@pytest.mark.parametrize("seed", range(60))
def test_exact_on_real_mamba_or_refused_for_its_size(seed):
    compiled = compiled_or_refused(seed)
    if isinstance(compiled, CompileError):
        reasons = ("adds exactly up to", "ends at", "leaves no range", "exceed")
        assert any(reason in str(compiled) for reason in reasons)
        return
    tokens = random_tokens(np.random.default_rng(seed), 30)
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(tokens)).numpy(), compiled.interpret(tokens))


def test_most_circuits_of_the_test_above_compile():
    seeds = some(range(60), 0.04)
    compiled = [not isinstance(compiled_or_refused(seed), CompileError) for seed in seeds]
    assert sum(compiled) >= 2 / 3 * len(seeds)


def test_other_targets_refuse_scaled_sums():
    pool = Pool(lambda n: 0)
    stream = scaled_sum(pool.number(), pool.number(), pool.number())
    with pytest.raises(CompileError, match="for mamba only"):
        compile(Circuit("numbers", stream, InputLanguage.everything(ALPHABET, LENGTH)), "mamba2")
