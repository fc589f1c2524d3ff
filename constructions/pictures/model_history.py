"""Everything that moves in a compiled model while it reads an input: lanes, states block by block, and the answers.

A lane or a state entry *moves* if it is not 0 at some step. The lane of the constant 1 is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from compiler.artifact.model import Stack
from compiler.artifact.numeric import NumericStack
from compiler.compiled import Compiled
from compiler.language.stream import Stream
from constructions.pictures.state_history import Group, is_constant, read_input, state_groups


@dataclass(frozen=True, eq=False)
class Section:
    """A part of the model: the input's lanes, the state of a block, the lanes that it writes, or the output.

    groups: what moves in it; still: how many of its groups of lanes or entries stay 0.
    """

    title: str
    groups: tuple[Group, ...]
    still: int


@dataclass(frozen=True, eq=False)
class ModelHistory:
    """tokens: the input, one name a step; sections: the parts of the model in the order in which they are computed."""

    tokens: tuple[str, ...]
    sections: tuple[Section, ...]


@torch.no_grad()
def model_history(compiled: Compiled, stack: Stack | NumericStack, text: str, block: int | None = None) -> ModelHistory:
    """What all blocks hold and write while the model reads white-space separated tokens, or numbers.

    stack: the compiled circuit as a module: bare, a language model, or over numbers. block: only this one, counted
    from 1, with the lanes that it reads from the input. ValueError for unknown tokens and blocks.
    """
    count = len(compiled.blocks)
    if block is not None and not 1 <= block <= count:
        raise ValueError(f"there is no block {block}: the model has {count}, counted from 1")
    numbers = list(range(1, count + 1)) if block is None else [block]
    stack, first, labels = read_input(compiled, stack, text)
    streams = list(stack.streams(first))
    found = [_section("input: the lanes that the embedding writes", _lane_groups(compiled, stack, streams, 0))]
    for number, states in zip(numbers, state_groups(compiled, stack, first, numbers), strict=True):
        found.append(_section(f"block {number}: its state", states))
        lanes = _lane_groups(compiled, stack, streams, number)
        found.append(_section(f"block {number}: the lanes that it writes", lanes))
    found.append(_section("output", [_output(compiled, stack.logits(streams[-1])[0].double().numpy())]))
    return ModelHistory(tuple(labels), tuple(section for section in found if section.groups or section.still))


def _section(title: str, groups) -> Section:
    """Only what moves; the output is kept where it is a token."""
    groups = tuple(groups)
    moving = tuple(group for group in groups if np.any(group.values) or (group.answers and not group.rows))
    return Section(title, moving, len(groups) - len(moving))


def _lane_groups(compiled: Compiled, stack: Stack, streams: list[Tensor], stage: int) -> Iterator[Group]:
    """The lanes written after `stage` blocks, grouped by the stream that they hold; rows that stay 0 are left out."""
    first = 0 if stack.residual or not stage else compiled.lanes.n_inputs  # one block without residual starts at 0
    values = streams[stage][0].double().numpy()
    for stream, lanes in _written(compiled, stage).items():
        held = values[:, np.array(lanes) - first]
        used = np.flatnonzero(np.any(held, axis=0))
        places = [compiled.lanes.coordinates[lanes[i]] for i in used]
        names, meanings = tuple(p.name for p in places), tuple(p.meaning for p in places)
        yield Group(stream.label, names, held[:, used], None, meanings)


def _written(compiled: Compiled, stage: int) -> dict[Stream, list[int]]:
    """The lanes that the embedding (0) or a block writes, by the stream that they hold; not the constant 1."""
    lanes = compiled.lanes
    if stage:
        at = {
            stream: lanes.index[stream]
            for stream in compiled.schedule.blocks[stage - 1]
            if stream in lanes.index and not is_constant(stream)
        }
        found = {stream: [int(lane) for lane in places if lane >= 0] for stream, places in at.items()}
        return {stream: places for stream, places in found.items() if places}
    found = {}
    for lane, place in enumerate(lanes.coordinates[: lanes.n_inputs]):
        if place.stream is not None and not is_constant(place.stream):
            found.setdefault(place.stream, []).append(lane)
    return found


def _output(compiled: Compiled, scores: np.ndarray) -> Group:
    """The answer at every step where the output scores the letters; otherwise its numbers."""
    output = compiled.core.output
    scores = scores[:, : output.width]
    alphabet = compiled.source.alphabet
    if alphabet is None or alphabet.size != output.width:
        rows = (output.label,) if output.width == 1 else tuple(f"{output.label}[{i}]" for i in range(output.width))
        return Group(output.label, rows, scores, None)
    best = scores.argmax(axis=1)
    clear = (scores == scores.max(axis=1, keepdims=True)).sum(axis=1) == 1
    answers = tuple(alphabet.tokens[i] if sure else "" for i, sure in zip(best, clear, strict=True))
    return Group("answer", (), scores[:, :0], answers)
