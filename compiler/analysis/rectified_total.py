"""How much a rectified row can collect over a sequence.

For relu(Σ_i x_i + c) with upper bounds hi_i: if Σ_{j≠i} hi_j + c ≤ 0, then the value is at
most the positive part of x_i alone, so its sum over a sequence is at most that of x_i. A
conjunction relu(a + b − 1) of flags is thus on at most as often as its rarer flag.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from compiler.analysis.affine_form import ONE, AffineForm
from compiler.language.stream import Stream
from compiler.lattice.domain import Domain, least_unit, outward, raised, up
from compiler.lattice.matrix_sums import MatrixSumsCache, added


def rectified_totals(
    form: AffineForm, width: int, domain_of: Callable[[Stream], Domain], sums_of: MatrixSumsCache, max_length: int
) -> np.ndarray:
    """A bound on Σ_t relu(row) over a sequence of max_length positions, for each of the `width` rows of a form."""
    constant = np.zeros(width)
    highs, totals = [np.zeros(width)], [np.zeros(width)]
    for (atom, lag), matrix in form.items():
        if atom is ONE and lag == 0:
            constant = matrix.toarray()[:, 0]
            continue
        domain = domain_of(atom)
        sums = sums_of(matrix).of(domain, up(domain.l1))
        highs.append(added([sums], lambda p: p.up, width))
        totals.append(added([sums], lambda p: p.rising, width))
    high, total, offset = np.array(highs), np.array(totals), np.maximum(constant, 0)
    reach, unit = high.sum(axis=0) + np.abs(constant), min(least_unit(high), least_unit(constant))
    rest = outward(constant, high.sum(axis=0) - high + constant, reach, unit, len(highs) + 2)[1]
    everything = total.sum(axis=0) + offset * max_length
    everything = raised(everything, min(least_unit(total), least_unit(constant)), len(totals) + 2)
    alone = np.where(rest[1:] <= 0, total[1:], np.inf).min(axis=0, initial=np.inf)
    return np.minimum(everything, alone)
