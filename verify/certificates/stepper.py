"""A real module driven window by window through its own `step()`, its last state put in by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from compiler.artifact.model import Stack, State
from compiler.runtime.block import Block
from verify.certificates.ask import BEFORE, Windows
from verify.certificates.certificate import Refused
from verify.certificates.windows import check_count, histories


@dataclass(frozen=True, eq=False)
class Stepped:
    """One step from every history. before, after: (n, channels) the last block's state; gated: (n, channels) what its
    out_proj reads; stream: (n, d_model) what passes by the last block, zeros without residual."""

    before: np.ndarray
    after: np.ndarray
    gated: np.ndarray
    stream: np.ndarray


class Stepper:
    """A stack whose last block holds states, one in each channel, and whose other blocks hold none.

    reach: how many tokens decide all but the state; histories: (n, reach − 1) what may stand before the present token.
    """

    def __init__(self, stack: Stack, tokens: Sequence[int], reach: int):
        _check_kind(stack)
        self.stack, self.tokens = stack, tokens
        self.reach = max(reach, 1 + sum(_lags(block) for block in stack.blocks))
        check_count(len(tokens), self.reach)
        self.histories: Windows = histories(tokens, self.reach - 1)
        self._caches = self._fill()
        self.channels = self._flat(self._caches[-1][1]).shape[1]

    @torch.no_grad()
    def step(self, token: int, state: np.ndarray) -> Stepped:
        """The present token after every history, from the same state (channels,) each time."""
        caches = [(window.clone(), memory.clone()) for window, memory in self._caches]
        memory = self._flat(caches[-1][1])
        memory.zero_()
        memory[..., 0] = torch.from_numpy(state)
        tokens = torch.full((len(self.histories),), token)
        gated, passing = self._advance(tokens, caches)
        after = self._flat(caches[-1][1])
        if after[..., 1:].any():
            row, channel = (after[..., 1:] != 0).any(-1).nonzero()[0].tolist()
            raise Refused(
                f"channel {channel} of the last block writes to more than one state column, and latches have one each"
            )
        before = np.broadcast_to(state, (len(tokens), self.channels))
        return Stepped(before, after[..., 0].numpy().copy(), gated.numpy(), passing.numpy())

    def _fill(self) -> State:
        """The caches after each history, by real steps from the empty cache."""
        count = len(self.histories)
        filled = [
            (torch.empty((count, *w.shape[1:])), torch.empty((count, *m.shape[1:])))
            for w, m in self.stack.initial_state(1)
        ]
        lengths = (self.histories != BEFORE).sum(axis=1)
        for length in np.unique(lengths):
            rows = np.flatnonzero(lengths == length)
            caches = self.stack.initial_state(len(rows))
            for lag in range(length - 1, -1, -1):
                self._advance(torch.from_numpy(self.histories[rows, lag]), caches)
            for whole, part in zip(filled, caches, strict=True):
                for tensor, values in zip(whole, part, strict=True):
                    tensor[rows] = values
        return filled

    @torch.no_grad()
    def _advance(self, tokens: Tensor, caches: State) -> tuple[Tensor, Tensor]:
        """One step in place: (the input of the last out_proj, what passes by the last block)."""
        seen: list[Tensor] = []
        hook = self.stack.blocks[-1].out_proj.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        stream = self.stack.embedding(tokens[:, None])
        try:
            for number, (block, (window, memory)) in enumerate(zip(self.stack.blocks, caches, strict=True)):
                passing = stream if self.stack.residual else torch.zeros_like(stream)
                stream = passing + block.step(stream, window, memory)[0]
                if number + 1 < len(caches) and memory.any():
                    raise Refused(
                        f"block {number} of {len(caches)} keeps a state, and only the last block may: the "
                        "inputs of that one must be a window of tokens"
                    )
        finally:
            hook.remove()
        return seen[0], passing[:, 0]

    @staticmethod
    def _flat(memory: Tensor) -> Tensor:
        """A view (n, channels, columns) of the state, heads or none."""
        return memory.view(len(memory), -1, memory.shape[-1])


def _check_kind(stack: Stack) -> None:
    if stack.norms is not None or stack.final_norm is not None:
        raise Refused(
            "the inductive certificate is for a stack without norms; certify the bare one, whose logits are the same"
        )
    if any(not hasattr(block, "step") for block in stack.blocks):
        raise Refused("the inductive certificate drives a module by its step(), and this one has none")
    if any(parameter.dtype != torch.float32 for parameter in stack.parameters()):
        raise Refused("the inductive certificate is about float32 weights, and this module has others")


def _lags(block: Block) -> int:
    """How many positions back the convolution reads."""
    used = (block.conv1d.weight[:, 0].flip(-1) != 0).any(0)
    return int(used.nonzero().max()) if used.any() else 0
