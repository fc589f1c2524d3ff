"""Zeros: a lane that bounds show to be 0, and that would be computed of real numbers, is the constant 0.

x.clip(-1, 0) of x ≥ 0 is such a lane. Computed, it is a difference of real numbers, with their roundings: what reads it
by its bounds alone, or multiplies it, would find a number that is not 0.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from compiler.analysis.domains import Domains
from compiler.context import Context
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.stream import Stream, constant, standing_for


def zeros(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit without such lanes; the same object where it has none."""
    found = {s: _zero_lanes(s, context.domains) for s in circuit.streams}
    if not any(zero.any() for zero in found.values()):
        return circuit, context
    domains = context.domains.draft()
    kept: dict[Stream, Stream] = {}
    for stream in circuit.streams:
        with standing_for(stream):
            new = _without(stream, tuple(kept[s] for s in stream.inputs), found[stream])
        if new is not stream:
            new.name = new.name or stream.name
            domains.replaced(stream, new)
        kept[stream] = new
    return replace(circuit, output=kept[circuit.output]), context.knowing(domains)


def _zero_lanes(stream: Stream, domains: Domains) -> np.ndarray:
    """(width,) bool. An input costs nothing, and stays."""
    domain = domains.of(stream)
    return (domain.bounds == 0) & (domain.units == 0) & (stream.operation.source is None)


def _without(stream: Stream, inputs: tuple[Stream, ...], zero: np.ndarray) -> Stream:
    if zero.all() and stream.width:
        return constant(0, stream.width)
    new = rebuilt(stream, inputs)
    return sparse.diags_array(1.0 - zero) @ new if zero.any() else new
