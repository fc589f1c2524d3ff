"""Once: additive memories of which it can be proved that no slot is written twice, where nothing else fits.

An additive memory is bounded by all that could be written under one key, which grows with the length and is refused
where it leaves the exact range. Written once (`analysis.written_once`) it is bounded by the largest value. The proof
follows all paths of the input language, so it is looked for only where the circuit is refused without it.
"""

from __future__ import annotations

from dataclasses import replace

from compiler.analysis.domains import Domains
from compiler.analysis.written_once import doubt
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.stream import Stream
from compiler.language.types import OneHot


def once(circuit: Circuit) -> Circuit:
    """The same circuit, its additive memories "once" where that is proved; itself where none is."""
    domains = Domains(circuit.language, circuit.max_length)
    kept: dict[Stream, Stream] = {}
    for stream in circuit.streams:
        inputs = tuple(kept[s] for s in stream.inputs)
        operation = stream.operation
        claimed = operation.written_once()
        if claimed is not None and isinstance(stream.inputs[1].type, OneHot) and doubt(stream, domains) is None:
            operation = claimed
        kept[stream] = rebuilt(stream, inputs, operation)
    output = kept[circuit.output]
    return circuit if output is circuit.output else replace(circuit, output=output)
