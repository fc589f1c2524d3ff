"""Paths: what a few streams can hold at every step of every path of the input language.

The input language is a finite automaton. Its product with what the watched streams remember is finite too, if each
stream is known by an interval for each lane:

    a function of the present token    its row of the table; tokens with equal rows are one class
    a shift of at most 8               the intervals of the last positions
    a latch                            the last interval, or its hull with the new one where the flag is not certain
    a running sum or a count           exact up to 3, "3 or more" beyond (where that is too much to keep: at least 0)
    sums, rectifiers, logic, …         interval arithmetic, or the operation itself where all operands are certain
    everything else                    the bounds that are known of it anyway

Each interval holds the values of its stream at that step of every sequence that takes this path, by induction over the
steps. That edges are `distinct` and that sequences end is left out: both only take paths away. So what holds along
every path of the product holds for every sequence of the language.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf

import numpy as np

from compiler.language import operations as ops
from compiler.language.graph import inputs_first, with_operation
from compiler.language.input_language import InputLanguage
from compiler.language.operations import Source
from compiler.language.stream import Stream
from compiler.lattice.domain import Domain
from compiler.lattice.intervals import Value, exact

MOST_STEPS = 8192  # of the product; beyond, nothing is claimed
_MOST_STREAMS = 128  # that are followed, nearest to the watched ones first
_WIDEST = 64
_COUNTED = 3
_MOST_ROWS = 1 << 24
_SET_UP = 8  # steps that take as long as to begin with a product

DomainOf = Callable[[Stream], Domain]


class TooManyPaths(Exception):
    """The product has more steps, or a watched stream more lanes, than are followed."""


class Work:
    """How many more lanes may be stepped for one circuit: what all its paths together may take.

    A step of a product costs the lanes that it reads, and to begin with one costs some steps. Every stream of the
    circuit adds to what is left, so the time stays linear in the circuit, however many of its operations ask for paths
    of their own.
    """

    LEAST = 1 << 18  # half a second; the constructions take 2^15 at most
    FOR_A_STREAM = 1 << 7

    def __init__(self) -> None:
        self._left = self.LEAST

    def earn(self) -> None:
        """A stream more is known of."""
        self._left += self.FOR_A_STREAM

    def spend(self, lanes: int) -> None:
        """TooManyPaths where no more is left."""
        if lanes > self._left:
            raise TooManyPaths("more steps than all operations of a circuit of this size may take together")
        self._left -= lanes


@dataclass(frozen=True)
class Step:
    """One step of the product: from node to node by a token of a class, along an edge of the language.

    token: the least id of its class, None for circuits over numbers; trail: the edges of the steps before, nearest
    first (−1 before the start); values: of each watched stream.
    """

    source: int
    target: int
    edge: int
    token: int | None
    trail: tuple[int, ...]
    values: tuple[Value, ...]


def paths(
    language: InputLanguage | None,
    domain_of: DomainOf,
    watched: Sequence[Stream],
    trail: int = 0,
    work: Work | None = None,
) -> list[list[Step]]:
    """The steps that leave each node of the product; node 0 is the start.

    TooManyPaths beyond MOST_STEPS, or where the circuit has no more work left.
    """
    work = work or Work()
    try:
        return _Product(language, domain_of, watched, trail, _COUNTED, work).explored()
    except TooManyPaths:
        return _Product(language, domain_of, watched, trail, 0, work).explored()


class _Product:
    def __init__(
        self,
        language: InputLanguage | None,
        domain_of: DomainOf,
        watched: Sequence[Stream],
        trail: int,
        counted: int,
        work: Work,
    ):
        self.watched, self.trail, self.counted, self.work = watched, trail, counted, work
        self.streams = _followed(watched)
        self.lanes = sum(1 + sum(read.width for read in s.inputs) for s in self.streams)
        work.spend(_SET_UP * self.lanes)
        self.unknown = {s: _bounds(s, domain_of) for s in self.streams}
        self.language = language
        self.edges = _letters(language, [s for s in self.streams if s.operation.source is Source.TOKEN])

    def explored(self) -> list[list[Step]]:
        start = (self.language.start if self.language else "", (None,) * len(self.streams), (-1,) * self.trail)
        nodes, pending, count = {start: 0}, [start], 0
        found: list[list[Step]] = []
        for node in pending:  # grows while it is read
            state, memories, trail = node
            found.append([])
            for edge, target, token, rows in self.edges.get(state, ()):
                self.work.spend(self.lanes)
                values, after = self._step(memories, rows)
                following = (target, after, (edge, *trail)[: self.trail])
                if following not in nodes:
                    nodes[following] = len(nodes)
                    pending.append(following)
                found[-1].append(Step(nodes[node], nodes[following], edge, token, trail, self._read(values)))
                count += 1
                if count > MOST_STEPS:
                    raise TooManyPaths(f"more than {MOST_STEPS} steps")
        return found

    def _read(self, values: dict[Stream, Value | None]) -> tuple[Value, ...]:
        """What the watched streams hold."""
        read = []
        for stream in self.watched:
            value = values[stream]
            if value is None:
                raise TooManyPaths(f"{stream.width} lanes of {stream.label}")
            read.append(value)
        return tuple(read)

    def _step(self, memories: tuple, rows: dict[Stream, Value]) -> tuple[dict[Stream, Value | None], tuple]:
        """The values at a step, and what is remembered behind it."""
        values: dict[Stream, Value | None] = {}
        after = []
        for stream, memory in zip(self.streams, memories, strict=True):
            operands = [values.get(s) for s in stream.inputs]
            value, kept = None, None
            if stream in rows:
                value = rows[stream]
            elif stream.operation.followed and all(v is not None for v in operands):
                value, kept = stream.operation.step(memory, self.counted, *operands)
            values[stream] = _within(value, self.unknown[stream])
            after.append(kept)
        return values, tuple(after)


def _within(value: Value | None, bounds: Value | None) -> Value | None:
    """A value whose infinite ends are those that are known of its stream at any position."""
    if value is None or bounds is None:
        return bounds if value is None else value
    return tuple(
        (b[0] if v[0] == -inf else v[0], b[1] if v[1] == inf else v[1]) for v, b in zip(value, bounds, strict=True)
    )


def _followed(watched: Sequence[Stream]) -> list[Stream]:
    """The streams that the watched ones are functions of, as far as they are followed; inputs before readers."""
    near = list(dict.fromkeys(watched))
    seen = set(near)
    for stream in near:  # grows while it is read
        if not stream.operation.followed or stream.width > _WIDEST:
            continue
        new = [s for s in dict.fromkeys(stream.inputs) if s not in seen]
        if len(near) + len(new) > _MOST_STREAMS:
            continue
        seen.update(new)
        near.extend(new)
    return inputs_first(near, lambda node: [s for s in node.inputs if s in seen])


def _bounds(stream: Stream, domain_of: DomainOf) -> Value | None:
    """What is known of a stream at any position, None where it is too wide to be followed."""
    if stream.width > _WIDEST:
        return None
    known = domain_of(stream)
    return tuple(
        (-inf if lo == -inf else floor(lo), inf if hi == inf else ceil(hi))
        for lo, hi in zip(known.low.tolist(), known.high.tolist(), strict=True)
    )


def _letters(language: InputLanguage | None, embeds: list[Stream]) -> dict[str, list]:
    """For each state (edge, next state, a token, rows of the embeddings), one for each class of tokens with
    equal rows.
    """
    if language is None:
        return {"": [(0, "", None, {})]}
    tables = {s: embed.table for s, embed in with_operation(embeds, ops.Embed) if s.width <= _WIDEST}
    size = language.alphabet.size
    if size * (1 + sum(s.width for s in tables)) > _MOST_ROWS:
        raise TooManyPaths("too many tokens")
    dense = {s: table.toarray() for s, table in tables.items()}
    rows = np.hstack([np.zeros((size, 1)), *dense.values()])
    _, first, kind = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    kind = kind.reshape(-1)
    held = {int(t): {s: tuple((exact(v),) * 2 for v in table[t]) for s, table in dense.items()} for t in first}
    letters: dict[str, list] = {}
    for number, edge in enumerate(language.edges):
        classes = np.unique(kind[sorted(edge.tokens)]) if edge.tokens else ()
        for c in classes:
            here = min(t for t in edge.tokens if kind[t] == c)
            letters.setdefault(edge.source, []).append((number, edge.target, here, held[int(first[c])]))
    return letters
