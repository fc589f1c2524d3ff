"""Linear forms: a stream as Σ matrix · (atom, lag).

Linear operations and shifts cost nothing: they fold into the rows and taps of whatever
reads them. An *atom* is a stream that folds no further: a source or the result of an
operation that a block computes. All constants are multiples of one atom, ONE, whose
lane is 1 at every position of the sequence and 0 before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse

from compiler.language import operations as ops
from compiler.language.stream import Stream, constant, inputs_first

ONE = constant(1).named("one")
Form = dict[tuple[Stream, int], sparse.csr_array]
Weights = float | sparse.csr_array  # a number stands for that multiple of the identity: most weights are


def linear_form(stream: Stream, known: dict[Stream, Form] | None = None) -> Form:
    """{(atom, lag): (stream.width × atom.width) matrix} with stream(t) = Σ matrix · atom(t − lag); no zero matrices.

    known: forms found before, of which this one may be made up.
    """
    known = known or {}
    form: dict[tuple[Stream, int], Weights] = {}
    pending: dict[Stream, dict[int, Weights]] = {stream: {0: 1.0}}
    for node in reversed(_foldable_region(stream, known)):
        for lag, weights in pending.pop(node, {}).items():
            for source, k, factor, is_atom in _folded(node, known):
                target, key = (form, (source, lag + k)) if is_atom else (pending.setdefault(source, {}), lag + k)
                product = _product(weights, factor)
                target[key] = _sum(target[key], product) if key in target else product
    return {key: matrix for key, weights in form.items() if (matrix := _matrix(weights, stream.width)).nnz}


def port_form(stream: Stream, forms: dict[Stream, Form]) -> Form:
    """The linear form of an operand, found once."""
    if stream not in forms:
        forms[stream] = linear_form(stream, forms)
    return forms[stream]


def _folded(node: Stream, known: dict[Stream, Form]) -> Iterator[tuple[Stream, int, Weights, bool]]:
    """What a node contributes to a form: (source, added lag, weights, whether the source is an atom)."""
    operation = node.operation
    if node in known:
        for (atom, lag), matrix in known[node].items():
            yield atom, lag, _weights(matrix), True
    elif isinstance(operation, ops.Linear):
        for matrix, source in zip(operation.matrices, node.inputs, strict=True):
            yield source, 0, _weights(matrix), False
    elif isinstance(operation, ops.Shift):
        yield node.inputs[0], operation.k, 1.0, False
    elif isinstance(operation, ops.Constant):
        yield ONE, 0, _constant_weights(operation), True
    else:
        yield node, 0, 1.0, True


def _foldable_region(stream: Stream, known: dict[Stream, Form]) -> list[Stream]:
    """The streams between this one and its atoms (or known forms), these included, inputs first."""

    def read(node: Stream) -> tuple[Stream, ...]:
        return node.inputs if isinstance(node.operation, (ops.Linear, ops.Shift)) and node not in known else ()

    return inputs_first(stream, read)


# Weights -------------------------------------------------------------------------------------------


def _constant_weights(operation: ops.Constant) -> Weights:
    """The multiples of ONE that a constant holds."""
    first, width = float(operation.values[0]), len(operation.values)
    if width == 1:
        return first
    return (
        ops.copies(width, first)
        if len(set(operation.values)) == 1
        else ops.exact_matrix([[float(v)] for v in operation.values])
    )


def _weights(matrix: sparse.csr_array) -> Weights:
    """The matrix, or the number of whose identity it is."""
    rows, columns = matrix.shape
    if rows != columns or len(matrix.data) != rows:
        return matrix
    if rows == 1:
        return float(matrix.data[0])
    alike = (
        (matrix.data == matrix.data[0]).all()
        and (matrix.indices == np.arange(rows)).all()
        and (np.diff(matrix.indptr) == 1).all()
    )
    return float(matrix.data[0]) if alike else matrix


def _matrix(weights: Weights, width: int) -> sparse.csr_array:
    return ops.scaled_identity(width, weights) if isinstance(weights, float) else ops.exact_matrix(weights)


def _product(a: Weights, b: Weights) -> Weights:
    return a * b if isinstance(a, float) or isinstance(b, float) else a @ b


def _sum(a: Weights, b: Weights) -> Weights:
    if isinstance(a, float) and isinstance(b, float):
        return a + b
    a, b = (ops.scaled_identity(s.shape[0], w) if isinstance(w, float) else w for w, s in ((a, b), (b, a)))
    return a + b
