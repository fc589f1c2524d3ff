"""What no weights can do: the four leads cancel in every model of the kind, and no linear model passes its ceiling."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
import torch

from compiler.runtime import real_block
from constructions.checkpoints.built import build
from constructions.checkpoints.scores import module_scores
from constructions.experiments.control_model import ControlModel
from constructions.experiments.impossible import four_leads, keep_linear, keep_one_block, linear_ceiling
from constructions.selectivity.keep_nth import KeepNth
from verify.tasks.keep import keep_oracle

FAILING = (
    {"mixer": "s4d"},
    {"mixer": "s4d", "position": True},
    {"mixer": "s6"},
    {"mixer": "s6", "gate": True},
    {"mixer": "s6-transposed"},
    {"mixer": "mamba2", "gate": True},
    {"mixer": "s6", "convolution": True, "gate": True},
    {"mixer": "mamba2", "convolution": True},
)


def leads(n: int, window: int, **options) -> np.ndarray:
    torch.manual_seed(0)
    model = ControlModel(features=6, scores=6, width=5, columns=3, **options).double()
    return four_leads(lambda tokens: model(torch.from_numpy(tokens)[None])[0].detach().numpy(), n, window)


@pytest.mark.parametrize("options", FAILING, ids=str)
@pytest.mark.parametrize("n", [3, 5])
def test_the_leads_of_four_answers_add_up_to_nothing(options: dict, n: int) -> None:
    found = leads(n, 1 + options.get("convolution", False), **options)
    assert np.abs(found).max() > 1e-4 and abs(found.sum()) < 1e-9 * np.abs(found).max()


def test_a_position_that_the_step_sees_is_what_helps() -> None:
    found = leads(5, 1, mixer="s6", position=True)
    assert abs(found.sum()) > 1e-3 * np.abs(found).max()


def real_leads(kind: str, **arguments) -> np.ndarray:
    """Of one block of mamba_ssm's own, random weights, a head and no residual stream."""
    torch.manual_seed(0)
    sizes = {"d_state": 4, "d_conv": 4, "expand": 2}
    block = real_block(kind, 8, 0, sizes | arguments).to_empty(device="cpu").double()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    embedding, head = torch.randn(3, 8, dtype=torch.float64), torch.randn(8, 3, dtype=torch.float64)

    def scores(tokens: np.ndarray) -> np.ndarray:
        x, outputs = embedding[torch.from_numpy(tokens)], []
        state = block.allocate_inference_cache(len(tokens), 0)
        window, hidden = (part.double() for part in state)
        for t in range(x.shape[1]):
            y, window, hidden = block.step(x[:, t : t + 1], window, hidden)
            outputs.append(y)
        return (torch.cat(outputs, dim=1) @ head).detach().numpy()

    return four_leads(scores, 5, 4)


@pytest.mark.parametrize(
    ("kind", "arguments"), [("mamba", {"dt_rank": 2}), ("mamba2", {"headdim": 4, "rmsnorm": False})]
)
def test_a_real_block_sees_four_tokens(kind: str, arguments: dict) -> None:
    """KEEP 5th is out of reach of one block of it, whatever its weights."""
    found = real_leads(kind, **arguments)
    assert np.abs(found).max() > 1e-6 and abs(found.sum()) < 1e-6 * np.abs(found).max()


def test_the_gated_norm_is_outside_the_proof() -> None:
    """The leads add up to something, and without a residual stream one of them is below 0 all the same."""
    found = real_leads("mamba2", headdim=4)
    assert abs(found.sum()) > 1e-5 * np.abs(found).max() and found.min() < 0


def test_two_blocks_are_enough() -> None:
    built = build(KeepNth(n=5, vocab=4, length=10))
    assert (four_leads(module_scores(built.bare_stack()), 5, 4) > 0).all()
    assert "10 tokens" in keep_one_block(5, 4).statement


def test_no_linear_model_passes_the_ceiling() -> None:
    """Every sequence of three tokens, with kernels drawn at random, favourable ones among them."""
    n, vocab, length = 2, 3, 5
    tokens = np.array(list(product(range(vocab), repeat=length)))
    labels = np.array([keep_oracle(row.tolist(), n) for row in tokens])
    one_hot, rng = np.eye(vocab)[tokens], np.random.default_rng(0)
    best = 0.0
    for trial in range(60):
        kernel = rng.standard_normal((length, vocab, vocab)) * 0.1 ** (trial % 3)
        kernel += rng.permutation(length)[:, None, None] * np.eye(vocab)
        right = []
        for t in range(n - 1, length):
            scores = sum(one_hot[:, s] @ kernel[t - s] for s in range(t + 1))
            right.append((scores.argmax(1) == labels[:, t]).mean())
        best = max(best, np.mean(right))
    assert 0.55 < best <= linear_ceiling(n, vocab, length) == 1 - (1 - 1 / 3) / 4
    assert linear_ceiling(1, 9, 5) == 1 and linear_ceiling(5, 128, 5) == 1
    assert linear_ceiling(5, 128, 50) == pytest.approx(0.752, abs=1e-3)


@pytest.mark.parametrize("vocab", [3, 16, 128, 1000])
def test_a_ceiling_is_told_rounded_up(vocab: int) -> None:
    found = keep_linear(5, vocab, 50)
    (told,) = re.findall(r"at most (\S+) %", found.statement)
    assert 100 * found.ceiling <= float(told) < 100 * found.ceiling + 0.1
