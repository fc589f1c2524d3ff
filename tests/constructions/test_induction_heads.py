"""Induction heads: sizes against the bound, scores against the interpreter, answers against the oracle, and every
length.
"""

from math import log2

import numpy as np
import pytest
import torch

from compiler.artifact.model import Stack
from compiler.artifact.package import bare, bare_sizes, language_model
from compiler.compiled import run_blocks
from compiler.driver import compile
from compiler.errors import CompileError
from constructions.selectivity.induction_heads import InductionHeads
from tests import own_sizes
from verify.bounds import induction_heads_bound, induction_heads_information_bits
from verify.tasks.induction import BLANK, Induction, induction_oracle

ARCHS = ("mamba", "mamba2", "mamba-delta-t")
KINDS = [(arch, codes) for arch in ARCHS for codes in (False, True)]


def built(**parameters):
    construction = InductionHeads(**parameters)
    compiled = compile(construction.circuit(), construction.target)
    return construction, compiled, bare(compiled)


def assert_right(compiled, model, batch):
    with torch.no_grad():
        scores = model(torch.from_numpy(batch.tokens)).numpy()
    assert np.array_equal(scores, compiled.interpret(batch.tokens)), batch.case
    ranked = np.sort(scores, axis=-1)
    assert (scores.argmax(-1) == batch.labels).all() and (ranked[..., -1] > ranked[..., -2]).all(), batch.case


def test_the_oracle_gives_the_papers_example():
    x = [2, 1, 3, 2, 4, 3, 2, 4]
    assert induction_oracle(x) == [BLANK, BLANK, BLANK, 1, BLANK, 2, 4, 3]


@pytest.mark.parametrize("vocab", [1, 2, 3, 4, 5, 7, 8, 10, 16, 20, 40])
@pytest.mark.parametrize("arch, codes", KINDS)
def test_sizes_keep_to_what_was_counted(arch, codes, vocab):
    construction = InductionHeads(vocab=vocab, arch=arch, codes=codes)
    sizes = bare_sizes(compile(construction.circuit(), arch))
    most = own_sizes.induction_heads(vocab, arch, codes)
    assert len(sizes) == most.layers
    for name in ("d_model", "d_inner", "d_state"):
        assert max(getattr(size, name) for size in sizes) <= getattr(most, name), name
    assert bool(construction.bound()) == (arch == "mamba-delta-t" and not codes)  # which Lemma 3 is about
    assert all(getattr(most, name) == size for name, size in construction.bound().items())


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("arch", ["gated-deltanet", "gated-deltanet-qwen"])
def test_one_block_overwrites_what_followed(arch, codes):
    """Every string of five tokens out of three, and random ones over two borders of chunks."""
    construction, compiled, model = built(vocab=3, arch=arch, codes=codes)
    assert len(compiled.blocks) == (2 if codes else 1)
    strings = np.array(list(np.ndindex(3, 3, 3, 3, 3))) + 1
    longer = np.random.default_rng(0).integers(1, 4, size=(3, 140))
    for tokens in (strings, longer):
        with torch.no_grad():
            said = model(torch.from_numpy(tokens)).argmax(-1).tolist()
        assert said == [induction_oracle(row) for row in tokens.tolist()]


def test_codes_need_logarithmic_rank():
    (size,) = bare_sizes(compile(InductionHeads(vocab=40, codes=True).circuit()))
    assert size.dt_rank == 7 and size.d_inner == 40 * 6 + 7 + 1


@pytest.mark.parametrize("arch, codes", KINDS)
@pytest.mark.parametrize("vocab, length", [(1, 4), (2, 7), (3, 5), (4, 4)])
def test_every_short_string(arch, codes, vocab, length):
    _, compiled, model = built(vocab=vocab, arch=arch, codes=codes)
    for batch in Induction(vocab, length).exhaustive():
        assert_right(compiled, model, batch)


@pytest.mark.parametrize("arch, codes", KINDS)
@pytest.mark.parametrize("vocab", [5, 10, 20, 40])
def test_figure_3_of_the_paper(arch, codes, vocab):
    """V = 5 … 40, T = 100, the hard setting three times in four: accuracy 1.0, bit for bit."""
    construction, compiled, model = built(vocab=vocab, arch=arch, codes=codes)
    (task,) = construction.tasks()
    for batch in [*task.random(16 if arch == "mamba2" else 48, seed=3), *task.adversarial()]:
        assert_right(compiled, model, batch)


def test_the_hard_setting_places_the_special_token_twice():
    task = Induction(20, 100, hard=1.0)
    (batch,) = task.random(50, seed=0)
    for row in batch.tokens:
        places = [(token, np.flatnonzero(row == token) + 1) for token in task.tokens]
        assert any(len(at) == 2 and at[0] + at[1] == 100 and at[0] <= 10 for _, at in places)


@pytest.mark.parametrize("arch", ARCHS)
def test_block_ir_says_what_the_module_says(arch):
    _, compiled, model = built(vocab=5, arch=arch)
    (batch,) = Induction(5, 40).random(4, seed=1)
    logits = run_blocks(compiled, batch.tokens)[-1] @ compiled.head.toarray().T
    assert np.array_equal(logits, compiled.interpret(batch.tokens))


@pytest.mark.parametrize("arch, codes", KINDS)
def test_every_length_by_every_window_through_step(arch, codes):
    """Each channel holds what followed its key last: enumerate stored pairs and windows, the empty one included.

    After `k a` the state holds (k → a) and the window is (.., a); every later state is reached the same way, one
    rebinding at a time, so that all one-step transitions of every channel occur in strings of four tokens.
    """
    vocab = 3
    _, compiled, model = built(vocab=vocab, arch=arch, codes=codes)
    strings = np.array(list(np.ndindex(*(vocab,) * 4))) + 1
    state = model.initial_state(len(strings))
    for t in range(4):
        logits, state = model.step(torch.from_numpy(strings[:, t]), state)
        assert np.array_equal(logits.numpy(), compiled.interpret(strings)[:, t])


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_as_a_language_model(arch):
    _, compiled, _ = built(vocab=6, arch=arch)
    packaged = language_model(compiled)
    stack = Stack.from_language_model(packaged.config, packaged.tensors)
    (batch,) = Induction(6, 60).random(8, seed=2)
    with torch.no_grad():
        scores = stack(torch.from_numpy(batch.tokens))[..., : compiled.source.alphabet.size].numpy()
    assert np.array_equal(scores, compiled.interpret(batch.tokens))


def test_no_language_model_of_a_mixer_that_no_library_ships():
    with pytest.raises(CompileError, match="no library ships"):
        language_model(built(vocab=3, arch="mamba-delta-t")[1])


def test_bounds_by_hand():
    """V = 20: five bits a value, so 20·5 latches, 20 previous tokens and one constant.

    With codes 5 + 1 signs instead of 20.
    """
    assert own_sizes.induction_heads(20, "mamba").d_inner == 121
    assert own_sizes.induction_heads(20, "mamba", codes=True).d_inner == 107
    printed = induction_heads_bound(20)
    assert (printed.d_model, printed.d_inner, printed.d_state, printed.layers) == (40, 40, 20, 1)
    assert induction_heads_information_bits(7) == log2(1 + 7 + 42 + 315 + 2240 + 13125 + 54432 + 117649)
