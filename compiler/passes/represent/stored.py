"""How values are carried: what a state stores is non-negative, and a linear map leads back to the value."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, affine_form
from compiler.analysis.domains import Domains
from compiler.language import operations as ops
from compiler.language.lanes import in_groups
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.language.words import concatenate
from compiler.passes.represent.token_tables import shifted

Restored: TypeAlias = Callable[[Stream], Stream]


def storable(domains: Domains, value: Stream) -> tuple[Restored, Stream]:
    """(back, stored): non-negative lanes to store, and the linear map from what is read to the value.

    A state is linear in what it stores, so `value = M · lanes` may be stored as the
    lanes, if these are non-negative and not more than the rectifier pairs would be.
    """
    if not domains.of(value).step:
        return _restorer(None), value  # real numbers are split by the next pass
    form = affine_form(value)
    signed = domains.of(value).lo < 0
    bases = [(atom, lag, matrix) for (atom, lag), matrix in form.items()]
    plain = all(domains.of(atom).lo >= 0 for atom, _, _ in bases)
    lanes = sum(atom.width for atom, _, _ in bases)
    if signed and plain and 0 < lanes <= 2 * value.width:
        stored = [shifted(atom, lag) for atom, lag, _ in bases]
        if any(s.operation.rectifies for s in stored):  # then the block that stores them computes all
            stored = [s if s.operation.rectifies else s.relu() for s in stored]
        back = sparse.hstack([matrix for _, _, matrix in bases], format="csr")
        return _restorer(back), stored[0] if len(stored) == 1 else concatenate(*stored)
    if signed:
        eye = sparse.eye_array(value.width)
        return _restorer(sparse.hstack([eye, -eye], format="csr")), concatenate(value, -value).relu()
    return _restorer(None), value


def ramps_apart(value: Stream, when: Stream) -> tuple[Restored, Stream] | None:
    """(back, ramps) of a table of a number that decides as well when it is stored; None of other values.

    What is stored must be one rectified row, and a table is a sum of several. A latch is linear in its value, so each
    ramp may be latched alone: where Δ is linear in rectified rows, ramps and flag stand in the block of the latch
    itself, a block earlier than the sum could. The value's own bounds are kept.
    """
    form = affine_form(value)
    bent = {_rectified(atom) for atom, _ in affine_form(when)}
    if not form or any(lag or _rectified(atom) is None or _rectified(atom) not in bent for atom, lag in form):
        return None
    if sum(atom.width for atom, _ in form) == 1:
        return None  # it is one row, up to a factor
    stored = [atom for atom, _ in form]
    back = sparse.hstack(list(form.values()), format="csr")
    return _restorer(back), stored[0] if len(stored) == 1 else concatenate(*stored)


def _rectified(atom: Stream) -> frozenset[tuple[Stream, int]] | None:
    """The atoms of the number that a rectifier takes; None for what is no rectifier."""
    if not atom.operation.rectifies:
        return None
    return frozenset(key for key in affine_form(atom.inputs[0]) if key[0] is not ONE)


def _restorer(matrix: sparse.csr_array | None) -> Restored:
    """The map stream → matrix · each of its groups of lanes; None: what is read is the value."""
    return (lambda stream: stream) if matrix is None else partial(in_groups, matrix)


def holds_signs(table: sparse.csr_array) -> bool:
    """Whether every row is a ±1 word or zeros, and some row has a −1."""
    full = np.isin(np.diff(table.indptr), (0, table.shape[1])).all()
    return bool(full and (abs(table.data) == 1).all() and (table.data < 0).any())


def as_bits(operation: ops.Embed) -> Stream:
    """A ±1 code as 2·bits − present, on non-negative lanes (present: whether the token has a codeword)."""
    table = operation.table
    length = table.shape[1]
    bits = table.maximum(0)
    here = sparse.csr_array((abs(table).sum(axis=1) > 0).astype(float).reshape(-1, 1))
    lanes = Stream(
        ops.Embed(operation.alphabet, ops.exact_matrix(sparse.hstack([bits, here])), Bool(length + 1)), (), "bits"
    )
    back = sparse.hstack([2 * sparse.eye_array(length), -np.ones((length, 1))])
    return Stream(ops.Linear((ops.exact_matrix(back),), operation.type), (lanes,))
