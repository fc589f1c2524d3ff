"""Sums of columns that decide for all: what vanishes on few sums of lanes, or of queries, vanishes on all (lemma of
sums that decide).
"""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from verify.checker.values.exact import times, times_number

_MOST_DENOMINATOR = 1 << 16


def relations(columns: np.ndarray) -> dict[int, dict[int, Fraction]]:
    """For some columns P the rows of whole numbers M, by column, with c · columns = columns[:, P] @ M.

    So where M @ x = 0, columns @ x = 0: only these sums of lanes are to be shown 0, one for each column in P.
    """
    found: dict[int, dict[int, Fraction]] = {}
    for c in range(columns.shape[1]):
        weights = _as_sum(columns[:, list(found)], columns[:, c])
        if weights is None:
            found[c] = {c: Fraction(1)}
            continue
        for pivot, w in zip(list(found), weights, strict=True):
            found[pivot] |= {c: w} if w else {}
    common = {pivot: lcm(*(w.denominator for w in row.values())) for pivot, row in found.items()}
    return {pivot: {c: w * common[pivot] for c, w in row.items()} for pivot, row in found.items()}


def _as_sum(columns: np.ndarray, column: np.ndarray) -> list[Fraction] | None:
    """The weights, of small denominators, of columns that add up to a column: found in floats and checked exactly."""
    if not columns.shape[1]:
        return None
    found = [Fraction(w).limit_denominator(1 << 10) for w in np.linalg.lstsq(columns, column, rcond=None)[0].tolist()]
    common = lcm(*(w.denominator for w in found))
    if common > _MOST_DENOMINATOR:
        return None
    whole = np.array([[float(w * common)] for w in found])
    return found if (times(columns, whole)[:, 0] == times_number(column, common)).all() else None
