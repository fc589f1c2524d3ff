"""Fourteen models in other bases: every logit has the plain model's bits, and all comes back."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch

from compiler.disguise.draw import draw
from compiler.disguise.errors import DisguiseError
from compiler.disguise.facts import facts_of
from compiler.disguise.steps import Mix, Patch, Permute, Scale, applied, undone
from compiler.runtime.generation import advance
from constructions.checkpoints.built import Built, build
from constructions.checkpoints.disguised import with_tensors
from constructions.checkpoints.guarantee import verdict_of
from constructions.registry import CONSTRUCTIONS
from verify.tasks.walks import Walks

CASES = {
    "recall": ("mqar", dict(kappa=3, vocab=6)),
    "recall on mamba2": ("mqar", dict(kappa=3, vocab=6, arch="mamba2")),
    "recall of the last": ("mqar", dict(kappa=3, vocab=6, write="last")),
    "recall of the first": ("mqar", dict(kappa=3, vocab=6, write="first", layout="benchmark", pairs=3)),
    "recall in bfloat16": ("mqar", dict(kappa=2, vocab=4, max_length=16, length=8, dtype="bfloat16")),
    "induction heads": ("induction-heads", dict(vocab=5)),
    "induction heads on mamba2": ("induction-heads", dict(vocab=5, arch="mamba2")),
    "one token kept": ("keep-nth", {}),
    "absolute time": ("absolute-time", {}),
    "counting": ("count-in-row", {}),
    "a theorem's recall": ("recall", dict(keys=3, values=4, pairs=2)),
    "Fibonacci numbers": ("fibonacci", {}),
    "copying": ("copy", dict(n=4, vocab=3)),
    "copying on mamba2": ("copy", dict(n=4, vocab=3, arch="mamba2")),
}
LEVELS = (1, 2, 3)


@cache
def built(name: str) -> Built:
    construction, values = CASES[name]
    return build(CONSTRUCTIONS[construction](**values))


def disguised(name: str, level: int, seed: int):
    one = built(name)
    return draw(facts_of(one.compiled, one.model), level, seed)


def inputs(one: Built) -> list[torch.Tensor]:
    """All short strings of the input language, up to 64 of a length, and long random ones."""
    language = one.compiled.source.language
    task = Walks(language)
    batches = [batch.tokens[:64] for batch in task.adversarial() if batch.tokens.shape[1] <= 6]
    longest = min(task.length, 48)
    return [
        torch.from_numpy(tokens) for tokens in (*batches, task.draw(np.random.default_rng(5), 8).tokens[:, :longest])
    ]


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.equal(one.float().contiguous().view(torch.int32), other.float().contiguous().view(torch.int32))


@pytest.mark.parametrize("name", CASES)
def test_every_logit_has_the_same_bits(name):
    one = built(name)
    plain = one.stack()
    for level in LEVELS:
        other = with_tensors(one, disguised(name, level, seed=level + 7).tensors).stack()
        for tokens in inputs(one):
            expected = plain(tokens)
            assert same_bits(expected, other(tokens)), level
        state, steps = other.initial_state(len(tokens)), []
        for t in range(tokens.shape[1]):
            scores, state = advance(other, tokens[:, t : t + 1], state)
            steps.append(scores)
        assert same_bits(expected, torch.cat(steps, dim=1)), level


@pytest.mark.parametrize("name", ["recall", "recall on mamba2", "recall in bfloat16", "one token kept"])
def test_the_checker_proves_the_disguised_weights(name):
    one = built(name)
    for level in (1, 3):
        found = disguised(name, level, seed=2)
        steps = [step for step in found.steps if not (isinstance(step, Mix) and "x_proj" in step.legs[0][0])]
        assert verdict_of(one).weights is None
        verdict = verdict_of(with_tensors(one, applied(steps, plain_arrays(one))))
        assert verdict.accepted and verdict.task is None, verdict.parts()


def plain_arrays(one: Built) -> dict[str, np.ndarray]:
    return {name: tensor.numpy() for name, tensor in one.model.tensors.items()}


@pytest.mark.parametrize("name", CASES)
def test_the_steps_come_back_and_the_seed_decides(name):
    one = built(name)
    plain = plain_arrays(one)
    found, again, other = (disguised(name, 3, seed) for seed in (3, 3, 4))
    assert all(found.tensors[n].tobytes() == again.tensors[n].tobytes() for n in plain)
    assert any(found.tensors[n].tobytes() != other.tensors[n].tobytes() for n in plain)
    back = undone(found.steps, found.tensors)
    assert all(back[n].tobytes() == plain[n].tobytes() for n in plain)
    assert {type(step) for step in found.steps} >= {Permute, Scale}


def test_each_level_does_what_it_says():
    kinds = {level: {type(step) for step in disguised("recall", level, 1).steps} for level in LEVELS}
    assert kinds == {1: {Permute, Scale}, 2: {Permute, Scale, Mix, Patch}, 3: {Permute, Scale, Mix, Patch}}
    counts = disguised("recall", 3, 1).counts
    assert min(counts[f"channels {name}"] for name in ("split", "unused", "cancelling")) > 0
    assert counts["lanes mixed"] > 5 and counts["columns mixed"] > 0
    on_mamba2 = disguised("recall on mamba2", 3, 1).counts
    assert on_mamba2["columns mixed"] == 0 and on_mamba2["channels split"] > 0


def test_no_lane_stays_recognisable():
    """Mixed lanes of the stream are no signed powers of two of the plain ones."""
    one = built("recall")
    name = "backbone.embeddings.weight"
    plain, other = one.model.tensors[name].numpy(), disguised("recall", 2, 1).tensors[name]
    rows = lambda m: {tuple(np.abs(c) / np.abs(c).max()) for c in m.T if c.any()}
    assert len(rows(other) & rows(plain)) < len(rows(plain)) / 2


def test_a_step_that_is_not_inverse_is_seen():
    """The comparison above finds one leg that is left out: a permutation that forgets D."""
    one = built("recall")
    found = disguised("recall", 1, seed=3)
    steps = [
        replace(step, legs=[leg for leg in step.legs if not leg[0].endswith("dt_proj.bias")])
        if isinstance(step, Permute)
        else step
        for step in found.steps
    ]
    wrong = with_tensors(one, applied(steps, plain_arrays(one))).stack()
    plain = one.stack()
    assert not all(same_bits(plain(tokens), wrong(tokens)) for tokens in inputs(one))


def test_a_weight_that_would_round_is_refused():
    weights = {"w": np.array([[1.0, 2.0**30], [3.0, 1.0]], dtype=np.float32)}
    with pytest.raises(DisguiseError, match="would not be a float32"):
        applied([Mix([("w", 1, 0, 1)], 0, 1, 1.0)], weights)


def test_bounded_errors_are_refused():
    from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, concatenate, fading_sum
    from compiler.artifact.package import language_model

    letters = Alphabet.of("a", "b")
    heard = fading_sum(Tokens(letters).is_in("a"), 0.3)
    compiled = compile(Circuit("fading", concatenate(heard, heard), InputLanguage.everything(letters, 8)))
    with pytest.raises(DisguiseError, match="bounded errors"):
        facts_of(compiled, language_model(compiled))
