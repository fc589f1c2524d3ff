"""What stands at one place of a weight's axis: a name, and what it means in the circuit.

Every lane, feature, channel and column of the block IR has one, from the stream that it was made for. A layout
(`compiler/layout.py`) says which coordinate stands where in the tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compiler.language.operations import Source
from compiler.language.stream import Stream
from compiler.language.types import Bool, OneHot

_IN_WORDS = {"cumsum": "sum so far", "gatesum": "gated sum"}  # symbols that are no words


@dataclass(frozen=True, eq=False, slots=True)
class Coordinate:
    """A named place. What stands there physically is unit times the number that it means.

    stream, number, lag: the number of a stream, so many positions back; None for places with a text of their own.
    reader: the operation whose gadget put it there (a port row is made for its reader); None where the stream did.
    """

    name: str
    stream: Stream | None = None
    number: int = 0
    lag: int = 0
    unit: float = 1.0
    reader: Stream | None = None
    gadget: str = ""
    text: str = ""

    @property
    def meaning(self) -> str:
        """What the number says: which token or bit, of which stream, how far back."""
        if self.text or self.stream is None:
            return self.text
        past = "" if not self.lag else f", {self.lag} position{'s' if self.lag > 1 else ''} earlier"
        return describe(self.stream, self.number) + past

    @property
    def operation(self) -> str:
        """The operation that it serves."""
        return "" if self._served is None else self._served.operation.symbol

    @property
    def source(self) -> str:
        """`file.py:line` of the circuit."""
        return "" if self._served is None else str(self._served.origin)

    @property
    def _served(self) -> Stream | None:
        return self.stream if self.reader is None else self.reader

    @property
    def said(self) -> str:
        """Meaning and scale, such as "1 where the token is a, else 0, times 32"."""
        return ", ".join(filter(None, [self.meaning, "" if self.unit == 1 else f"times {self.unit:g}"]))

    def __str__(self) -> str:
        return f"{self.name} ({self.said})" if self.said else self.name


def numbered(stream: Stream, numbers: Iterable[int], lag: int = 0, unit: float = 1.0) -> list[Coordinate]:
    """The coordinates of some numbers of a stream."""
    past = f".shift{lag}" if lag else ""
    whole = stream.width == 1
    return [
        Coordinate(f"{stream.label}{past}" if whole else f"{stream.label}{past}[{i}]", stream, int(i), lag, unit)
        for i in numbers
    ]


def describe(stream: Stream, number: int) -> str:
    """What a number of a stream says, in words."""
    kept = []
    while carried := stream.operation.carries(number, *(s.width for s in stream.inputs)):
        if stream.operation.core:
            kept.append(_IN_WORDS.get(stream.operation.symbol, stream.operation.symbol))
        stream, number = stream.inputs[carried[0]], carried[1]
    return "".join(f"{symbol} of " for symbol in kept) + (_part(stream, number) or _plain(stream, number))


def _part(stream: Stream, number: int) -> str:
    """Such as relu(-x), where the compiler takes a number of the input apart by its sign; "" elsewhere."""
    if stream.operation.symbol != "relu":  # a half is only near it
        return ""
    source, at, factor = stream.inputs[0], number, 1.0
    while (found := source.operation.multiple(at)) is not None:
        source, at, factor = source.inputs[found[0]], found[1], factor * found[2]
    if abs(factor) != 1 or source.operation.source is not Source.NUMBERS:
        return ""
    return f"relu({'-' if factor < 0 else ''}{_plain(source, at)})"


def _plain(stream: Stream, number: int) -> str:
    type, said = stream.type, stream.operation.says(number)
    if said is not None:
        return said
    if isinstance(type, OneHot):
        return f"whether {stream.label} is alternative {number}"
    label = stream.label if stream.width == 1 else f"number {number} of {stream.label}"
    return f"whether {label}" if isinstance(type, Bool) else label
