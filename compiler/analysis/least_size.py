"""How near to 0 a number can come without being 0: what a decision about real numbers rests on."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from compiler.analysis.affine_form import affine_form
from compiler.analysis.domains import Domains
from compiler.language.stream import Stream


def least_size(domains: Domains, stream: Stream) -> Fraction:
    """g such that every number of the stream is 0 or at least g in size, at every position; 0 where none is known.

    Multiples of a step are; so are numbers that are declared so, and what keeps them or 0: a delay, a rectifier, a
    latch, a product with a flag, a multiple of each by itself.
    """
    step = domains.of(stream).step
    if step:
        return step
    found: list[Fraction] = []
    form = affine_form(stream)
    rows = sum((np.diff(matrix.indptr) for matrix in form.values()), np.zeros(stream.width, dtype=int))
    if not form or rows.max(initial=0) > 1:
        return Fraction(0)
    for (atom, _), matrix in form.items():
        if matrix.nnz:
            found.append(_of(domains, atom) * Fraction(float(np.abs(matrix.data).min())))
    return min(found, default=Fraction(0))


def _of(domains: Domains, atom: Stream) -> Fraction:
    operation = atom.operation
    if domains.of(atom).step:
        return domains.of(atom).step
    if operation.keeps_sizes:
        return least_size(domains, atom.inputs[0])
    if operation.multiplies:
        for value, flag in (atom.inputs, atom.inputs[::-1]):
            if domains.of(flag).is_flag:
                return least_size(domains, value)
    return operation.gap()
