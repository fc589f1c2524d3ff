"""A circuit as boxes of readable rows: one box for what one source line wrote, one row for each value that has a reader
elsewhere.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from inspect import signature

import networkx as nx

from compiler.ir.coordinate import describe
from compiler.language.circuit import Circuit
from compiler.language.operations.base import Sees
from compiler.language.stream import Stream

INPUT, PAST, PRESENT, OUTPUT = "input", "reads earlier positions", "this position only", "output"


@dataclass(frozen=True, eq=False)
class Row:
    """streams: the one that the row names, and those that stand in its expression; kind: one of the four above."""

    streams: tuple[Stream, ...]
    text: str
    kind: str


@dataclass(eq=False)
class Box:
    """title: the source line, and for a line that runs again how often it has run; sources: the boxes that it reads."""

    title: str
    rows: list[Row]
    sources: list[Box] = field(default_factory=list)


def boxes_of(circuit: Circuit) -> list[Box]:
    """The boxes, each behind those that it reads."""
    rows = _Rows(circuit)
    groups = _grouped(rows)
    titles = Counter(key[0] for key in groups.values())
    repeats = {origin for origin in titles if len({key for key in groups.values() if key[0] == origin}) > 1}
    graph = _between(rows, groups)
    boxes: dict[tuple, Box] = {}
    number: Counter[str] = Counter()
    for key in nx.lexicographical_topological_sort(graph, key=lambda key: _first(rows, groups, key)):
        number[key[0]] += 1
        title = f"{key[0]} ({number[key[0]]})" if key[0] in repeats else key[0]
        boxes[key] = Box(title, [rows.row(s) for s in rows.shown if groups[s] == key])
        boxes[key].sources = [boxes[source] for source in graph.predecessors(key)]
    return list(boxes.values())


class _Rows:
    """Which streams have a row, and how they are written."""

    def __init__(self, circuit: Circuit):
        self.circuit, self.graph = circuit, circuit.graph
        self.inside = {s for s in circuit.streams if self._stands_inside(s)}
        self.shown = [s for s in circuit.streams if s not in self.inside]
        self.number = {stream: i for i, stream in enumerate(circuit.streams)}  # as `construct show` counts them
        self._names = Counter(s.name for s in self.shown)

    def _stands_inside(self, stream: Stream) -> bool:
        """Whether it is written in its reader: a constant, or a value without a name that one stream of the same line
        reads once.
        """
        if stream is self.circuit.output:
            return False
        if is_number(stream):
            return True
        readers = list(self.graph.successors(stream))
        once = (
            len(readers) == 1
            and sum(s is stream for s in readers[0].inputs) == 1
            and readers[0].origin == stream.origin
        )
        return once and not stream.name and bool(stream.inputs)

    def read(self, stream: Stream) -> list[Stream]:
        """The streams with a row of their own that the row of this one reads."""
        found: dict[Stream, None] = {}
        for source in stream.inputs:
            found |= dict.fromkeys(self.read(source) if source in self.inside else [source])
        return list(found)

    def row(self, stream: Stream) -> Row:
        """The row of a stream: `name = expression`, and its lanes where they are several."""
        wide = f"  [{stream.width} lanes]" if stream.width > 1 else ""
        return Row(
            tuple(self._covered(stream)), f"{self._title(stream)} = {self._written(stream)}{wide}", self._kind(stream)
        )

    def _covered(self, stream: Stream) -> list[Stream]:
        inside = [s for source in dict.fromkeys(stream.inputs) if source in self.inside for s in self._covered(source)]
        return [stream, *inside]

    def _title(self, stream: Stream) -> str:
        """Its name, and its number where the name alone is not enough."""
        if stream.name and self._names[stream.name] == 1:
            return stream.name
        return " ".join(filter(None, [f"%{self.number[stream]}", stream.name]))

    def _written(self, stream: Stream) -> str:
        if stream.operation.token_table is not None:
            return describe(stream, 0) if stream.width == 1 else "looked up by the token"
        words = [self._written(s) if s in self.inside else self._reference(s) for s in stream.inputs]
        written = stream.operation.written(*words)
        if all(word in written for word in words):
            return written
        ports = list(signature(stream.operation.written).parameters)  # it leaves some of them out
        named = [f"{ports[min(i, len(ports) - 1)]}={word}" for i, word in enumerate(words)]
        return f"{stream.operation.symbol}({', '.join(named)})"

    def _reference(self, stream: Stream) -> str:
        return self._title(stream).split(" ")[0] if self._names[stream.name] > 1 or not stream.name else stream.name

    def _kind(self, stream: Stream) -> str:
        if stream is self.circuit.output:
            return OUTPUT
        if not stream.inputs:
            return INPUT
        return PAST if any(_reads_the_past(s) for s in self._covered(stream)) else PRESENT


def is_number(stream: Stream) -> bool:
    """Whether it is the same at every position."""
    return stream.operation.constants is not None


def _reads_the_past(stream: Stream) -> bool:
    return stream.operation.sees is Sees.PAST or bool(stream.operation.delay)


def _grouped(rows: _Rows) -> dict[Stream, tuple]:
    """The box of each row: its source line, and how often a path to it has come back to that line.

    Where boxes would still read each other in a circle, their rows stand alone.
    """
    runs: dict[Stream, Counter[str]] = {}
    groups: dict[Stream, tuple] = {}
    for stream in rows.shown:
        sources = rows.read(stream)
        entered: Counter[str] = Counter()
        for source in sources:
            entered |= runs[source]  # the larger count of each line
        again = max((runs[s][stream.origin] + (s.origin != stream.origin) for s in sources), default=1)
        entered[stream.origin] = max(1, again)
        runs[stream] = entered
        groups[stream] = (stream.origin, entered[stream.origin])
    circles = [part for part in nx.strongly_connected_components(_between(rows, groups)) if len(part) > 1]
    alone = {key for part in circles for key in part}
    return {s: (*key, rows.number[s]) if key in alone else key for s, key in groups.items()}


def _between(rows: _Rows, groups: dict[Stream, tuple]) -> nx.DiGraph:
    """Which box reads which."""
    graph = nx.DiGraph()
    for stream in rows.shown:
        graph.add_node(groups[stream])
        graph.add_edges_from((groups[s], groups[stream]) for s in rows.read(stream) if groups[s] != groups[stream])
    return graph


def _first(rows: _Rows, groups: dict[Stream, tuple], key: tuple) -> int:
    return next(i for i, stream in enumerate(rows.shown) if groups[stream] == key)
