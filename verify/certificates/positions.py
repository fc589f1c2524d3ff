"""Positions certificate: KEEP n-th and absolute time with the position as an input, at every length.

Statement. For every sequence of one-hot tokens (of none, for absolute time) at the positions 1, 2, 3, … the scores at
t are those of place min(t, last): of the token that stood there, or of the place itself.

1. *Past a place T > last nothing moves.* No convolution reads an earlier position. Every row of in_proj that reads the
   position falls with it, and at T, whatever the token, silu or softplus sees at most −104 of it, with room for the
   rounding of the position and of all sums in any order: from there on it gives −0 or 0. No block writes to the lane of
   the position, nor does the head read it. So at t ≥ T each block computes, bit for bit, what it does at T.
2. *Up to `last` the state forgets.* Every token is run at every place by the real modules' `step()`. Blocks but the
   last keep a state of 0. An entry of the last one's state, h ← a·h + w, is run from 0, S and −S, where S is the
   largest number ever written: either all three give w at every step, and so does what lies between, for a ≥ 0 and
   rounding is monotone; or w is 0 at every step and the entry stays 0. So the scores are those that are run from 0.
3. *Past `last` the state stays*, and what goes into out_proj is, channel by channel, a function of the channel's own
   state: both are run for every number that a channel can hold, at every token and place up to T, and nothing differs.
   Nor do lanes that the head reads beside it. So one step for each content gives the scores of all later positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from compiler.artifact.numbers_config import POSITION
from compiler.artifact.numeric import NumericStack
from compiler.runtime.block import Block
from verify.certificates.certificate import Certificate, Refused, Violated
from verify.certificates.finite import MOST, lead

SHUT = -104.0  # silu(x) = −0 and softplus(x) = 0 from here down (docs/proofs.md, "Floats")
LARGEST_WORK = 2**36  # steps times weights of in_proj: some seconds
TOKEN = "token"
_ROWS = 1 << 12  # steps at a time


@dataclass(frozen=True)
class PositionsCertificate(Certificate):
    """places: T, past which nothing moves; steps: transitions of `step()` that were run."""

    places: int
    steps: int
    level: ClassVar = "bit-exact"


@torch.no_grad()
def certify_positions(model: NumericStack, scores: np.ndarray, last: int, length: int) -> PositionsCertificate:
    """Prove the scores of every position up to `length`, and that the right answer leads.

    scores: (contents, outputs) of each token or, for a model without tokens, of each place 1 … last; the right answer
    to content i is output i. Refused or Violated with the reason.
    """
    table = torch.from_numpy(np.asarray(scores, dtype=np.float64)).float()
    tokens = _check_form(model)
    if len(table) != (tokens or last):
        raise Refused(f"scores of {len(table)} contents are known, and there are {tokens or last}")
    place = _settled(model, last, length)
    steps = _Steps(model)
    held = _check_forgets(steps, last, table)
    _check_stays(steps, range(last + 1, place + 1), held, table if tokens else table[-1:])
    margin = lead(table, torch.arange(len(table))) if table.shape[1] > 1 else None
    which = f"sequence of one-hot tokens among {tokens}, at" if tokens else "sequence of"
    domain = f"every {which} the positions 1, 2, 3, … up to {length}, by step(); float32"
    return PositionsCertificate(margin, domain, place, steps.count)


def _check_form(model: NumericStack) -> int:
    """How many tokens the model reads (0: the position only), if it has no norm, no number that is not finite, no tap
    into the past and no other way for the position.
    """
    stack, lane = model.stack, _lane(model)
    widths = {record.name: record.width for record in model.inputs}
    if widths.get(POSITION) != 1 or not set(widths) <= {POSITION, TOKEN} or not len(stack.blocks):
        raise Refused("the positions certificate is for blocks over one-hot tokens and a position")
    if stack.norms is not None or stack.final_norm is not None:
        raise Refused("the positions certificate is for blocks without norms")
    for name, parameter in stack.named_parameters():
        if not parameter.isfinite().all():
            raise Refused(f"{name} holds a number that is not finite")
    for number, block in enumerate(stack.blocks, start=1):
        if block.conv1d.weight[..., :-1].any():
            raise Refused(f"block {number} reads an earlier position")
        if getattr(block, "rmsnorm", False) or getattr(block, "dt_limit", (0.0, np.inf)) != (0.0, np.inf):
            raise Refused(f"block {number} has a norm or a limit on Δ")
        if lane is not None and stack.residual and block.out_proj.weight[lane].any():
            raise Refused(f"block {number} writes to the lane of the position")
    if lane is not None and stack.residual and stack.head.weight[:, lane].any():
        raise Refused("the head reads the position, which grows for ever")
    return widths.get(TOKEN, 0)


def _lane(model: NumericStack) -> int | None:
    """Where the position stands; None where nobody reads it."""
    seats = [seat for record in model.inputs if record.name == POSITION for seat in record.lanes]
    return seats[0] if seats and seats[0] >= 0 else None


def _tokens(model: NumericStack) -> Tensor:
    """The tokens there are; one that stands for none where the position is the only input."""
    return torch.arange(next((record.width for record in model.inputs if record.name == TOKEN), 1))


def _reads_tokens(model: NumericStack) -> bool:
    return any(record.name == TOKEN for record in model.inputs)


def _lanes(model: NumericStack, places: Tensor, tokens: Tensor) -> Tensor:
    """(steps, 1, d_model): what enters the first block for tokens at places."""
    inputs = {POSITION: places.double()[:, None, None].numpy()}
    if _reads_tokens(model):
        inputs[TOKEN] = torch.nn.functional.one_hot(tokens, len(_tokens(model))).double()[:, None].numpy()
    return model.pack(inputs)


def _entering(model: NumericStack, stream: Tensor) -> Iterator[tuple[Block, Tensor]]:
    """Each block with the stream before it, from states that are 0; Violated where a block but the last writes one."""
    states = model.stack.initial_state(len(stream))
    for number, (block, state) in enumerate(zip(model.blocks, states, strict=True), start=1):
        yield block, stream
        if number < len(states):
            out, window, after = block.step(stream, *state)
            _check_window(window)
            if not (after == 0).all():
                raise Violated(f"block {number} remembers something, and only the last block may")
            stream = stream + out if model.residual else out


def _check_window(window: Tensor) -> None:
    """Later steps multiply by 0 what is seen here."""
    if not window.isfinite().all():
        raise Refused("a convolution sees a number that is not finite")


def _settled(model: NumericStack, last: int, length: int) -> int:
    """Step 1: the first of last + 1, last + 2, last + 4, … past which nothing moves."""
    lane, beyond, tokens = _lane(model), 1, _tokens(model)
    weights = max(block.in_proj.weight.numel() for block in model.blocks)
    while (last + beyond) * len(tokens) * weights <= LARGEST_WORK:
        place = last + beyond
        entering = list(_entering(model, _lanes(model, torch.full_like(tokens, place), tokens)))
        reading = entering if model.residual else entering[:1]
        if lane is None or all(_shut(block, stream[:, 0], lane, length) for block, stream in reading):
            return place
        beyond *= 2
    steps = (last + beyond) * len(tokens)
    raise Refused(f"{steps} steps through {weights} weights would be run, and at most {LARGEST_WORK} products are")


def _shut(block: Block, stream: Tensor, lane: int, length: int) -> bool:
    """Whether all that reads the position is at most −104 at these streams (tokens, d_model), at one place, and falls.

    Violated for what rises.
    """
    weight, scale, bias = _rows(block)
    place, others = float(stream[0, lane]), stream.detach().double().numpy().T.copy()
    others[lane] = 0
    sizes = np.abs(weight) @ np.abs(others)  # (rows, tokens) of all terms but the position's
    largest = (np.abs(scale) + 1) * (sizes.max(axis=1) + np.abs(weight[:, lane]) * length) + np.abs(bias)
    if not (largest <= MOST).all():
        raise Refused(f"a row of in_proj can outgrow float32 at position {length}")
    slope = scale * weight[:, lane]
    if (slope > 0).any():
        raise Violated(f"row {np.flatnonzero(slope > 0)[0]} of in_proj rises with the position, and so never settles")
    slack = (weight.shape[1] + 8) * 2.0**-23  # of the position, of sums in any order, of scale and bias
    error = slack * (np.abs(scale)[:, None] * sizes + np.abs(bias)[:, None])
    error += 2.0**-100 * (np.abs(scale)[:, None] + 1)  # of numbers too small for a whole significand
    seen = scale[:, None] * (weight @ others) + bias[:, None] + error + (1 - slack) * place * slope[:, None]
    return bool((seen[slope < 0] <= SHUT).all())


def _rows(block: Block) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(weights, scale, bias): of each row of in_proj silu or softplus sees scale · row + bias."""
    weight = block.in_proj.weight.detach().double().numpy()
    tap, shift = (part.detach().double().numpy() for part in (block.conv1d.weight[:, 0, -1], block.conv1d.bias))
    gate = np.ones(block.d_inner)
    if hasattr(block, "x_proj"):  # Mamba: x, z
        scale, bias = np.concatenate([tap, gate]), np.concatenate([shift, 0 * gate])
    else:  # Mamba-2: z, xBC, Δ
        delta = block.dt_bias.detach().double().numpy()
        scale = np.concatenate([gate, tap, np.ones(len(delta))])
        bias = np.concatenate([0 * gate, shift, delta])
    if len(scale) != len(weight) or block.in_proj.bias is not None:
        raise Refused("in_proj has numbers that are no part of a Mamba or Mamba-2 block")
    return weight, scale, bias


class _Ran(NamedTuple):
    """What a step gives, with the lanes of the stream that the head reads beside the last block.

    gated: (steps, channels) into out_proj; states: (steps, channels, columns) after; beside: (steps, lanes).
    """

    gated: Tensor
    states: Tensor
    beside: Tensor
    scores: Tensor


class _Steps:
    """Runs steps of the real modules; count: how many so far."""

    def __init__(self, model: NumericStack):
        self.model, self.count = model, 0

    def every(self, places: range, held: float | Tensor = 0.0) -> tuple[Tensor, Tensor, _Ran]:
        """(places, tokens, what came): every token at every one of these places; a state of `held` in all channels."""
        grid = torch.meshgrid(torch.arange(places.start, places.stop), _tokens(self.model), indexing="ij")
        at, tokens = (axis.reshape(-1) for axis in grid)
        return at, tokens, self.run(at, tokens, held)

    def run(self, places: Tensor, tokens: Tensor, held: float | Tensor = 0.0) -> _Ran:
        """held: the state of the last block, one number, (columns,) or (steps, channels, columns)."""
        parts = []
        for rows in torch.arange(len(places)).split(_ROWS):
            own = held[rows] if isinstance(held, Tensor) and held.dim() == 3 else held
            parts.append(self._run(places[rows], tokens[rows], own))
        self.count += len(places)
        return _Ran(*(torch.cat(part) for part in zip(*parts, strict=True)))

    def _run(self, places: Tensor, tokens: Tensor, held: float | Tensor) -> _Ran:
        *_, (block, stream) = _entering(self.model, _lanes(self.model, places, tokens))
        window, state = self.model.stack.initial_state(len(places))[-1]
        flat = (len(places), block.d_inner, -1)
        state = (state.reshape(flat) + held).view_as(state)
        gated: list[Tensor] = []
        hook = block.out_proj.register_forward_pre_hook(lambda _, inputs: gated.append(inputs[0].clone()))
        try:
            out, window, after = block.step(stream, window, state)
        finally:
            hook.remove()
        _check_window(window)
        beside = stream[:, 0, self.model.stack.head.weight.any(dim=0)] if self.model.residual else stream[:, 0, :0]
        scores = self.model.stack.logits(stream + out if self.model.residual else out)[:, 0]
        return _Ran(gated[0].reshape(flat[:2]), after.reshape(flat), beside, scores)


def _check_forgets(steps: _Steps, last: int, table: Tensor) -> Tensor:
    """Step 2; returns the states that the contents leave at `last`: (contents, channels, columns)."""
    places, tokens, zero = steps.every(range(1, last + 1))
    wrong = (zero.scores != table[tokens if _reads_tokens(steps.model) else places - 1]).any(dim=1)
    if wrong.any():
        raise Violated(f"the scores at position {int(places[wrong][0])} are others")
    largest = float(zero.states.abs().max()) or 1.0
    replaced = zero.states == zero.states
    for held in (largest, -largest):
        replaced &= steps.every(range(1, last + 1), held)[2].states == zero.states
    known = replaced.all(dim=0) | (zero.states == 0).all(dim=0)
    if not known.all():
        channel = int((~known).any(dim=1).nonzero()[0, 0])
        raise Violated(f"channel {channel} of the last block remembers what it held before position {last}")
    return zero.states[places == last]


def _check_stays(steps: _Steps, places: range, held: Tensor, table: Tensor) -> None:
    """Step 3."""
    for value in held.reshape(-1, held.shape[2]).unique(dim=0):
        at, _, ran = steps.every(places, value)
        moved = (ran.states != value).any(dim=(1, 2))
        if moved.any():
            raise Violated(f"the state at position {int(at[moved][0])} is not what it was")
        if (ran.gated != ran.gated[:1]).any() or (ran.beside != ran.beside[:1]).any():
            raise Violated(f"the answers past position {places.start - 1} see the present token")
    first = torch.zeros(len(held), dtype=torch.int64)
    if (steps.run(first + places.start, first, held).scores != table).any():
        raise Violated(f"the scores past position {places.start - 1} are others")
