"""Chunks with carried caches: the same bits as the whole sequence, and a million tokens in constant memory."""

import numpy as np
import pytest
import torch

from compiler.artifact.files import tensor_shapes
from compiler.artifact.model import Stack
from compiler.artifact.package import bare, language_model
from compiler.driver import compile
from compiler.runtime.streaming import advance, stream_scores
from compiler.targets.mamba.family import mamba_config
from compiler.targets.mamba2.family import mamba2_config
from constructions.selectivity.induction_heads import InductionHeads

CHUNKS = (1, 7, 64, 3, 25)


@pytest.mark.parametrize("kind", ["mamba", "mamba2"])
def test_chunks_of_a_random_model_agree_with_its_forward(kind):
    sizes = {"vocab": 11, "d_model": 16, "d_state": 5, "layers": 2}
    config = mamba_config(dt_rank=3, **sizes) if kind == "mamba" else mamba2_config(head_dim=8, chunk_size=4, **sizes)
    generator = torch.Generator().manual_seed(0)
    tensors = {name: 0.2 * torch.randn(shape, generator=generator) for name, shape in tensor_shapes(config).items()}
    stack = Stack.from_language_model(config, tensors)
    tokens = torch.randint(11, (3, sum(CHUNKS)), generator=generator)
    with torch.no_grad():
        whole = stack(tokens)
    parts = torch.cat(list(stream_scores(stack, tokens.split(CHUNKS, dim=1))), dim=1)
    torch.testing.assert_close(parts, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("packaged", [False, True])
@pytest.mark.parametrize("arch", ["mamba", "mamba2", "mamba-delta-t"])
def test_chunks_and_steps_may_alternate(arch, packaged):
    if packaged and arch == "mamba-delta-t":
        pytest.skip("there is no language model of Mamba-Δᵀ")
    compiled = compile(InductionHeads(vocab=5, arch=arch).circuit(), arch)
    if packaged:
        model = language_model(compiled)
        stack = Stack.from_language_model(model.config, model.tensors)
    else:
        stack = bare(compiled)
    tokens = np.random.default_rng(0).integers(1, 6, (4, 60))
    caches, scores = stack.initial_state(4), []
    for start in (0, 20, 21, 22):
        stop = {0: 20, 22: 60}.get(start, start + 1)
        part = torch.from_numpy(tokens[:, start:stop])
        if stop - start == 1:
            out, caches = stack.step(part[:, 0], caches)
            out = out[:, None]
        else:
            out, caches = advance(stack, part, caches)
        scores.append(out)
    found = torch.cat(scores, dim=1)[..., : compiled.source.alphabet.size].numpy()
    assert np.array_equal(found, compiled.interpret(tokens))


def test_a_million_tokens_of_induction_heads():
    """Every answer of 1,000,000 tokens, in chunks of 8192, against a dictionary."""
    vocab, total = 10, 1_000_000
    stack = bare(compile(InductionHeads(vocab=vocab).circuit()))
    tokens = np.random.default_rng(1).integers(2, vocab + 1, total)
    tokens[[3, total - 3]] = 1  # the special token: its answer lies a million tokens back
    follower = np.zeros(vocab + 1, dtype=np.int64)
    wrong = start = 0
    for scores in stream_scores(stack, torch.from_numpy(tokens)[None].split(8192, dim=1)):
        for t, answer in enumerate(scores[0].argmax(-1).tolist(), start):
            follower[tokens[t - 1] if t else 0] = tokens[t]
            wrong += answer != follower[tokens[t]]
        start += scores.shape[1]
    assert wrong == 0 and start == total
