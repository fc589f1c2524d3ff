"""A head with noise: what is claimed of its scores holds for every word of a small language, and nothing else is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from transformers import AutoModelForCausalLM

from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.changed import contents
from tests.verify.checker.checkpoints import write
from verify.checker.arithmetic.model import Proved, prove_arithmetic
from verify.checker.arithmetic.perturbed import lead_of
from verify.checker.check import Verdict, prove
from verify.checker.files import Checkpoint, in_memory
from verify.checker.formats import Rejected, at_least
from verify.checker.values.bounds import largest

HEAD = "lm_head.weight"
LENGTH = 4


@dataclass(frozen=True)
class Small:
    """A proved checkpoint with its margin; words: all of its letters; scores under any head, by the library."""

    checkpoint: Checkpoint
    tensors: dict[str, np.ndarray]
    margin: Fraction
    model: torch.nn.Module
    words: torch.Tensor

    def perturbed(self, head: np.ndarray) -> Fraction:
        other = in_memory(self.checkpoint.config, self.tensors | {HEAD: head}, self.checkpoint.manifest["promise"])
        proved, letters = prove_arithmetic(self.checkpoint), self.checkpoint.language.tokens
        return lead_of(proved, other.tensors[HEAD], self.margin, letters)

    @torch.no_grad()
    def scores(self, head: np.ndarray) -> np.ndarray:
        self.model.get_output_embeddings().weight.copy_(torch.from_numpy(head))
        return self.model(self.words).logits.double().numpy()


@cache
def small(arch: str) -> Small:
    """Induction heads: a question at every letter."""
    construction = CONSTRUCTIONS["induction-heads"](vocab=4, max_length=64, arch=arch)
    with TemporaryDirectory() as place:
        saved = write(Path(place) / "model", construction.circuit(), arch, task=construction.asks())
        checkpoint, circuit, task = contents(saved)
        tensors = load_file(saved / "model.safetensors")
        model = AutoModelForCausalLM.from_pretrained(saved)
    verdict = prove(checkpoint, circuit, task)
    assert verdict.accepted and verdict.task is None and verdict.margin is not None
    letters = [i for i in range(checkpoint.language.tokens) if i in checkpoint.language.used]
    words = torch.tensor(list(product(letters, repeat=LENGTH)))
    return Small(checkpoint, tensors, verdict.margin, model, words)


def _noisy(head: np.ndarray, epsilon: float, seed: int) -> np.ndarray:
    share = np.random.default_rng(seed).uniform(-1, 1, head.shape)
    return (head * (1 + epsilon * share)).astype(np.float32)


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 1e-3, 0.02])
def test_the_right_letter_leads_as_claimed_on_every_word(arch, epsilon):
    model = small(arch)
    exact = model.scores(model.tensors[HEAD])
    right = exact.argmax(axis=-1)
    for seed in range(3):
        head = _noisy(model.tensors[HEAD], epsilon, seed)
        scores, claimed = model.scores(head), model.perturbed(head)
        assert (scores.argmax(axis=-1) == right).all()
        leads = np.take_along_axis(scores, right[..., None], -1)[..., 0]
        others = np.where(np.arange(scores.shape[-1]) == right[..., None], -np.inf, scores).max(axis=-1)
        assert 0 < float(claimed) <= (leads - others).min()
        assert epsilon or claimed > model.margin * Fraction(999, 1000)


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_no_lead_is_claimed_where_an_answer_is_wrong(arch):
    """Noise that grows: as soon as a word is answered otherwise nothing is claimed, and in the end one is."""
    model = small(arch)
    right = model.scores(model.tensors[HEAD]).argmax(axis=-1)
    wrong = 0
    for seed, epsilon in enumerate((0.05, 0.1, 0.2, 0.3, 0.5, 0.8)):
        head = _noisy(model.tensors[HEAD], epsilon, seed)
        if (model.scores(head).argmax(axis=-1) != right).any():
            wrong += 1
            with pytest.raises(Rejected, match="the right letter leads by|a special token may score"):
                model.perturbed(head)
    assert wrong


def test_one_weight_of_the_head_that_changes_an_answer_is_refused():
    model = small("mamba")
    right = model.scores(model.tensors[HEAD]).argmax(axis=-1)
    refused = 0
    for at in np.flatnonzero(model.tensors[HEAD].reshape(-1)).tolist():
        head = model.tensors[HEAD].copy()
        head.reshape(-1)[at] *= -3
        if (model.scores(head).argmax(axis=-1) != right).any():
            refused += 1
            with pytest.raises(Rejected):
                model.perturbed(head)
    assert refused > 3


def test_a_special_token_that_may_score_highest_is_refused():
    """The rows beyond the letters count as well."""
    model = small("mamba")
    letters = model.checkpoint.language.tokens
    head = model.tensors[HEAD].copy()
    assert head.shape[0] > letters
    lane = int(np.abs(head[0]).argmax())
    head[letters:, lane] = np.abs(head).max() * 2.0**10
    with pytest.raises(Rejected, match="a special token may score as high as every letter"):
        model.perturbed(head)


def test_a_lead_is_told_rounded_down():
    assert at_least(Fraction("3.99999951")) == "3.99999" and at_least(Fraction(4)) == "4"
    assert at_least(Fraction(62259299)) == "6.22592e+07" and at_least(Fraction(2, 3)) == "0.666666"


def test_answers_are_said_of_the_circuit_where_the_weights_are_not_proved():
    proved = Verdict("here", None, None, None, None, Fraction(4), "a task")
    assert "  task: proved: every right letter leads by 4 or more" in proved.lines()
    of_circuit = replace(proved, arithmetic="why not").lines()
    assert any("proved of circuit.json, and so not of weights" in line for line in of_circuit)


def test_rounding_counts():
    """A head of many equal terms is off by what float32 loses, though its weights are the exact ones."""
    model = small("mamba")
    proved = prove_arithmetic(model.checkpoint)
    lead = lead_of(proved, proved.head, model.margin, model.checkpoint.language.tokens)
    assert 0 < model.margin - lead < model.margin / 1000
    tight = replace(proved.world.format, significand=4)
    with pytest.raises(Rejected):
        lead_of(replace(proved, world=replace(proved.world, format=tight)), proved.head, model.margin, 5)


def test_sums_on_the_way_may_not_overflow():
    """Sizes that add up to just what the format holds may be rounded beyond it."""
    model = small("mamba")
    proved = prove_arithmetic(model.checkpoint)
    sizes = np.array([float(largest(proved.world, lane)) for lane in proved.lanes])
    reach = np.bincount(proved.head.rows, np.abs(proved.head.data) * sizes[proved.head.cols]).max()
    refused = lambda top: _refused(replace(proved, world=replace(proved.world, format=top)), model)
    tops = [
        replace(proved.world.format, largest=Fraction(reach) * (1 + Fraction(n, 1 << 26))) for n in (-8, 1, 1 << 10)
    ]
    assert ["beyond what" in refused(top) for top in tops] == [True, True, False]


def _refused(proved: Proved, model: Small) -> str:
    try:
        lead_of(proved, proved.head, model.margin, model.checkpoint.language.tokens)
    except Rejected as reason:
        return str(reason)
    return ""
