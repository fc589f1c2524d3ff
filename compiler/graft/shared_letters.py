"""Letters that several circuits of a union score: a circuit that does not read the present token adds nothing there.

A letter of one circuit alone is kept behind by the union's head where that circuit does not read the token. A shared
one is ahead where any of its circuits reads it, so what the others score it would change its place among the answers.
Of a circuit's scores some parts are 0 at tokens that are not its own by what they are made of (a memory that such a
token asks nothing, functions of the token); the constants become constants at its own tokens; the rest is multiplied
by the flag that it reads the token, one block more.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, affine_form
from compiler.language import operations as ops
from compiler.language.lanes import place_matrix
from compiler.language.operations import Sees, Source
from compiler.language.stream import Stream

Terms = list[tuple[sparse.csr_array, Stream]]


def at_own_tokens(scores: Stream, shared: sparse.csr_array, reads: Stream) -> Terms | None:
    """Σ matrix · stream, which is shared · scores where the flag `reads` holds and 0 elsewhere; None where shared ·
    scores is that already.

    shared: (letters of the union × scores), with rows of letters that other circuits score too.
    """
    silent: Terms = []
    constants: Terms = []
    loud: Terms = []
    known: dict[Stream, bool] = {}
    for (atom, lag), weights in affine_form(scores).items():
        matrix = shared @ weights
        if not matrix.nnz:
            continue
        if lag:
            loud.append((matrix, atom.shift(lag)))
        elif atom is ONE:
            constants.append((matrix, reads))
        else:
            (silent if _is_silent(atom, known) else loud).append((matrix, atom))
    return [*silent, *constants, *_gated(loud, reads)] if constants or loud else None


def _gated(parts: Terms, reads: Stream) -> Terms:
    """Σ matrix · stream as one product of the flag and the rows that are not 0."""
    if not parts:
        return []
    rows = np.flatnonzero(sum(abs(matrix).sum(axis=1) for matrix, _ in parts))
    operation = ops.Linear(tuple(ops.exact_matrix(matrix[rows]) for matrix, _ in parts))
    heard = Stream(operation, [stream for _, stream in parts], "scores") * reads
    return [(place_matrix(rows, parts[0][0].shape[0]), heard)]


def _is_silent(stream: Stream, known: dict[Stream, bool]) -> bool:
    """Whether it is 0 wherever the present token is not the circuit's own, by what it is made of."""
    if stream not in known:
        known[stream] = _found_silent(stream, known)
    return known[stream]


def _found_silent(stream: Stream, known: dict[Stream, bool]) -> bool:
    operation, inputs = stream.operation, stream.inputs
    if operation.source is Source.TOKEN:
        return True
    if operation.silenced_by is not None:
        return _is_silent(inputs[operation.silenced_by], known)
    if not operation.zero_preserving or operation.sees is Sees.PAST:
        return False
    at_once = any if operation.vanishes else all
    return at_once(_is_silent(source, known) for source in inputs)
