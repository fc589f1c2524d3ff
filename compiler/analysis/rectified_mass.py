"""How much a rectified row can collect over a sequence.

For relu(Σ_i x_i + c) with upper bounds hi_i: if Σ_{j≠i} hi_j + c ≤ 0, then the value is at
most the positive part of x_i alone, so its sum over a sequence is at most that of x_i. A
conjunction relu(a + b − 1) of flags is thus on at most as often as its rarer flag.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from compiler.analysis.linear_form import ONE, Form
from compiler.analysis.matrix_sums import MatrixSumsCache
from compiler.language.stream import Stream


def rectified_mass(
    form: Form, width: int, domain_of: Callable[[Stream], object], sums_of: MatrixSumsCache, max_length: int
) -> Fraction:
    """A bound on Σ_t relu(row) over a sequence of max_length positions, for the worst row of a form."""
    constant = np.zeros(width)
    highs, masses = [], []
    for (atom, lag), matrix in form.items():
        if atom is ONE and lag == 0:
            constant = matrix.toarray()[:, 0]
            continue
        domain, sums = domain_of(atom), sums_of(matrix)
        up, down = sums.up, sums.down
        highs.append(up * float(max(domain.hi, 0)) + down * float(min(domain.lo, 0)))
        masses.append((up - (down if domain.lo < 0 else 0 * down)) * float(domain.mass))
    if not highs:
        return Fraction(float(np.maximum(constant, 0).max(initial=0))) * max_length
    high, mass = np.array(highs), np.array(masses)
    rest = high.sum(axis=0) - high + constant
    everything = mass.sum(axis=0) + np.maximum(constant, 0) * max_length
    alone = np.where(rest <= 0, mass, np.inf).min(axis=0)
    return Fraction(float(np.minimum(everything, alone).max(initial=0)))
