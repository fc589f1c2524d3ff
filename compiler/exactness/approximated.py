"""A circuit whose approximate operations are what the weights make of them: the nearest factor by which a state fades
that a float32 A_log gives, and four silus for a product.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp

import numpy as np

from compiler.exactness.levels import ON
from compiler.ir.decay import fade_by
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.stream import Stream


def as_approximated(circuit: Circuit) -> Circuit:
    """The circuit with those operations, to be run in float64; the same object where it has none.

    Where no error bound is known of what reads them, this says what to expect of the blocks.
    """
    known: dict[Stream, Stream] = {}
    for stream in circuit.streams:
        known[stream] = rebuilt(stream, tuple(known[s] for s in stream.inputs), _approximated(stream.operation))
    output = known[circuit.output]
    return circuit if output is circuit.output else replace(circuit, output=output)


def _approximated(operation: ops.Operation) -> ops.Operation:
    if isinstance(operation, ops.FadingSum | ops.SelectiveSum | ops.FadingMemory):
        return replace(operation, decay=Fraction(exp(-ON * fade_by(operation.decay).rate)))
    if isinstance(operation, ops.SiluProduct):
        scale, silus = float(operation.scale), replace(operation)
        object.__setattr__(
            silus, "evaluate", lambda a, b: scale**2 / 2 * (_even((a + b) / scale) - _even((a - b) / scale))
        )
        return silus
    return operation


def _even(z: np.ndarray) -> np.ndarray:
    """silu(z) + silu(−z)."""
    return z * np.tanh(z / 2)
