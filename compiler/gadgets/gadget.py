"""What a gadget is: everything that is particular to one operation that a block computes.

The passes know operations through their gadgets only. So a new operation is its own file in the
language and one gadget, registered below; no pass lists operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from compiler.analysis.domains import Domains
from compiler.language.operations import Operation
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.fitter import Fitter
from compiler.lowering.ports import Port, Ports

Operands: TypeAlias = list[tuple[Stream, Port]]


@dataclass(frozen=True, eq=False)
class Entry:
    """A part of a state that a picture shows: which alternative of the gate or query opens it, channels and column.

    alternative: the number of the gate or query, None for a state without one; channels: indices among the
    channels of the operation, in the order in which the gadget added them; unit: what turns a state, times its
    weight in out_proj, into the number that the circuit means.
    """

    alternative: int | None
    channels: np.ndarray
    column: int
    unit: float = 1.0


class Gadget:
    """How a block computes one operation.

    Subclasses override what differs from a map of the present lanes, number by number.
    """

    def operands(self, stream: Stream, target: Ports) -> Operands:
        """Each operand and the port it stands at."""
        return [(source, "lanes") for source in stream.inputs]

    def rows(self, stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
        """For each operand, which of its numbers the wanted numbers of the result depend on (masks)."""
        return [wanted for _ in stream.inputs]

    def absorbs(self, stream: Stream) -> tuple[Stream, ...]:
        """Operands that are computed by the same channels as the operation itself."""
        return ()

    def column_group(self, stream: Stream) -> tuple | None:
        """What the operation needs the shared columns B and C to be; None where it has no state.

        Streams are named in it by their id, for == of streams builds a comparison.
        """
        return None

    def fit(self, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
        """The operation over fitted inputs, each in the shape that its port takes."""
        again = fitter.rebuilt(stream, stream.operation, inputs)
        return fitter.rebuilt(
            stream, stream.operation, tuple(fitter.at_port(*o) for o in self.operands(again, fitter.target))
        )

    def lower(self, stream: Stream, wanted: np.ndarray, builder: BlockBuilder) -> None:
        """Add the wanted numbers of the operation to a block."""
        raise NotImplementedError(f"the gadget {type(self).__name__} lowers nothing")

    def claims(self, stream: Stream, domains: Domains) -> Iterator[tuple[str, Fraction]]:
        """(what, a bound on it in quanta) for each sum that the operation forms beside its value."""
        return iter(())

    def entries(self, stream: Stream, count: int, target: Ports) -> list[Entry]:
        """What its state holds, for pictures; count: how many channels it has. Empty where it has no state."""
        return []


_GADGETS: dict[type, Gadget] = {}


def register(operation: type[Operation], gadget: Gadget) -> None:
    """Make this the gadget of an operation; its subclasses need one each."""
    _GADGETS[operation] = gadget


def gadget_of(operation: Operation) -> Gadget | None:
    """The gadget of an operation; None where a block does not compute it (sources, linear maps, derived operations)."""
    return _GADGETS.get(type(operation))


def operations_with_gadgets() -> frozenset[type]:
    """The operations that have a gadget."""
    return frozenset(_GADGETS)
