"""Functions of one token: their tables over the vocabulary, and the embeddings that they fold into."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np
from scipy import sparse

from compiler.analysis.domains import Domains
from compiler.analysis.exact_matrices import EXACT, exact_float, exact_rows, product, total
from compiler.language import operations as ops
from compiler.language.alphabet import Alphabet
from compiler.language.graph import inputs_first
from compiler.language.operations import Sees
from compiler.language.stream import Stream
from compiler.language.types import Type
from compiler.lattice.units import array_unit

_LARGEST_DENSE_TABLE = 1 << 25


class TokenTables:
    """The tables of streams, found once each; alphabet: None where a circuit reads numbers, and nothing is folded."""

    def __init__(self, domains: Domains, alphabet: Alphabet | None):
        self.domains = domains
        self.alphabet = alphabet
        self._tables: dict[Stream, sparse.csr_array | None] = {}

    def table(self, stream: Stream) -> sparse.csr_array | None:
        """The (vocabulary × width) table of a stream that is a function of the present token, else None."""
        if stream not in self._tables:
            for node in inputs_first([stream], self._untold):
                self._tables[node] = self._table(node)
        return self._tables[stream]

    def _untold(self, stream: Stream) -> list[Stream]:
        return [] if stream.operation.sees is Sees.PAST else [s for s in stream.inputs if s not in self._tables]

    def fold(self, stream: Stream, inputs: tuple[Stream, ...]) -> Stream | None:
        """An embedding for a nonlinear function of one token (at any one lag), else None."""
        operation = stream.operation
        if operation.sees is not Sees.POINTWISE or not operation.foldable:
            return None
        lags = {s.operation.delay or 0 for s in inputs}
        if len(lags) != 1 or (lags != {0} and not operation.zero_preserving):
            return None
        (lag,) = lags
        here = Stream(operation, [s.inputs[0] if lag else s for s in inputs])
        table = self.table(here)
        if table is None:
            return None
        return shifted(self._embedded(table, stream.type, stream.label), lag)

    def window(self, stream: Stream) -> tuple[sparse.csr_array | None, int]:
        """(table, lag) of a stream that is a function of one token, k positions back."""
        if stream.operation.delay is not None:
            return self.table(stream.inputs[0]), stream.operation.delay
        return self.table(stream), 0

    def masked(self, port: Stream, flag: sparse.csr_array) -> Stream:
        """A function of one token where a flag (vocabulary × 1) of that token holds; a linear map stays one."""
        operation = port.operation
        if operation.maps and len(port.inputs) == 1:
            return Stream(operation, (self.masked(port.inputs[0], flag),), port.name)
        table = self.table(port)
        assert table is not None, "only functions of one token are masked"
        return self._embedded(ops.exact_matrix(table.multiply(flag)), port.type, f"{port.label}.masked")

    def _embedded(self, table: sparse.csr_array, type: Type, name: str) -> Stream:
        assert self.alphabet is not None, "what has a table reads tokens"
        return Stream(ops.Embed(self.alphabet, table, type), (), name)

    def _table(self, stream: Stream) -> sparse.csr_array | None:
        """The table, from those of the inputs."""
        operation = stream.operation
        if operation.token_table is not None:
            return operation.token_table
        if operation.sees is Sees.PAST:
            return None
        known = [table for s in stream.inputs if (table := self._tables[s]) is not None]
        if not known:
            return None  # no inputs, or none of a token
        if any(self._tables[s] is None and s.operation.constants is None for s in stream.inputs):
            return None
        size = known[0].shape[0]
        operands = [self._operand(s, size) for s in stream.inputs]
        if operation.maps:
            return total([product(t, sparse.csr_array(m.T)) for t, m in zip(operands, operation.maps, strict=True)])
        if operation.conjunction:
            return ops.exact_matrix(operands[0].multiply(operands[1]))
        if max(s.width for s in (*stream.inputs, stream)) * size > _LARGEST_DENSE_TABLE:
            return None
        return self._evaluated(stream, operands)

    def _evaluated(self, stream: Stream, operands: list[sparse.csr_array]) -> sparse.csr_array:
        """The operation on whole tables: in float64 where nothing can round, else in Fractions."""
        sizes = [float(abs(t).max()) if t.nnz else 0.0 for t in operands]
        units = [min(1.0, float(array_unit(t.data) or 1)) for t in operands]
        reach = max(float(self.domains.of(stream).bound), prod(2 * max(1.0, s) for s in sizes)) * max(
            t.shape[1] for t in operands
        )
        arrays = [t.toarray()[None] for t in operands]
        if reach <= EXACT * prod(units):
            return ops.exact_matrix(stream.operation.evaluate(*arrays)[0])
        return exact_rows(stream.operation.evaluate(*(np.vectorize(Fraction, otypes=[object])(a) for a in arrays))[0])

    def _operand(self, stream: Stream, size: int) -> sparse.csr_array:
        if stream.operation.constants is not None:
            return ops.exact_matrix(np.tile([exact_float(v) for v in stream.operation.constants], (size, 1)))
        table = self._tables[stream]
        assert table is not None, "the caller has seen to it"
        return table


def shifted(stream: Stream, lag: int) -> Stream:
    return stream.shift(lag) if lag else stream
