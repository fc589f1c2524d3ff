"""`construct reproduce training`: what training makes of a compiled checkpoint, by relative steps and by plain AdamW.

Induction heads over 8 tokens as a `MambaForCausalLM`. It goes on with its own task, learns one whose answers are
permuted, or starts with noise on its weights; beside it a model of the same sizes with random weights. A row is the
share of right answers after so many steps, seed by seed; docs/graft.md shows the table that the command prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

LETTERS, LENGTH, BATCH, HELD_OUT = 8, 24, 16, 32
SEEDS = 3
SHOWN = (0, 5, 50, 200)
NOISE = 0.1
RATES = {"relative": 1e-2, "AdamW": 1e-3}


@dataclass(frozen=True)
class Row:
    """One start and one way to train. answers: "own" or "permuted"; start: "compiled", "noisy" or "random"."""

    name: str
    way: str
    answers: str = "own"
    start: str = "compiled"
    head_scale: float = 1.0


ROWS = (
    Row("its own task, relative 1e-2, head × 4", "relative", head_scale=4.0),
    Row("its own task, AdamW 1e-3", "AdamW"),
    Row("permuted answers, relative 1e-2", "relative", answers="permuted"),
    Row("permuted answers, AdamW 1e-3", "AdamW", answers="permuted"),
    Row("10 % noise on the weights, relative 1e-2", "relative", start="noisy"),
    Row("10 % noise on the weights, AdamW 1e-3", "AdamW", start="noisy"),
    Row("random weights of the same sizes, AdamW 1e-3", "AdamW", start="random"),
)


@dataclass(frozen=True)
class Point:
    """The share of right answers of a row after so many steps."""

    row: str
    seed: int
    step: int
    right: float


def compiled_model() -> Any:
    """Induction heads as a model of transformers; letter i has id i, 0 is the blank."""
    from transformers import AutoConfig, AutoModelForCausalLM

    from compiler import compile, language_model
    from compiler.runtime.huggingface import torch_only_transformers
    from constructions.selectivity.induction_heads import InductionHeads

    torch_only_transformers()
    model = language_model(compile(InductionHeads(vocab=LETTERS, arch="mamba").circuit(), "mamba"))
    told = {k: v for k, v in model.config.items() if k not in ("architectures", "dtype")}
    made = AutoModelForCausalLM.from_config(AutoConfig.for_model(told.pop("model_type"), **told))
    made.load_state_dict({name: tensor.clone() for name, tensor in model.tensors.items()})
    return made.eval()


def started(row: Row, seed: int) -> Any:
    """The model that a row begins with."""
    model = compiled_model()
    torch.manual_seed(seed)
    if row.start == "random":
        return type(model)(model.config)
    if row.start == "noisy":
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(1 + NOISE * torch.randn_like(parameter))
    return model


def batch(rng: np.random.Generator, count: int, places: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """(ids, answers): what followed the last time; places: the letter that stands for each answer, 0 for the blank."""
    ids = rng.integers(1, 1 + LETTERS, (count, LENGTH))
    wanted = np.zeros_like(ids)
    for row, answers in zip(ids, wanted, strict=True):
        followers: dict[int, int] = {}
        for t, letter in enumerate(row):
            if t:
                followers[int(row[t - 1])] = int(letter)
            answers[t] = followers.get(int(letter), 0)
    return torch.from_numpy(ids), torch.from_numpy(places[wanted])


def answers_of(row: Row, seed: int) -> np.ndarray:
    """The letter that stands for each answer."""
    letters = np.arange(1, 1 + LETTERS)
    if row.answers == "permuted":
        letters = np.random.default_rng(1000 + seed).permutation(letters)
    return np.append(0, letters)


@torch.no_grad()
def share_right(model: Any, places: np.ndarray) -> float:
    """On rows that no model was trained on."""
    ids, wanted = batch(np.random.default_rng(99), HELD_OUT, places)
    return float((model.eval()(ids).logits.argmax(-1) == wanted).float().mean())


def trained(row: Row, seed: int, told: Callable[[int], None]) -> Iterator[Point]:
    """The points of one row and seed."""
    from compiler.graft import parameters_to_train, trainable

    model, places, rng = started(row, seed), answers_of(row, seed), np.random.default_rng(seed)
    if row.way == "relative":
        trainable(model, row.head_scale)
    adam = torch.optim.AdamW(parameters_to_train(model), lr=RATES[row.way], weight_decay=0.0)
    for step in range(SHOWN[-1] + 1):
        if step in SHOWN:
            yield Point(row.name, seed, step, share_right(model, places))
        if step == SHOWN[-1]:
            return
        ids, wanted = batch(rng, BATCH, places)
        logits = model.train()(ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), wanted.flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        told(1)


def points(seed: int, told: Callable[[int], None]) -> Iterator[Point]:
    """Every point of the table."""
    for row in ROWS:
        for number in range(seed, seed + SEEDS):
            yield from trained(row, number, told)


def text(found: list[Point]) -> str:
    """The table of docs/graft.md."""
    width = max(len(row.name) for row in ROWS)
    lines = [" " * width + "".join(f"  {f'{step} steps' if step else 'start':<14}" for step in SHOWN)]
    for row in ROWS:
        cells = []
        for step in SHOWN:
            shares = [point.right for point in found if point.row == row.name and point.step == step]
            cells.append(
                ", ".join(f"{min(share, 0.99):.2f}".removeprefix("0") if share < 1 else "1" for share in shares)
            )
        lines.append(f"{row.name:<{width}}" + "".join(f"  {cell:<14}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines)


def kept(found: list[Point]) -> bool:
    """Whether the compiled circuit is right at its start, and stays so by relative steps."""
    own = [point.right for point in found if point.row == ROWS[0].name]
    return bool(own) and all(share == 1 for share in own)
