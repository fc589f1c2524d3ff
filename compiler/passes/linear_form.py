"""Linear forms: a stream as Σ matrix · (atom, lag).

Linear operations and shifts cost nothing: they fold into the rows and taps of whatever
reads them. An *atom* is a stream that folds no further: a source or the result of an
operation that a block computes. All constants are multiples of one atom, ONE, whose
lane is 1 at every position of the sequence and 0 before it.
"""

from __future__ import annotations

from scipy import sparse

from compiler.language import operations as ops
from compiler.language.stream import Stream, constant

ONE = constant(1).named("one")
Form = dict[tuple[Stream, int], sparse.csr_array]


def linear_form(stream: Stream) -> Form:
    """{(atom, lag): (stream.width × atom.width) matrix} with stream(t) = Σ matrix · atom(t − lag); no zero matrices."""
    form: Form = {}
    pending: dict[Stream, dict[int, sparse.csr_array]] = {stream: {0: sparse.eye_array(stream.width, format="csr")}}
    for node in reversed(_foldable_region(stream)):
        for lag, matrix in pending.pop(node, {}).items():
            for source, k, weights in _folded(node):
                product = matrix @ weights if weights is not None else matrix
                target = pending.setdefault(source, {}) if k is not None else form
                key = lag + k if k is not None else (source, lag)
                target[key] = target[key] + product if key in target else product
    return {key: exact for key, matrix in form.items() if (exact := ops.exact_matrix(matrix)).nnz}


def _folded(node: Stream) -> list[tuple[Stream, int | None, sparse.csr_array | None]]:
    """What a node contributes to a form: (source, added lag, matrix); lag None marks an atom."""
    operation = node.operation
    if isinstance(operation, ops.Linear):
        return [(s, 0, m) for m, s in zip(operation.matrices, node.inputs, strict=True)]
    if isinstance(operation, ops.Shift):
        return [(node.inputs[0], operation.k, None)]
    if isinstance(operation, ops.Constant):
        return [(ONE, None, ops.exact_matrix([[float(v)] for v in operation.values]))]
    return [(node, None, None)]


def _foldable_region(stream: Stream) -> list[Stream]:
    """The streams between this one and its atoms, atoms included, inputs first."""
    order, seen = [], set()
    stack = [(stream, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if isinstance(node.operation, (ops.Linear, ops.Shift)):
                stack.extend((source, False) for source in node.inputs)
    return order
