"""The modes in which a runtime is run on a model, each with what it compares and where borders are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from conformance.models.runtime import Model


@dataclass(frozen=True, eq=False)
class Told:
    """What a mode got: logits (b, l, vocab), and the rows of the model's tokens and the positions that they are of.

    starts: for each row, how many positions of padding stand before its first token; length: how many positions were
    asked for, None for all that the model's tokens have.
    """

    logits: Tensor
    rows: Tensor
    borders: dict[str, list[int]] = field(default_factory=dict)
    starts: Tensor | None = None
    length: int | None = None


Mode = Callable[[Model, Tensor], Told]


def full(model: Model, tokens: Tensor) -> Told:
    """All rows at once, from the start."""
    return Told(model.begin(tokens)[0], torch.arange(len(tokens)))


def short(length: int) -> Mode:
    def run(model: Model, tokens: Tensor) -> Told:
        asked = tokens[:1, :length]
        return Told(model.begin(asked)[0], torch.arange(1), length=asked.shape[1])

    return run


def pieces(*cuts: int) -> Mode:
    """The first piece is a prompt, the others continue it with its cache."""

    def run(model: Model, tokens: Tensor) -> Told:
        ends = [cut for cut in cuts if cut < tokens.shape[1]]
        found, cache = [], None
        for start, stop in zip([0, *ends], [*ends, tokens.shape[1]], strict=True):
            part = tokens[:, start:stop]
            logits, cache = model.begin(part) if cache is None else model.extend(cache, part)
            found.append(logits)
        return Told(torch.cat(found, 1), torch.arange(len(tokens)), {"cut": ends})

    return run


def steps(prompt: int) -> Mode:
    """A prompt, then one token after the other."""
    return lambda model, tokens: pieces(prompt, *range(prompt + 1, tokens.shape[1]))(model, tokens)


def padded(model: Model, tokens: Tensor) -> Told:
    """Rows of different lengths, padded on the left with a letter that means something, then one token for all."""
    batch, length = tokens.shape
    starts = torch.tensor([i * 5 % max(1, length - 4) for i in range(batch)])
    rows = tokens[:, -1:].repeat(1, length)
    mask = torch.zeros_like(tokens)
    for i, start in enumerate(starts.tolist()):
        rows[i, start:] = tokens[i, : length - start]
        mask[i, start:] = 1
    prompt, cache = model.begin(rows[:, :-1], mask[:, :-1])
    last, _ = model.extend(cache, rows[:, -1:])
    borders = {"pad": sorted({start for start in starts.tolist() if start}), "cut": [length - 1]}
    return Told(torch.cat([prompt, last], 1), torch.arange(batch), borders, starts)


def permuted(model: Model, tokens: Tensor) -> Told:
    """The rows change places in the middle, as beams do."""
    cut, order = tokens.shape[1] // 2 + 1, torch.arange(len(tokens)).roll(1)
    first, cache = model.begin(tokens[:, :cut])
    cache = model.select(cache, order)
    found = [first[order]]
    for t in range(cut, tokens.shape[1]):
        logits, cache = model.extend(cache, tokens[order, t : t + 1])
        found.append(logits)
    return Told(torch.cat(found, 1), order, {"cut": [cut]})


def reused(model: Model, tokens: Tensor) -> Told:
    """A second prompt on the same model knows nothing of the first."""
    _, cache = model.begin(tokens.flip(0))
    model.extend(cache, tokens[:, :1])
    return full(model, tokens)


def speculative(model: Model, tokens: Tensor) -> Told:
    """A draft is taken back: what follows comes from the cache before it, all at once and step by step."""
    cut = tokens.shape[1] // 2
    first, cache = model.begin(tokens[:, :cut])
    aside = model.fork(cache)
    for t in range(min(4, tokens.shape[1])):
        aside = model.extend(aside, tokens[:, t : t + 1])[1]
    found = [first]
    for t in range(cut, tokens.shape[1]):
        logits, cache = model.extend(cache, tokens[:, t : t + 1])
        found.append(logits)
    return Told(torch.cat(found, 1), torch.arange(len(tokens)), {"cut": [cut]})


def modes(length: int) -> Iterator[tuple[str, str, Mode]]:
    """(stage, name, mode) for models of this many positions, in the order in which they rest on one another."""
    yield "full", "the whole sequence", full
    yield "reuse", "a second prompt", reused
    yield "full", "one token", short(1)
    if length == 1:
        return  # which is nothing to continue
    yield "full", "three tokens", short(3)
    yield "steps", "a prompt of two, then steps", steps(2)
    if (late := max(length - 9, length // 2 + 1)) > 2:
        yield "steps", f"a prompt of {late}, then steps", steps(late)
    yield "pieces", "odd pieces", pieces(1, 3, 10, 11, 37)
    if length > 300:
        yield "pieces", "late pieces", pieces(301, 338)
    yield "padding", "rows padded on the left", padded
    yield "batch", "rows change places", permuted
    yield "speculation", "a draft taken back", speculative


MODE_STAGES = {
    "full": "a sequence from its start: its layers, chunks and norms",
    "reuse": "a new prompt begins with an empty cache",
    "steps": "one token after the other, from a prompt shorter than the convolution, and from a long one",
    "pieces": "several new tokens with a cache",
    "padding": "padding on the left leaves no trace",
    "batch": "rows of a cache are selected",
    "speculation": "a copy of a cache goes on by itself",
    "states": "the recurrent state of each layer at the end",
}
