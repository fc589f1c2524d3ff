"""What a compiled block holds, step by step: the numbers behind the pictures of Table 3 (paper A).

The states are those of the real module's `step()`. They are grouped by what a reader would ask
for: an entry of a bank of latches, a column of a memory, a running sum. Groups are named by the
token that selects them, and where the head reads the group their content is also told as the
token that it would answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from compiler.analysis.linear_form import ONE, linear_form
from compiler.artifact.model import Stack
from compiler.driver import Compiled
from compiler.exactness.levels import CONSTANT, GATE
from compiler.language import operations as ops
from compiler.language.stream import Stream
from compiler.targets.mamba2 import channel_seats

_STATEFUL = (ops.Cumsum, ops.Latch, ops.GateSum, ops.MemoryRead)


@dataclass(frozen=True, eq=False)
class Group:
    """name: the token (or number) that selects the entry; rows: names of its numbers; values: (time, rows) in the circuit's units.

    answers: the token that the head makes of the content, one a step ("" where it is undecided); None where it does not read it.
    """

    name: str
    rows: tuple[str, ...]
    values: np.ndarray
    answers: tuple[str, ...] | None


@dataclass(frozen=True, eq=False)
class StateHistory:
    """tokens: the input, one name a step; groups: the state after each step."""

    tokens: tuple[str, ...]
    groups: tuple[Group, ...]


def state_history(compiled: Compiled, stack: Stack, text: str, block: int | None = None) -> StateHistory:
    """The states of a block (default: the last one) while it reads white-space separated tokens.

    stack: the compiled circuit as a module, bare or a language model. ValueError for unknown tokens and blocks without a state.
    """
    block = len(compiled.blocks) - 1 if block is None else block
    alphabet = compiled.source.alphabet
    ids = alphabet.encode(text)
    if not ids:
        raise ValueError("the input holds no token, so there is nothing to draw")
    streams = [s for s in compiled.schedule.blocks[block] if isinstance(s.operation, _STATEFUL)]
    if not streams:
        raise ValueError(f"block {block} keeps no state")
    states = _states(stack, ids, block) * _unit(compiled)
    seats = _seats(compiled, stack, block)
    groups = [group for stream in streams for group in _groups(compiled, stream, states[:, seats], block)]
    return StateHistory(tuple(alphabet.tokens[i] for i in ids), tuple(groups))


@torch.no_grad()
def _states(stack: Stack, ids: list[int], block: int) -> np.ndarray:
    """(time, channels, columns) float64 of one block, from `step()`."""
    state, history = stack.initial_state(1), []
    for i in ids:
        _, state = stack.step(torch.tensor([i]), state)
        history.append(state[block][1][0].flatten(0, -2).double().numpy().copy())
    return np.array(history)


def _seats(compiled: Compiled, stack: Stack, block: int) -> np.ndarray:
    """Where each channel of the IR stands in the module."""
    module, record = stack.blocks[block], compiled.blocks[block]
    if hasattr(module, "headdim"):
        return channel_seats(record, module.headdim)
    return np.arange(len(record.channels.names))


def _unit(compiled: Compiled) -> float:
    """What a state is multiplied by on the way to the out_proj weight: C·silu(z) of an open entry."""
    return CONSTANT * GATE if compiled.rules.columns == "features" else 1.0


def _groups(compiled: Compiled, stream: Stream, states: np.ndarray, block: int) -> Iterator[Group]:
    """The entries of one operation; states: (time, IR channels, columns)."""
    channels = compiled.blocks[block].channels
    lanes = compiled.lanes.index[stream]
    out = channels.out.toarray()
    width = int((lanes >= 0).sum())
    mine = [c for c in range(len(channels.names)) if out[c, lanes[lanes >= 0]].any()]
    at = np.array([np.flatnonzero(lanes == np.flatnonzero(out[c])[0])[0] for c in mine])
    held = states[:, mine] * np.array([out[c, lanes[i]] for c, i in zip(mine, at, strict=True)])[:, None]
    names = _selectors(compiled, stream)
    for k, name in enumerate(names):
        if isinstance(stream.operation, ops.MemoryRead):
            values, places = held[:, :, k], at
        elif isinstance(stream.operation, ops.GateSum):
            own = slice(k * width, (k + 1) * width)
            values, places = held[:, own, 0], at[own]
        else:
            values, places = held[:, :, 0], at
        yield Group(
            name, tuple(f"{stream.label}[{i}]" for i in places), values, _answers(compiled, stream, values, places)
        )


def _selectors(compiled: Compiled, stream: Stream) -> list[str]:
    """Names of the entries: the one token whose query selects each, or its number."""
    operation = stream.operation
    if not isinstance(operation, (ops.GateSum, ops.MemoryRead)):
        return [stream.label]
    table = _opened_by(stream.inputs[-1], compiled.source.alphabet.size)
    tokens = compiled.source.alphabet.tokens
    single = (table != 0).sum(axis=0) == 1
    return [tokens[int(table[:, k].argmax())] if single[k] else str(k) for k in range(len(single))]


def _opened_by(query: Stream, vocab: int) -> np.ndarray:
    """(vocabulary, entries): what a query is at a present token, the past left out."""
    form, rectified = linear_form(query), False
    if len(form) == 1 and isinstance(next(iter(form))[0].operation, ops.Relu):
        form, rectified = linear_form(next(iter(form))[0].inputs[0]), True
    table = np.zeros((vocab, next(iter(form.values())).shape[0]))
    for (atom, lag), matrix in form.items():
        if atom is ONE:
            table += matrix.toarray()[:, 0]
        elif lag == 0 and isinstance(atom.operation, ops.Embed):
            table += (atom.operation.table @ matrix.T).toarray()
    return np.maximum(table, 0) if rectified else table


def _answers(compiled: Compiled, stream: Stream, values: np.ndarray, places: np.ndarray) -> tuple[str, ...] | None:
    """The strictly best token for the content of an entry, by the head alone; None where the head does not read the stream."""
    form = linear_form(compiled.core.output)
    if (stream, 0) not in form or compiled.source.alphabet.size != compiled.core.output.width:
        return None
    scores = values @ form[(stream, 0)].toarray()[:, places].T
    for (atom, lag), matrix in form.items():
        if lag == 0 and (atom is ONE or atom.label == "one"):
            scores = scores + matrix.toarray()[:, 0]
    best, second = np.sort(scores, axis=1)[:, -1], np.sort(scores, axis=1)[:, -2] if scores.shape[1] > 1 else -np.inf
    tokens = compiled.source.alphabet.tokens
    return tuple(tokens[i] if clear else "" for i, clear in zip(scores.argmax(axis=1), best > second, strict=True))
