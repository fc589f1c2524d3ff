"""Training of the controls: what gradient descent finds at a small size where built weights are exact, or do not exist.

A control is not the paper's run: its sizes, steps and seeds are stated with every number. One thread, seeded: the same
numbers on the same version of PyTorch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from constructions.experiments.control_model import ControlModel, Mixer, Selective, Transition
from verify.tasks.task import IGNORED, Task

TRAINING_SEQUENCES, TEST_SEQUENCES, TEST_SEED = 20_000, 1000, 1_000_000
POINTS = 20  # of a curve


@dataclass(frozen=True)
class Control:
    """One architecture on one task. task: a token task of `verify.tasks`, or a Regression.

    width, columns: d and N; seeds: how many models, from 0 on; watched: the position from which a KEEP task asks, for
    the distribution of exp(−λΔ) before and from there, or 0. The rest is as `ControlModel` has it.
    """

    mixer: Mixer
    task: Task | Regression
    width: int
    columns: int
    layers: int = 1
    position: bool = False
    convolution: bool = False
    gate: bool = False
    transition: Transition = "exp"
    steps: int = 1000
    batch: int = 32
    seeds: int = 3
    rate: float = 0.03
    watched: int = 0

    def describe(self) -> str:
        """The model, the task and the budget in one line."""
        parts = [name for name in ("position", "convolution", "gate") if getattr(self, name)]
        depth = f", {self.layers} layers" if self.layers > 1 else ""
        kind = self.mixer if self.transition == "exp" else f"{self.mixer} ({self.transition})"
        having = f" with {', '.join(parts)}" if parts else ""
        return (
            f"{kind}{having}, d {self.width}, N {self.columns}{depth}; {self.task.describe()}; "
            f"{self.steps} steps of {self.batch}, {self.seeds} seeds"
        )


@dataclass(frozen=True)
class Regression:
    """A polynomial of independent uniform numbers in [−1, 1], asked at the last position; errors over its variance."""

    name: str
    length: int
    value: Callable[[np.ndarray], np.ndarray] = field(compare=False)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """((count, length) numbers, (count,) values)."""
        numbers = rng.uniform(-1, 1, (count, self.length))
        return numbers, self.value(numbers)

    def describe(self) -> str:
        return f"{self.name} of {self.length} uniform numbers"


@dataclass(frozen=True)
class Data:
    """Inputs (sequences, time) with labels of the same shape, or with one number a sequence."""

    inputs: Tensor
    targets: Tensor
    features: int

    @classmethod
    def of(cls, task: Task | Regression, count: int, seed: int) -> Data:
        if isinstance(task, Regression):
            numbers, values = task.draw(np.random.default_rng(seed), count)
            scaled = values / np.std(task.draw(np.random.default_rng(0), 100_000)[1])
            return cls(torch.tensor(numbers, dtype=torch.float32), torch.tensor(scaled, dtype=torch.float32), 1)
        (batch,) = task.random(count, seed, batch_size=count)
        inputs, labels = torch.from_numpy(batch.tokens), torch.from_numpy(batch.labels)
        return cls(inputs, labels, 1 + int(max(inputs.max(), labels.max())))

    def losses(self, scores: Tensor, chosen: Tensor) -> Tensor:
        """(seeds,) cross entropy, or mean squared error at the last position."""
        targets = self.targets[chosen]
        if self.features == 1:
            return ((scores[:, :, -1, 0] - targets) ** 2).mean(1)
        losses = F.cross_entropy(scores.flatten(0, 2), targets.flatten(), ignore_index=IGNORED, reduction="none")
        return losses.view(len(scores), -1).sum(1) / (targets != IGNORED).flatten(1).sum(1)

    def quality(self, scores: Tensor) -> Tensor:
        """(seeds,) share of right answers, or the squared error over the variance of the target."""
        if self.features == 1:
            return ((scores[:, :, -1, 0] - self.targets) ** 2).mean(1)
        asked = self.targets != IGNORED
        return ((scores.argmax(-1) == self.targets) & asked).flatten(1).sum(1) / asked.sum()


def train(control: Control, report: Callable[[int], None] = lambda steps: None) -> dict:
    """Train every seed and test it on sequences that none has seen: plain numbers for JSON.

    quality: of each seed, the share of right answers (or, of a Regression, squared error over variance); curve: (step,
    loss of the best seed, its quality) at points of the run.
    """
    began = time.perf_counter()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = Data.of(control.task, min(TRAINING_SEQUENCES, control.steps * control.batch * control.seeds), 0)
    test = Data.of(control.task, TEST_SEQUENCES, TEST_SEED)
    features = max(data.features, test.features)
    model = _model(control, features)
    optimizer = torch.optim.Adam(model.parameters(), lr=control.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, control.steps, control.rate * 1e-3)
    order, curve = torch.Generator().manual_seed(0), []
    every = max(1, control.steps // POINTS)
    for step in range(1, control.steps + 1):
        chosen = torch.randint(len(data.inputs), (control.seeds, control.batch), generator=order)
        losses = data.losses(model(data.inputs[chosen]), chosen)
        optimizer.zero_grad()
        losses.sum().backward()
        _clip(model)
        optimizer.step()
        schedule.step()
        if step % every == 0 or step == control.steps:
            quality = _quality(model, test, control.seeds)
            curve.append([step, round(losses.min().item(), 5), round(_best(quality, features), 4)])
        report(1)
    torch.set_num_threads(threads)
    return {
        "control": control.describe(),
        "measure": "error" if isinstance(control.task, Regression) else "accuracy",
        "quality": [round(float(q), 4) for q in _quality(model, test, control.seeds)],
        "parameters": sum(p.numel() for p in model.parameters()) // control.seeds,
        "steps": control.steps,
        "seeds": control.seeds,
        "curve": curve,
        "seconds": round(time.perf_counter() - began),
    } | ({"decay": _decay(model, test, control)} if control.watched else {})


def _model(control: Control, features: int) -> ControlModel:
    return ControlModel(
        control.mixer,
        features,
        features,
        control.width,
        control.columns,
        control.seeds,
        control.layers,
        control.position,
        control.convolution,
        control.gate,
        control.transition,
    )


def _clip(model: ControlModel) -> None:
    """The gradient of each seed to norm 1 at most."""
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    axis = lambda g: g.shape.index(g.shape[0]) if g.dim() < 5 else 1  # taps of a convolution come before the seeds
    norms = sum((g**2).sum([i for i in range(g.dim()) if i != axis(g)]) for g in grads).sqrt()
    factor = (1 / norms.clamp(min=1)).nan_to_num(0.0)
    for g in grads:
        shape = [1] * g.dim()
        shape[axis(g)] = -1
        g.mul_(factor.view(shape))


def _best(quality: Tensor, features: int) -> float:
    return float(quality.min() if features == 1 else quality.max())


@torch.no_grad()
def _quality(model: ControlModel, test: Data, seeds: int) -> Tensor:
    return test.quality(model(test.inputs.expand(seeds, *test.inputs.shape)))


@torch.no_grad()
def _decay(model: ControlModel, test: Data, control: Control) -> dict[str, list[float]]:
    """Of the best seed the share of exp(−λΔ_t) in each tenth of [0, 1], before the watched position and from it on."""
    inputs = test.inputs[:100].expand(control.seeds, *test.inputs[:100].shape)
    block, best = model.blocks[0], int(_quality(model, test, control.seeds).argmax())
    assert isinstance(block, Selective)
    kept = block.kept(model.embedded(inputs))[best]
    kept = kept.expand(len(inputs[0]), inputs.shape[-1], *kept.shape[-2:])
    parts = {"before": kept[:, : control.watched], "after": kept[:, control.watched :]}
    return {
        name: [round(float(c), 4) for c in torch.histc(part, 10, 0, 1) / part.numel()] for name, part in parts.items()
    }
