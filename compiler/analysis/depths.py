"""After how many blocks a core stream can stand on lanes, conflicts aside."""

from __future__ import annotations

from collections.abc import Iterable

from compiler.language.graph import inputs_first
from compiler.language.stream import Stream


class Depths:
    """Depths, found once each: sources have 0, linear maps fold into their readers, everything else takes a block."""

    def __init__(self) -> None:
        self._known: dict[Stream, int] = {}
        self._at_ports: dict[Stream, int] = {}

    def of(self, stream: Stream) -> int:
        """The number of blocks."""

        def unknown(node: Stream) -> Iterable[Stream]:
            return () if node in self._known else node.inputs

        for node in inputs_first([stream], unknown):
            if node not in self._known:
                self._known[node], self._at_ports[node] = self._found(node)
        return self._known[stream]

    def _found(self, stream: Stream) -> tuple[int, int]:
        """(when it stands on lanes, when a port can have it: a ramp is computed in the block that reads it)."""
        operation = stream.operation
        on_lanes = max((self._known[s] for s in stream.inputs), default=0)
        at_ports = max((self._at_ports[s] for s in stream.inputs), default=0)
        if operation.delay is not None:
            return on_lanes, on_lanes
        if operation.free:  # a source, or a linear map
            return on_lanes, at_ports
        if operation.rectifies:
            return on_lanes + 1, on_lanes
        return at_ports + 1, at_ports + 1
