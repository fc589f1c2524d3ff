"""The numbers that a circuit computes, one by one: what each is made of, and in which layer it is had.

A value is one lane of an atom, some positions back. Embeddings are there from the start; a delay or a running sum takes
a convolution; a rectifier is in the network behind the last convolution that it waits for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from compiler.analysis.affine_form import ONE, AffineForm, port_form
from compiler.language.stream import Stream

SHORT_WINDOW = (
    256  # places at most of a layer that holds both sums and delays: each delayed lane takes that many channels
)
DELAY, SUM = "delay", "sum"


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """Lane `lane` of an atom, `lag` positions back. `Values.at` has one object for each, equal to itself alone."""

    atom: Stream
    lane: int
    lag: int = 0

    @property
    def name(self) -> str:
        label = self.atom.label if self.atom.width == 1 else f"{self.atom.label}[{self.lane}]"
        return f"{label}(t−{self.lag})" if self.lag else label


Row = dict[Value, float]  # Σ weight · value; CONSTANT is the 1
CONSTANT = Value(ONE, 0)


@dataclass
class Values:
    """Everything that a circuit's outputs depend on.

    rows: for each value that is computed, what it is a rectifier, a delay or a sum of. order: inputs first.
    """

    forms: dict[Stream, AffineForm]
    rows: dict[Value, Row] = field(default_factory=dict)
    order: list[Value] = field(default_factory=list)
    _known: dict[Stream, list[Row]] = field(default_factory=dict)
    _at: dict[tuple[int, int, int], Value] = field(default_factory=lambda: {(id(ONE), 0, 0): CONSTANT})

    def at(self, atom: Stream, lane: int, lag: int = 0) -> Value:
        """The one object of a value."""
        key = (id(atom), lane, lag)
        if key not in self._at:
            self._at[key] = Value(atom, lane, lag)
        return self._at[key]

    def rows_of(self, stream: Stream) -> list[Row]:
        """A row for each lane of a stream."""
        if stream not in self._known:
            rows: list[Row] = [{} for _ in range(stream.width)]
            for (atom, lag), matrix in port_form(stream, self.forms).items():
                coo = matrix.tocoo()
                for i, j, weight in zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True):
                    rows[i][self.at(atom, j, lag)] = weight
            self._known[stream] = rows
        return self._known[stream]

    def need(self, rows: Iterable[Row]) -> None:
        """Find all that these rows depend on."""
        stack = [(value, False) for row in rows for value in reversed(row)]
        seen = set(self.order)
        while stack:
            value, done = stack.pop()
            if done:
                self.order.append(value)
            elif value not in seen:
                seen.add(value)
                self.rows[value] = self._row(value)
                stack.append((value, True))
                stack += [(source, False) for source in reversed(self.rows[value])]

    def _row(self, value: Value) -> Row:
        if value.lag:
            return {self.at(value.atom, value.lane): 1.0}
        operation = value.atom.operation
        if operation.rectifies or operation.accumulates:
            return self.rows_of(value.atom.inputs[0])[value.lane]
        return {}

    def kind(self, value: Value) -> str | None:
        """DELAY or SUM for what a convolution computes."""
        if value.lag:
            return DELAY
        return SUM if value.atom.operation.accumulates else None


def is_relu(value: Value) -> bool:
    return not value.lag and value.atom.operation.rectifies


def stages(values: Values, max_length: int) -> dict[Value, int]:
    """For each value the number of the convolution, or of the network behind it, that gives it; 0: the embedding.

    The fewest layers. A layer holds both sums and delays only where its window, as long as a sequence, is short.
    """
    found = _fewest(values)
    kinds: dict[int, set[str]] = {}
    for value, stage in found.items():
        kind = values.kind(value)
        if kind:
            kinds.setdefault(stage, set()).add(kind)
    if max_length <= SHORT_WINDOW or all(len(held) == 1 for held in kinds.values()):
        return found
    return min((_alternating(values, first) for first in (DELAY, SUM)), key=lambda s: max(s.values()))


def _earliest(value: Value, values: Values, found: dict[Value, int]) -> int:
    """The stage in which a value's inputs are there."""
    ready = max((found[source] for source in values.rows[value]), default=0)
    return ready + 1 if values.kind(value) else max(ready, 1) if is_relu(value) else ready


def _fewest(values: Values) -> dict[Value, int]:
    """As early as it goes; where there is slack, in a layer of its own kind."""
    soonest: dict[Value, int] = {}
    for value in values.order:
        soonest[value] = _earliest(value, values, soonest)
    last = max(soonest.values(), default=0)
    latest = dict.fromkeys(values.order, last)
    for value in reversed(values.order):
        for source in values.rows[value]:
            latest[source] = min(latest[source], latest[value] - (values.kind(value) is not None))
    held: dict[int, set[str]] = {}
    for value in values.order:
        kind = values.kind(value)
        if kind and soonest[value] == latest[value]:
            held.setdefault(soonest[value], set()).add(kind)
    found: dict[Value, int] = {}
    for value in values.order:
        found[value] = _earliest(value, values, found)
        kind = values.kind(value)
        if kind:
            alike = (s for s in range(found[value], latest[value] + 1) if held.get(s, {kind}) <= {kind})
            found[value] = next(alike, found[value])
            held.setdefault(found[value], set()).add(kind)
    return found


def _alternating(values: Values, first: str) -> dict[Value, int]:
    """Delays and sums in turn; layers that hold nothing are left out."""
    kinds = (first, SUM if first == DELAY else DELAY)
    found: dict[Value, int] = {}
    for value in values.order:
        found[value] = _earliest(value, values, found)
        kind = values.kind(value)
        if kind:
            found[value] += kinds[(found[value] - 1) % 2] != kind
    used = sorted({found[value] for value in values.order if values.kind(value)})
    place = {stage: i for i, stage in enumerate(used, start=1)}
    for value in values.order:
        below = [place[s] for s in used if s <= found[value]]
        found[value] = max(below, default=0) if not is_relu(value) else max([*below, 1])
    return found
