"""Common subexpressions: equal operations with equal attributes on equal inputs become one stream.

What is written twice is then computed once, and memories whose keys are equal share their columns and a block.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, replace

import numpy as np
from scipy import sparse

from compiler.context import Context
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.operations import Source
from compiler.language.stream import Stream


def common_subexpressions(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit with each stream once; the streams of the circuit as written are not changed.

    A bank behind a gate is one operation with it and has no lanes of its own, so it is shared with other gates only.
    """
    behind_gates = {s.inputs[0] for s in circuit.streams if s.operation.opens_bank}
    prints, domains = _Fingerprints(), context.domains.draft()
    kept: dict[Stream, Stream] = {}
    known: dict[tuple, Stream] = {}
    for stream in circuit.streams:
        inputs = tuple(kept[s] for s in stream.inputs)
        key = (stream in behind_gates, prints.of(stream.operation), *map(id, inputs))
        if key not in known:
            known[key] = rebuilt(stream, inputs)
        kept[stream] = known[key]
        domains.replaced(stream, kept[stream])
    output = kept[circuit.output]
    return (circuit if output is circuit.output else replace(circuit, output=output)), context.knowing(domains)


class _Fingerprints:
    """What two operations have in common exactly if they mean the same; matrices are read once."""

    def __init__(self) -> None:
        self._matrices: dict[int, tuple[sparse.csr_array, Hashable]] = {}  # kept, so that an id stays its own

    def of(self, operation: ops.Operation) -> Hashable:
        names = {f.name for f in fields(operation)}
        if operation.source is Source.NUMBERS or set(vars(operation)) - names:
            return id(operation)  # an input is no other input; what hides attributes is only itself
        print_ = (type(operation), *(self._value(getattr(operation, f.name)) for f in fields(operation)))
        try:
            hash(print_)
        except TypeError:
            return id(operation)
        return print_

    def _value(self, value: object) -> object:
        if sparse.issparse(value):
            if id(value) not in self._matrices:
                csr = sparse.csr_array(value)
                parts = (csr.indptr, csr.indices)
                entries = (csr.shape, *(p.astype(np.int64).tobytes() for p in parts), csr.data.tobytes())
                self._matrices[id(value)] = (value, entries)
            return self._matrices[id(value)][1]
        if isinstance(value, tuple):
            return tuple(self._value(v) for v in value)
        return value
