"""A circuit whose approximate operations are what the weights make of them: the nearest factor by which a state fades
that a float32 A_log gives, and four silus for a product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import exp
from typing import Any

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
        known[stream] = rebuilt(stream, tuple(known[s] for s in stream.inputs), _of_weights(stream.operation))
    output = known[circuit.output]
    return circuit if output is circuit.output else replace(circuit, output=output)


def _of_weights(operation: ops.Operation) -> ops.Operation:
    approximated = _APPROXIMATED.get(type(operation))
    return operation if approximated is None else approximated(operation)


def _faded(operation: Any) -> ops.Operation:
    return replace(operation, decay=Fraction(exp(-ON * fade_by(operation.decay).rate)))


def _by_four_silus(product: ops.SiluProduct) -> ops.Operation:
    """The product as it is computed: of this one operation, for a class of its own would be one that files may name."""
    scale, silus = float(product.scale), replace(product)
    computed = lambda a, b: scale**2 / 2 * (_even((a + b) / scale) - _even((a - b) / scale))
    object.__setattr__(silus, "evaluate", computed)
    return silus


def _even(z: np.ndarray) -> np.ndarray:
    """silu(z) + silu(−z)."""
    return z * np.tanh(z / 2)


_APPROXIMATED: dict[type, Callable[[Any], ops.Operation]] = {
    ops.FadingSum: _faded,
    ops.SelectiveSum: _faded,
    ops.FadingMemory: _faded,
    ops.SiluProduct: _by_four_silus,
}
