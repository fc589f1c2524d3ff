"""Common subexpressions: equal operations with equal attributes on equal inputs become one stream.

What is written twice is then computed once, and memories whose keys are equal share their columns and a block.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, replace

from scipy import sparse

from compiler.context import Context
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.operations import Source
from compiler.language.stream import Stream
from compiler.lattice.matrix_sums import MatrixSumsCache


def common_subexpressions(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit with each stream once; the streams of the circuit as written are not changed.

    A bank behind a gate is one operation with it and has no lanes of its own, so it is shared with other gates only.
    """
    behind_gates = {s.inputs[0] for s in circuit.streams if s.operation.opens_bank}
    prints, domains = _Fingerprints(context.domains.sums), context.domains.draft()
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

    def __init__(self, matrices: MatrixSumsCache) -> None:
        self._matrices = matrices

    def of(self, operation: ops.Operation) -> Hashable:
        names = [f.name for f in fields(operation)]
        if operation.source is Source.NUMBERS or vars(operation).keys() - names:
            return id(operation)  # an input is no other input; what hides attributes is only itself
        print_ = (type(operation), *(self._value(getattr(operation, name)) for name in names))
        try:
            hash(print_)
        except TypeError:
            return id(operation)
        return print_

    def _value(self, value: object) -> object:
        if isinstance(value, sparse.sparray):
            return self._matrices(value if value.format == "csr" else sparse.csr_array(value))
        if isinstance(value, tuple):
            return tuple(self._value(v) for v in value)
        return value
