"""Greedy generation: by the modules' own `step`, or by transformers' `generate()`; token by token the same.

Every function runs where the model is, takes prompts as token ids of any lengths and returns what was written after
each, the stop token included; `told(row, token)` hears of every token as it comes (from transformers: where there is
a single prompt).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from compiler.runtime.streaming import advance

if TYPE_CHECKING:
    from compiler.artifact.model import Stack

Told = Callable[[int, int], None]
UNHEARD: Told = lambda row, token: None


@torch.no_grad()
def by_stepping(
    stack: Stack, prompts: Sequence[Sequence[int]], stop: int | None, most: Sequence[int], told: Told = UNHEARD
) -> list[list[int]]:
    """One position at a time. Rows begin together; a row whose prompt has ended is fed what it wrote.

    most: for each row, how many tokens it writes where the stop token does not come before.
    """
    shared, device = min(map(len, prompts)), stack.head.weight.device
    begun = torch.tensor([row[:shared] for row in prompts], device=device)
    scores, state = advance(stack, begun, stack.initial_state(len(prompts)))
    scores, place = scores[:, -1], shared
    written: list[list[int]] = [[] for _ in prompts]
    while True:
        following = scores.argmax(dim=-1).tolist()
        for i, prompt in enumerate(prompts):
            if place < len(prompt):
                following[i] = prompt[place]
            elif not _done(written[i], stop, most[i]):
                written[i].append(following[i])
                told(i, following[i])
        if all(_done(row, stop, limit) for row, limit in zip(written, most, strict=True)):
            return written
        scores, state = stack.step(torch.tensor(following, device=device), state)
        place += 1


def by_transformers(
    model,
    prompts: Sequence[Sequence[int]],
    stop: int | None,
    most: Sequence[int],
    told: Told = UNHEARD,
    cached: bool = True,
) -> list[list[int]]:
    """`generate()` of a Hugging Face model on the prompts, padded to the left.

    cached: whether it carries its state along, or runs the whole sequence again for every token.
    """
    ids, mask = (m.to(model.device) for m in _padded_left(prompts, model.config.pad_token_id))
    streamer = _Streamer(told) if len(prompts) == 1 else None
    out = model.generate(
        ids,
        attention_mask=mask,
        max_new_tokens=max(most),
        do_sample=False,
        use_cache=cached,
        eos_token_id=stop,
        streamer=streamer,
    )
    return [_until(row[ids.shape[1] :].tolist(), stop, limit) for row, limit in zip(out, most, strict=True)]


class _Streamer:
    """What transformers tells of its tokens: the prompt first, then each as it comes."""

    def __init__(self, told: Told):
        self.told, self.prompted = told, False

    def put(self, value: Tensor) -> None:
        if self.prompted:
            self.told(0, int(value.reshape(-1)[0]))
        self.prompted = True

    def end(self) -> None:
        pass


def _done(written: list[int], stop: int | None, most: int) -> bool:
    return len(written) >= most or (bool(written) and written[-1] == stop)


def _until(row: list[int], stop: int | None, most: int) -> list[int]:
    """The row up to its stop token, of at most that many tokens."""
    return row[: min(most, row.index(stop) + 1 if stop in row else most)]


def _padded_left(prompts: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(row)) + list(row) for row in prompts])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts])
    return ids, mask
