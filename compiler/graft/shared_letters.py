"""Letters that several circuits of a union score: a circuit that does not read the present token adds nothing there.

A letter of one circuit alone is kept behind by the union's head where that circuit does not read the token. A shared
one is ahead where any of its circuits reads it, so what the others score it would change its place among the answers.
Of a circuit's scores some parts are 0 at tokens that are not its own by what they are made of (a memory that such a
token asks nothing, functions of the token); the constants become constants at its own tokens; the rest is multiplied
by the flag that it reads the token, one block more.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from compiler.analysis.linear_form import ONE, linear_form
from compiler.language import operations as ops
from compiler.language.operations import Sees
from compiler.language.stream import Stream

Terms = list[tuple[sparse.csr_array, Stream]]
_PRODUCTS = (ops.And, ops.Multiply, ops.Dot)  # 0 where one operand is


def at_own_tokens(scores: Stream, shared: sparse.csr_array, reads: Stream) -> Terms | None:
    """Σ matrix · stream, which is shared · scores where the flag `reads` holds and 0 elsewhere; None where shared ·
    scores is that already.

    shared: (letters of the union × scores), with rows of letters that other circuits score too.
    """
    parts = [(shared @ matrix, atom, lag) for (atom, lag), matrix in linear_form(scores).items()]
    parts = [part for part in parts if part[0].nnz]
    known: dict[Stream, bool] = {}
    silent = [(matrix, atom) for matrix, atom, lag in parts if not lag and _is_silent(atom, known)]
    constants = [(matrix, reads) for matrix, atom, lag in parts if not lag and atom is ONE]
    loud = [(m, a, lag) for m, a, lag in parts if lag or a is not ONE and not _is_silent(a, known)]
    if not constants and not loud:
        return None
    return [*silent, *constants, *_gated(loud, reads)]


def _gated(parts: Sequence[tuple[sparse.csr_array, Stream, int]], reads: Stream) -> Terms:
    """Σ matrix · what an atom was some positions before, as one product of the flag and the rows that are not 0."""
    if not parts:
        return []
    rows = np.flatnonzero(sum(abs(matrix).sum(axis=1) for matrix, _, _ in parts))
    operation = ops.Linear(tuple(ops.exact_matrix(matrix[rows]) for matrix, _, _ in parts))
    heard = Stream(operation, [atom.shift(lag) if lag else atom for _, atom, lag in parts], "scores") * reads
    height = parts[0][0].shape[0]
    return [(sparse.csr_array((np.ones(len(rows)), (rows, range(len(rows)))), (height, len(rows))), heard)]


def _is_silent(stream: Stream, known: dict[Stream, bool]) -> bool:
    """Whether it is 0 wherever the present token is not the circuit's own, by what it is made of."""
    if stream not in known:
        known[stream] = _found_silent(stream, known)
    return known[stream]


def _found_silent(stream: Stream, known: dict[Stream, bool]) -> bool:
    operation, inputs = stream.operation, stream.inputs
    if isinstance(operation, ops.Embed):
        return True
    if isinstance(operation, ops.MemoryRead):
        return not operation.skip and _is_silent(inputs[2], known)
    if not operation.zero_preserving or operation.sees is Sees.PAST:
        return False
    at_once = any if isinstance(operation, _PRODUCTS) else all
    return at_once(_is_silent(source, known) for source in inputs)
