"""Greedy generation: by the modules' own `step`, or by transformers' `generate()`; token by token the same.

Every function runs where the model is, takes prompts as token ids of any lengths and returns what was written after
each, the stop token included; `told(row, token)` hears of every token as it comes, and ends the row where it returns
True. NoNumberError where a token would be chosen from scores that are no numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from compiler.runtime.streaming import advance

if TYPE_CHECKING:
    from compiler.artifact.model import Stack

Told = Callable[[int, int], bool]
UNHEARD: Told = lambda row, token: False


class NoNumberError(ArithmeticError):
    """A score that is no finite number, so that no token scores highest; the message is one sentence for people."""


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
    rows = _Rows(stop, most, told)
    while True:
        rows.check(scores, [len(prompt) for prompt in prompts], [place >= len(prompt) for prompt in prompts])
        following = scores.argmax(dim=-1).tolist()
        for i, prompt in enumerate(prompts):
            if place < len(prompt):
                following[i] = prompt[place]
            else:
                rows.add(i, following[i])
        if all(rows.ended):
            return rows.written
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
    rows = _Rows(stop, most, told)
    model.generate(
        ids,
        attention_mask=mask,
        max_new_tokens=max(most),
        do_sample=False,
        use_cache=cached,
        eos_token_id=stop,
        logits_processor=[_Checked(rows, [len(prompt) for prompt in prompts])],
        stopping_criteria=[rows],
    )
    return rows.written


class _Rows:
    """What each row writes until it ends, and a stopping criterion of transformers, which asks behind every token."""

    def __init__(self, stop: int | None, most: Sequence[int], told: Told):
        self.stop, self.most, self.told = stop, most, told
        self.written: list[list[int]] = [[] for _ in most]
        self.ended = [False] * len(most)

    def add(self, row: int, token: int) -> None:
        if not self.ended[row]:
            self.written[row].append(token)
            last = token == self.stop or len(self.written[row]) >= self.most[row]
            self.ended[row] = self.told(row, token) or last

    def check(self, scores: Tensor, begun: Sequence[int], asked: Sequence[bool]) -> None:
        """NoNumberError where a row is about to choose its next token from scores (rows, tokens) that are not all
        finite. begun: the tokens of each prompt; asked: the rows that choose one now, of which those that ended do not.
        """
        finite = scores.isfinite().all(dim=-1).tolist()
        for row, good in enumerate(finite):
            if asked[row] and not self.ended[row] and not good:
                place = begun[row] + len(self.written[row]) + 1
                raise NoNumberError(f"a score is no number at position {place}, so no token can be chosen there")

    def __call__(self, ids: Tensor, scores: Tensor, **_: object) -> Tensor:
        for row, token in enumerate(ids[:, -1].tolist()):
            self.add(row, token)
        return torch.tensor(self.ended, device=ids.device)


class _Checked:
    """A logits processor of transformers, which asks before every token: it changes no score."""

    def __init__(self, rows: _Rows, begun: Sequence[int]):
        self.rows, self.begun = rows, begun

    def __call__(self, ids: Tensor, scores: Tensor) -> Tensor:
        self.rows.check(scores, self.begun, [True] * len(self.begun))
        return scores


def _padded_left(prompts: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    longest = max(map(len, prompts))
    ids = torch.tensor([[pad] * (longest - len(row)) + list(row) for row in prompts])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in prompts])
    return ids, mask
