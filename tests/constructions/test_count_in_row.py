"""Count-in-row on the polynomial S6 and on real modules, and `count` as an operation of the language."""

from itertools import product

import numpy as np
import pytest
import torch

from compiler.artifact.package import bare
from compiler.driver import compile
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.words import count
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.checkpoints.scores import module_scores
from constructions.polynomials.count_in_row import CountInRow, on_polynomial_s6
from constructions.polynomials.degree_gap import last_output
from verify.tasks.count_in_row import run_lengths


def test_the_oracle_on_the_papers_example():
    assert run_lengths([1, 1, 0, 1, 1, 1, 0, 1]) == [1, 2, 0, 1, 2, 3, 0, 1]


def test_polynomial_s6_counts_every_binary_sequence():
    network = on_polynomial_s6()
    for length in range(1, 9):
        for digits in product((0, 1), repeat=length):
            tokens = np.array([[[digit, 1] for digit in digits]], dtype=object)
            assert [*network(tokens)[0, :, 0]] == run_lengths(digits)
            assert last_output(network, list(digits)) == run_lengths(digits)[-1]


@pytest.mark.parametrize("arch, layers", [("mamba", 1), ("mamba2", 2)])
def test_the_language_model_answers_exactly(arch, layers):
    built = build(CountInRow(largest=20, length=60, arch=arch, max_length=4096))
    assert len(built.compiled.blocks) == layers
    results = artifact.verify(built, built.stack(), "random", 200, 0)
    assert all(result.passed and result.bit_exact for result in results.values())


def test_every_binary_sequence_of_ten_digits():
    built = build(CountInRow(largest=7, length=10, max_length=4096))
    (result, _) = artifact.verify(built, built.stack(), "exhaustive", 1, 0).values()
    assert result.passed and result.bit_exact and result.sequences >= 2**10


def test_a_run_of_twenty_thousand_through_the_module():
    digits = np.ones((1, 20_000), dtype=np.int64)
    digits[0, ::7919] = 0
    alphabet = Alphabet.of("0", "1")
    one = Tokens(alphabet).is_in("1")
    compiled = compile(Circuit("run", count(one, reset=~one), InputLanguage.everything(alphabet, 20_000)))
    with torch.no_grad():
        got = bare(compiled)(torch.from_numpy(digits)).numpy()[0, :, 0]
    assert np.array_equal(got, run_lengths(digits[0].tolist()))


FLAGS = {
    "separate": lambda a, b: (a, b),
    "both at once": lambda a, b: (a | b, b),
    "shifted": lambda a, b: (a.shift(1), b.shift(2)),
    "never reset": lambda a, b: (a, b & a),
    "negated reset": lambda a, b: (a, ~a),
    "computed": lambda a, b: (a.cumsum() > 1, b & a.shift(1)),
}


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize(
    "target, dtype", [("mamba", "float32"), ("mamba", "bfloat16"), ("mamba", "float16"), ("mamba2", "float32")]
)
def test_count_means_the_same_on_every_target(flags, target, dtype):
    """One channel where Δ may reach 2^50, a running sum minus its latched copy elsewhere."""
    alphabet = Alphabet.of("a", "b", "c")
    x = Tokens(alphabet)
    when, reset = FLAGS[flags](x.is_in("a"), x.is_in("b"))
    length = 12 if dtype == "float16" else 40
    compiled = compile(Circuit("count", count(when, reset), InputLanguage.everything(alphabet, length)), target, dtype)
    single = target == "mamba" and dtype != "float16"
    assert any("count" in name for block in compiled.blocks for name in block.channels.names if single) == single
    tokens = np.random.default_rng(0).integers(0, 3, (50, length))
    with torch.no_grad():
        got = artifact.in_dtype(bare(compiled), dtype)(torch.from_numpy(tokens)).float().numpy()
    assert np.array_equal(got, compiled.interpret(tokens))


@pytest.mark.parametrize("arch, layers", [("mamba", 2), ("mamba2", 3)])
def test_long_runs_are_cut_off_before_the_head_where_scores_would_outgrow_the_dtype(arch, layers):
    """At the default length of 65,536; runs beyond 400 are in the data."""
    construction = CountInRow(largest=400, length=900, arch=arch)
    built = build(construction)
    assert construction.capped and len(built.compiled.blocks) == layers
    digits = np.array([[1] * 900, [1] * 450 + [0] + [1] * 449])
    scores = module_scores(built.bare_stack())(digits)
    assert (scores.argmax(-1) == [[2 + min(n, 400) for n in run_lengths(row)] for row in digits.tolist()]).all()
    assert not CountInRow(largest=64).capped
