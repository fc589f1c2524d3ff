"""Realistic twins: models of ordinary initialisation, trained so that a circuit's variables stand at known lanes.

Strict interchange-intervention training (Gupta et al., InterpBench, 2024; after Geiger et al., 2022). Behind the first
block each variable has lanes of its own; the other lanes are free. Five losses are added, each a cross entropy: the
answers; the answers that the circuit gives where a variable has its value from another input (lanes of the variable
exchanged), also where block 2 alone reads that; and the first answers where the head alone reads that, or where free
lanes come from another input. So components are known (lanes), and edges (from lanes to block 2, and to the head).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from compiler.artifact.tokenizer import with_special_tokens
from constructions.scoring.truth import Truth
from verify.tasks.task import IGNORED

if TYPE_CHECKING:
    from transformers import MambaConfig

WIDTH, STATES, BLOCKS, LANES = 32, 8, 2, 4  # d_model, d_state, blocks; lanes of a variable
POOL, BATCH, STEPS, RATE = 1024, 32, 120, 1e-2
HELD, HELD_SEED = 200, 77_000_000  # pairs that faithfulness is measured on, at most
Told = Callable[[int], None]


@dataclass(frozen=True)
class Faithfulness:
    """Measured on inputs that were not trained on. accuracy: answers right; interchange: for each variable, answers
    that are the circuit's under the same intervention; strict: answers that stay right with the free lanes of
    another input. sequences: how many, and positions that were asked. through: as interchange, where block 2 alone
    reads the other input's lanes; past: answers that stay right where the head alone does; neither of a twin that was
    trained before edges were.
    """

    accuracy: float
    interchange: dict[str, float]
    strict: float
    sequences: int
    positions: int
    through: dict[str, float] = field(default_factory=dict)
    past: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Twin:
    """model: of transformers; lanes: of each variable, behind block 1; rest: lanes that may hold anything; seed,
    steps."""

    model: Any
    lanes: dict[str, list[int]]
    rest: list[int]
    seed: int
    steps: int
    faithfulness: Faithfulness | None = field(default=None)

    @property
    def free(self) -> list[int]:
        """Lanes that must not matter."""
        taken = {*self.rest, *(i for lanes in self.lanes.values() for i in lanes)}
        return [i for i in range(WIDTH) if i not in taken]

    def record(self) -> dict[str, Any]:
        """What twin.json says of it."""
        measured = None if self.faithfulness is None else asdict(self.faithfulness)
        return {"lanes": self.lanes, "rest": self.rest, "seed": self.seed, "steps": self.steps, "measured": measured}


def fresh(truth: Truth, seed: int) -> Twin:
    """An untrained twin: transformers' own initialisation, and lanes drawn for each variable."""
    from transformers import MambaForCausalLM

    from compiler.runtime.huggingface import torch_only_transformers

    torch_only_transformers()
    torch.manual_seed(seed)
    lanes = lanes_of(truth, seed)
    used = LANES * len(lanes)
    if used + WIDTH // 4 > WIDTH:
        most = 3 * WIDTH // 4 // LANES
        raise ValueError(
            f"{len(lanes)} variables need {used} of {WIDTH} lanes, and a twin has room for {most} variables."
        )
    return Twin(MambaForCausalLM(config_of(truth)), lanes, [], seed, 0)


def config_of(truth: Truth) -> MambaConfig:
    """The sizes of a twin, which are the same for all circuits of as many letters."""
    from transformers import MambaConfig

    vocab = len(with_special_tokens(list(truth.compiled.source.token_alphabet.tokens), None))
    return MambaConfig(
        vocab_size=vocab, hidden_size=WIDTH, state_size=STATES, num_hidden_layers=BLOCKS, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=None, pad_token_id=None,
    )  # fmt: skip


def lanes_of(truth: Truth, seed: int) -> dict[str, list[int]]:
    """The lanes that are drawn for each variable."""
    places = np.random.default_rng(seed).permutation(WIDTH).tolist()
    return {name: sorted(places[LANES * i : LANES * (i + 1)]) for i, name in enumerate(truth.variables)}


def behind_first(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """The residual stream behind block 1: (n, time, d_model)."""
    return model.backbone.layers[0](model.backbone.embeddings(ids))


def onwards(model: Any, stream: torch.Tensor, read: torch.Tensor) -> torch.Tensor:
    """Logits from there. read: the stream as block 2 reads it."""
    block = model.backbone.layers[1]
    return model.lm_head(model.backbone.norm_f(stream + block.mixer(block.norm(read)))).float()


def exchanged(base: torch.Tensor, source: torch.Tensor, lanes: list[int]) -> torch.Tensor:
    """The stream with these lanes of another input."""
    at = torch.zeros(base.shape[-1], dtype=torch.bool)
    at[lanes] = True
    return torch.where(at, source, base)


def trained(truth: Truth, seed: int, steps: int = STEPS, told: Told = lambda done: None) -> Twin:
    """A twin, with its faithfulness measured. told: how many steps were done."""
    twin = fresh(truth, seed)
    model, names = twin.model.train(), list(truth.variables)
    base, source = _pools(truth, seed)
    _held(truth, seed, seen_by(truth, seed))  # refused now, not behind the training
    plain = truth.answers(base)
    if (plain != IGNORED).sum() < POOL:
        raise ValueError("the task asks less often than once an input, so a twin would often be trained on nothing.")
    swapped = {name: truth.pairs(name, base, source).answers for name in names}
    adam = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0)
    rate = torch.optim.lr_scheduler.OneCycleLR(adam, RATE, total_steps=max(steps, 2))
    rng = np.random.default_rng(seed)
    for step in range(steps):
        name, rows = names[step % len(names)], rng.choice(POOL, BATCH, replace=False)
        other = swapped[name][rows]
        wanted = np.concatenate([plain[rows], other, other, plain[rows], plain[rows]])
        loss = _loss(twin, name, base[rows], source[rows], wanted)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        rate.step()
        told(1)
    model.eval()
    return Twin(model, twin.lanes, twin.rest, seed, steps, measured(truth, twin, seen_by(truth, seed)))


def _pools(truth: Truth, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What a twin is trained on: inputs, and others whose values theirs are exchanged with."""
    return truth.draw(POOL, 2 * seed), truth.draw(POOL, 2 * seed + 1)


def seen_by(truth: Truth, seed: int) -> set[bytes]:
    """The inputs that a twin was trained on."""
    return {row.tobytes() for row in _pools(truth, seed)[0]}


def _loss(twin: Twin, name: str, base: np.ndarray, source: np.ndarray, wanted: np.ndarray) -> torch.Tensor:
    """All five losses, in one run behind block 1 and one onwards."""
    streams = behind_first(twin.model, torch.from_numpy(np.concatenate([base, source])))
    here, there = streams[: len(base)], streams[len(base) :]
    moved, strict = exchanged(here, there, twin.lanes[name]), exchanged(here, there, twin.free)
    streams, read = torch.cat([here, moved, here, moved, strict]), torch.cat([here, moved, moved, here, strict])
    logits = onwards(twin.model, streams, read)
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), torch.from_numpy(wanted).flatten(), ignore_index=IGNORED
    )


@torch.no_grad()
def measured(truth: Truth, twin: Twin, seen: set[bytes]) -> Faithfulness:
    """On pairs whose first input is none of those that were trained on."""
    base, source = _held(truth, twin.seed, seen)
    here, there = (behind_first(twin.model, torch.from_numpy(part)) for part in (base, source))
    plain = truth.answers(base)
    share = lambda stream, read, wanted: _share(onwards(twin.model, stream, read).argmax(-1).numpy(), wanted)
    moved = {name: exchanged(here, there, lanes) for name, lanes in twin.lanes.items()}
    other = {name: truth.pairs(name, base, source).answers for name in moved}
    strict = exchanged(here, there, twin.free)
    return Faithfulness(
        accuracy=share(here, here, plain),
        interchange={name: share(stream, stream, other[name]) for name, stream in moved.items()},
        strict=share(strict, strict, plain),
        sequences=len(base),
        positions=int((plain != IGNORED).sum()),
        through={name: share(here, stream, other[name]) for name, stream in moved.items()},
        past={name: share(stream, here, plain) for name, stream in moved.items()},
    )


def _held(truth: Truth, seed: int, seen: set[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """The pairs; ValueError where no input is left that was not trained on."""
    ids = truth.draw(4 * HELD, HELD_SEED + seed, held=True)
    base = ids[: 3 * HELD]
    base = base[[row.tobytes() not in seen for row in base]][:HELD]
    if not len(base):
        raise ValueError(
            "the circuit has so few inputs that a twin is trained on all of them, and none is left to measure it on; a "
            "circuit of longer inputs is needed."
        )
    return base, ids[3 * HELD :][: len(base)]


def _share(found: np.ndarray, wanted: np.ndarray) -> float:
    asked = wanted != IGNORED
    return float((found == wanted)[asked].mean())
