"""dot, scaled_sum, products and powers of integers in token circuits: exact on real Mamba, refused where a target has
no form.
"""

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


@pytest.mark.parametrize("seed", range(60))
def test_exact_on_real_mamba_or_refused_for_its_size(seed):
    try:
        compiled = compile(circuit(seed))
    except CompileError as refused:
        assert (
            "adds exactly up to" in str(refused)
            or "ends at" in str(refused)
            or "leaves no range" in str(refused)
            or "exceed" in str(refused)
        )
        return
    tokens = random_tokens(np.random.default_rng(seed), 30)
    with torch.no_grad():
        assert np.array_equal(bare(compiled)(torch.from_numpy(tokens)).numpy(), compiled.interpret(tokens))


def test_most_circuits_of_the_test_above_compile():
    def compiles(seed):
        try:
            return bool(compile(circuit(seed)))
        except CompileError:
            return False

    assert sum(compiles(seed) for seed in range(60)) >= 40


def test_other_targets_refuse_scaled_sums():
    pool = Pool(lambda n: 0)
    stream = scaled_sum(pool.number(), pool.number(), pool.number())
    with pytest.raises(CompileError, match="for mamba only"):
        compile(Circuit("numbers", stream, InputLanguage.everything(ALPHABET, LENGTH)), "mamba2")
