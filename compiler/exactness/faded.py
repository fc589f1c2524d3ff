"""A circuit whose states fade by the factors that the weights hold: the nearest that a float32 A_log gives."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp

from compiler.exactness.levels import ON
from compiler.ir.decay import fade_by
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.stream import Stream


def as_faded(circuit: Circuit) -> Circuit:
    """The circuit with those factors; the same object where nothing fades.

    Where no error bound is known of what reads a fading state, this says what to expect of the blocks.
    """
    known: dict[Stream, Stream] = {}
    for stream in circuit.streams:
        operation, inputs = stream.operation, tuple(known[s] for s in stream.inputs)
        if isinstance(operation, ops.FadingSum | ops.SelectiveSum | ops.FadingMemory):
            operation = replace(operation, decay=Fraction(exp(-ON * fade_by(operation.decay).rate)))
        known[stream] = rebuilt(stream, inputs, operation)
    output = known[circuit.output]
    return circuit if output is circuit.output else replace(circuit, output=output)
