"""Affine forms: a stream as Σ matrix · (atom, lag).

Linear operations and shifts cost nothing: they fold into the rows and taps of whatever
reads them. An *atom* is a stream that folds no further: a source or the result of an
operation that a block computes. All constants are multiples of one atom, ONE, whose
lane is 1 at every position of the sequence and 0 before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from scipy import sparse

from compiler.analysis.exact_matrices import InexactWeight, exact_float, product, scaled, total
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.graph import inputs_first
from compiler.language.stream import Stream, constant

ONE = constant(1).named("one")
ONE.origin = ""  # no line of a circuit
AffineForm = dict[tuple[Stream, int], sparse.csr_array]
Weights: TypeAlias = Fraction | sparse.csr_array  # a number stands for that multiple of the identity: most weights are
_ONCE = Fraction(1)


def affine_form(stream: Stream, known: dict[Stream, AffineForm] | None = None) -> AffineForm:
    """{(atom, lag): (stream.width × atom.width) matrix} with stream(t) = Σ matrix · atom(t − lag); no zero matrices.

    known: forms found before, of which this one may be made up.
    CompileError where a weight folds to a number that no float64 holds.
    """
    try:
        return _affine_form(stream, known or {})
    except InexactWeight as reason:
        raise CompileError([(stream, str(reason))]) from reason


def form_rows(form: AffineForm, rows: np.ndarray) -> AffineForm:
    """The form of these numbers of a stream only: atoms that none of them reads are not in it, and need no lane."""
    if all(len(rows) == m.shape[0] for m in form.values()) and np.array_equal(rows, np.arange(len(rows))):
        return form
    taken = ((key, sparse.csr_array(matrix[rows])) for key, matrix in form.items())
    return {key: matrix for key, matrix in taken if matrix.nnz}


def constant_levels(form: AffineForm, width: int) -> np.ndarray | None:
    """The (width × 1) numbers that a stream of this form holds at every position; None where it reads anything else."""
    if form.keys() - {(ONE, 0)}:
        return None
    return form[ONE, 0].toarray() if form else np.zeros((width, 1))


def _affine_form(stream: Stream, known: dict[Stream, AffineForm]) -> AffineForm:
    form: dict[tuple[Stream, int], list[Weights]] = {}
    pending: dict[Stream, dict[int, list[Weights]]] = {stream: {0: [_ONCE]}}
    for node in reversed(_foldable_region(stream, known)):
        for lag, parts in pending.pop(node, {}).items():
            weights = _sum(parts, node.width)  # every reader has been seen, so this is all of it
            for source, k, factor, is_atom in _folded(node, known):
                term = _product(weights, factor)
                if is_atom:
                    form.setdefault((source, lag + k), []).append(term)
                else:
                    pending.setdefault(source, {}).setdefault(lag + k, []).append(term)
    folded = {key: _collected(key[0], parts, stream.width) for key, parts in form.items()}
    return {key: matrix for key, matrix in folded.items() if matrix.nnz}


def _collected(atom: Stream, parts: list[Weights], width: int) -> sparse.csr_array:
    """All that a form has of an atom, as one matrix of this many rows."""
    try:
        return _matrix(_sum(parts, atom.width), width)
    except InexactWeight as reason:
        raise InexactWeight(reason.weight, "its constants add up") if atom is ONE else reason from None


def port_form(stream: Stream, forms: dict[Stream, AffineForm]) -> AffineForm:
    """The affine form of an operand, found once."""
    if stream not in forms:
        forms[stream] = affine_form(stream, forms)
    return forms[stream]


def _folded(node: Stream, known: dict[Stream, AffineForm]) -> Iterator[tuple[Stream, int, Weights, bool]]:
    """What a node contributes to a form: (source, added lag, weights, whether the source is an atom)."""
    operation = node.operation
    if node in known:
        for (atom, lag), matrix in known[node].items():
            yield atom, lag, _weights(matrix), True
    elif operation.maps is not None:
        for matrix, source in zip(operation.maps, node.inputs, strict=True):
            yield source, 0, _weights(matrix), False
    elif operation.delay is not None:
        yield node.inputs[0], operation.delay, _ONCE, False
    elif operation.constants is not None:
        yield ONE, 0, _constant_weights(operation.constants), True
    else:
        yield node, 0, _ONCE, True


def _foldable_region(stream: Stream, known: dict[Stream, AffineForm]) -> list[Stream]:
    """The streams between this one and its atoms (or known forms), these included, inputs first."""

    def read(node: Stream) -> tuple[Stream, ...]:
        return node.inputs if node.operation.free and node not in known else ()  # of sources, none

    return inputs_first([stream], read)


# Weights -------------------------------------------------------------------------------------------


def _constant_weights(values: tuple[Fraction, ...]) -> Weights:
    """The multiples of ONE that a constant holds."""
    first, width = values[0], len(values)
    if width == 1:
        return first
    if len(set(values)) == 1:
        return ops.copies(width, exact_float(first))
    return ops.exact_matrix([[exact_float(v)] for v in values])


def _weights(matrix: sparse.csr_array) -> Weights:
    """The matrix, or the number of whose identity it is."""
    rows, columns = matrix.shape
    if rows != columns or len(matrix.data) != rows:
        return matrix
    alike = rows == 1 or (
        (matrix.data == matrix.data[0]).all()
        and (matrix.indices == np.arange(rows)).all()
        and (np.diff(matrix.indptr) == 1).all()
    )
    return Fraction(float(matrix.data[0])) if alike else matrix


def _matrix(weights: Weights, width: int) -> sparse.csr_array:
    return ops.scaled_identity(width, exact_float(weights)) if isinstance(weights, Fraction) else weights


def _product(a: Weights, b: Weights) -> Weights:
    if a is _ONCE:
        return b
    if isinstance(a, Fraction):
        return a * b if isinstance(b, Fraction) else scaled(b, a)
    return scaled(a, b) if isinstance(b, Fraction) else product(a, b)


def _sum(parts: list[Weights], width: int) -> Weights:
    """The sum; numbers are multiples of the identity of this width."""
    if len(parts) == 1:
        return parts[0]
    number = sum((p for p in parts if isinstance(p, Fraction)), Fraction(0))
    matrices = [p for p in parts if not isinstance(p, Fraction)]
    if not matrices:
        return number
    while number:  # a number that no float holds is a sum of floats
        near = Fraction(float(number))
        matrices.append(ops.scaled_identity(width, float(near)))
        number -= near
    return total(matrices)
