"""The state of a compiled block, step by step: the numbers behind the pictures of Table 3 (paper A).

The states are those of the real module's `step()`. A group is an entry of a bank of latches, a column of a memory, or
a running sum. It is named by the token that selects it. Where the head reads the group alone, the group also has the
token that the head would answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from compiler.analysis.affine_form import ONE, affine_form
from compiler.artifact.model import Stack
from compiler.artifact.numbers_config import POSITION
from compiler.artifact.numeric import NumericStack
from compiler.compiled import Compiled
from compiler.language.stream import Stream
from constructions.command.numbers import read_numbers


@dataclass(frozen=True, eq=False)
class Group:
    """name: the token (or number) that selects the entry; rows: names of its numbers.

    values: (time, rows) in the circuit's units.

    answers: the token that the head would answer from this group alone, one a step ("" where two tokens tie); None
        where the head does not read the group, or reads others too.
    meanings: what each row says in words; empty where the names of the rows say it.
    """

    name: str
    rows: tuple[str, ...]
    values: np.ndarray
    answers: tuple[str, ...] | None
    meanings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class StateHistory:
    """tokens: the input, one name a step; groups: the state after each step; block: whose, counted from 1."""

    tokens: tuple[str, ...]
    groups: tuple[Group, ...]
    block: int


def state_history(compiled: Compiled, stack: Stack | NumericStack, text: str, block: int | None = None) -> StateHistory:
    """The states of a block (from 1 on; default: the last with a state) while it reads white-space separated tokens, or
    numbers as `read_numbers` takes them.

    stack: the compiled circuit as a module: bare, a language model, or over numbers. ValueError for unknown tokens and
        blocks without a state.
    """
    keeping = [n for n in range(1, len(compiled.blocks) + 1) if _stateful(compiled, n)]
    if not keeping:
        raise ValueError("no block of this model keeps a state, so there is nothing to draw")
    number = max(keeping) if block is None else block
    if not 1 <= number <= len(compiled.blocks):
        raise ValueError(f"there is no block {number}: the model has {len(compiled.blocks)}, counted from 1")
    block = number - 1
    stack, first, labels = read_input(compiled, stack, text)
    streams = _stateful(compiled, number)
    if not streams:
        others = f"block {keeping[0]} does" if len(keeping) == 1 else f"blocks {', '.join(map(str, keeping))} do"
        raise ValueError(f"block {number} keeps no state, so there is nothing to draw; {others}")
    (groups,) = state_groups(compiled, stack, first, [number])
    return StateHistory(tuple(labels), groups, number)


def state_groups(compiled: Compiled, stack: Stack, first: Tensor, numbers: Sequence[int]) -> list[tuple[Group, ...]]:
    """For each of these blocks (from 1 on) the entries of its state; none for a block without a state.

    first: the residual stream (1, time, d_model) before the first block.
    """
    found = []
    drawn = [number - 1 for number in numbers if _stateful(compiled, number)]
    states = dict(zip(drawn, _states(compiled, stack, first, drawn), strict=True))
    for number in numbers:
        streams, block = _stateful(compiled, number), number - 1
        found.append(tuple(g for stream in streams for g in _groups(compiled, stream, states[block], block)))
    return found


def read_input(compiled: Compiled, stack: Stack | NumericStack, text: str) -> tuple[Stack, Tensor, list[str]]:
    """(the blocks, the stream before the first of them, a name for each step)."""
    if isinstance(stack, NumericStack):
        values = read_numbers(text, stack.inputs)
        rows = [values[name][0] for name in values if name != POSITION]
        labels = [", ".join(f"{number:.4g}" for row in rows for number in row[t]) for t in range(len(rows[0]))]
        return stack.stack, stack.pack(values), labels
    ids = compiled.source.token_alphabet.encode(text)
    if not ids:
        raise ValueError("the input holds no token, so there is nothing to draw")
    return stack, stack.hidden(torch.tensor([ids]), 0), [compiled.source.token_alphabet.tokens[i] for i in ids]


def _stateful(compiled: Compiled, number: int) -> list[Stream]:
    """The operations of a block (counted from 1) that keep a state."""
    target = compiled.context.target
    return [s for s in compiled.schedule.blocks[number - 1] if target.gadget(s.operation).entries(s, 1, target)]


@torch.no_grad()
def _states(compiled: Compiled, stack: Stack, first: Tensor, blocks: Sequence[int]) -> list[np.ndarray]:
    """For each of these blocks (time, IR channels, IR columns) float64, from `step()`."""
    target = compiled.context.target
    state, history = stack.initial_state(1), [[] for _ in blocks]
    for t in range(first.shape[1]):
        _, state = stack.advance(first[:, t : t + 1], state)
        for block, steps in zip(blocks, history, strict=True):
            held = target.held(compiled.blocks[block], stack.blocks[block], state[block][1][0])
            steps.append(held.double().numpy().copy())
    return [np.array(steps) for steps in history]


def _groups(compiled: Compiled, stream: Stream, states: np.ndarray, block: int) -> Iterator[Group]:
    """The entries of one operation, as its gadget tells them; states: (time, IR channels, IR columns)."""
    out = compiled.blocks[block].channels.out.toarray()
    lanes = compiled.lanes.index[stream]
    mine = [c for c in range(len(out)) if out[c, lanes[lanes >= 0]].any()]
    at = np.array([np.flatnonzero(lanes == np.flatnonzero(out[c])[0])[0] for c in mine])
    kept = states[:, mine][:, :, _own_columns(compiled, block, mine)]
    held = kept * np.array([out[c, lanes[i]] for c, i in zip(mine, at, strict=True)])[:, None]
    target = compiled.context.target
    names = None
    for entry in target.gadget(stream.operation).entries(stream, len(mine), target):
        if entry.alternative is not None and names is None:
            names = _selectors(compiled, stream)
        values, places = entry.unit * held[:, entry.channels, entry.column], at[entry.channels]
        rows = tuple(f"{stream.label}[{i}]" for i in places)
        name = stream.label if entry.alternative is None else names[entry.alternative]
        yield Group(name, rows, values, _answers(compiled, stream, values, places))


def _own_columns(compiled: Compiled, block: int, mine: Sequence[int]) -> np.ndarray:
    """The columns that keep the state of these channels: those of their group, where the block has several."""
    channels, columns = compiled.blocks[block].channels, compiled.blocks[block].columns
    if channels.group is None or columns.group is None:
        return np.arange(len(columns.names))
    return np.flatnonzero(columns.group == channels.group[mine[0]])


def _selectors(compiled: Compiled, stream: Stream) -> list[str]:
    """Names of the alternatives of a gate or query: the one token that selects each, or its number."""
    if compiled.source.alphabet is None:
        return [f"entry {k}" for k in range(stream.inputs[-1].width)]
    table = _opened_by(stream.inputs[-1], compiled.source.alphabet.size)
    tokens = compiled.source.alphabet.tokens
    single = (table != 0).sum(axis=0) == 1
    return [tokens[int(table[:, k].argmax())] if single[k] else f"entry {k}" for k in range(len(single))]


def _opened_by(query: Stream, vocab: int) -> np.ndarray:
    """(vocabulary, entries): what a query is at a present token, the past left out."""
    form, rectified = affine_form(query), False
    if len(form) == 1 and next(iter(form))[0].operation.rectifies:
        form, rectified = affine_form(next(iter(form))[0].inputs[0]), True
    table = np.zeros((vocab, next(iter(form.values())).shape[0]))
    for (atom, lag), matrix in form.items():
        if atom is ONE:
            table += matrix.toarray()[:, 0]
        elif lag == 0 and atom.operation.token_table is not None:
            table += (atom.operation.token_table @ matrix.T).toarray()
    return np.maximum(table, 0) if rectified else table


def _answers(compiled: Compiled, stream: Stream, values: np.ndarray, places: np.ndarray) -> tuple[str, ...] | None:
    """The strictly best token for the content of an entry, by the head alone.

    None where the head does not read the stream, or reads other streams too.
    """
    form = affine_form(compiled.core.output)
    if any(atom is not stream and not is_constant(atom) for atom, _ in form):
        return None  # the answer is not this entry's alone
    if (
        (stream, 0) not in form
        or compiled.source.alphabet is None
        or compiled.source.alphabet.size != compiled.core.output.width
    ):
        return None
    scores = values @ form[(stream, 0)].toarray()[:, places].T
    for (atom, lag), matrix in form.items():
        if lag == 0 and is_constant(atom):
            scores = scores + matrix.toarray()[:, 0]
    best, second = np.sort(scores, axis=1)[:, -1], np.sort(scores, axis=1)[:, -2] if scores.shape[1] > 1 else -np.inf
    tokens = compiled.source.alphabet.tokens
    return tuple(tokens[i] if clear else "" for i, clear in zip(scores.argmax(axis=1), best > second, strict=True))


def is_constant(atom: Stream) -> bool:
    """Whether it is the lane that is 1 everywhere."""
    return atom is ONE or atom.label == "one"
