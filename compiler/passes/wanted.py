"""Pass 2, wanted: what no number of the output is made of is not computed, and so is no reason to refuse a circuit."""

from __future__ import annotations

from dataclasses import replace

from compiler.context import Context
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream, constant


def wanted(circuit: Circuit, context: Context) -> Circuit:
    """The same circuit, zeros where lanes of a stream meet only zeros of all matrices; itself where there are none."""
    read = _read(circuit, context)
    free = (ops.Linear, ops.Shift, ops.Constant)
    idle = {s for s in circuit.streams if s not in read and not isinstance(s.operation, free)}
    if not idle:
        return circuit
    kept: dict[Stream, Stream] = {}
    for stream in circuit.streams:
        inputs = tuple(kept[s] for s in stream.inputs)
        new = constant(0, stream.width) if stream in idle else stream
        if new is stream and any(a is not b for a, b in zip(inputs, stream.inputs, strict=True)):
            new = Stream(stream.operation, inputs, stream.name)
            context.domains.meet(new, context.domains.of(stream))
        new.origin = stream.origin
        kept[stream] = new
    return replace(circuit, output=kept[circuit.output])


def _read(circuit: Circuit, context: Context) -> set[Stream]:
    """The atoms of the output, of their operands, and so on."""
    found: set[Stream] = set()
    pending = [circuit.output]
    while pending:
        for atom, _ in context.form(pending.pop()):
            if atom not in found:
                found.add(atom)
                pending += atom.inputs
    return found
