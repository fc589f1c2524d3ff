"""The power of two that puts every pre-activation where silu is exactly relu.

A rectified row is computed as S·(row): positive values must reach 20.1 (here 32, for
slack) and negative ones −104 (exactness E2). S comes from the values that can
occur: enumerated where the row is a function of a few tokens, else from the lattice.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE
from compiler.analysis.domains import Domains
from compiler.analysis.one_channel import ChannelRows
from compiler.exactness.levels import HALF, LARGEST_HALF, NEGATIVE, POSITIVE, WIDEST_HALF
from compiler.language import operations as ops
from compiler.language.arguments import Exact
from compiler.language.graph import with_operation
from compiler.lattice.domain import Domain, power_of_two
from compiler.lattice.units import array_unit, unit_of

_MOST_ROWS = 4096  # beyond this, the lattice bound is taken: it costs at most a larger scale
_MOST_VALUES = 1 << 16


def rectifier_scale(channels: ChannelRows, domains: Domains) -> float:
    """The least power of two S ≥ 1 with S·v ≥ 32 or S·v ≤ −104 for every nonzero value v of every row."""
    smallest = _enumerated(channels) or _lattice(channels, domains)
    positive, negative = smallest
    needed = max(POSITIVE / positive if positive else 1, NEGATIVE / negative if negative else 1, 1)
    return float(2 ** int(np.ceil(np.log2(float(needed)))))


def half_scale(domain: Domain, most: Exact = WIDEST_HALF) -> float:
    """S for halves silu(±S·v) of a number: so much that a lattice stays exact.

    For reals 128 (exactness E3) or more.

    Beyond |S·v| = 20 silu rounds nothing, so S is as large as keeps S·|v| below 2^59: a product of
    two such then keeps within float32. `most` limits it where more than two meet.
    """
    if domain.step:
        return float(power_of_two(HALF / domain.step))
    return float(max(Fraction(HALF), min(most, LARGEST_HALF / power_of_two(domain.bound))))


def _lattice(channels: ChannelRows, domains: Domains) -> tuple[Fraction, Fraction]:
    """The quantum of the pre-activation bounds both sides; the negative side only where it can occur."""
    taps = array_unit(channels.taps)
    steps = [
        array_unit(rows.data) * taps * domains.of(atom).step
        for atom, rows in zip(channels.atoms, channels.rows, strict=True)
    ]
    step = unit_of(*steps, array_unit(channels.bias))
    signed = (channels.bias < 0).any() or any(
        domains.of(atom).lo < 0 or _mixed(rows, channels.taps)
        for atom, rows in zip(channels.atoms, channels.rows, strict=True)
    )
    return step, step if signed else Fraction(0)


def _mixed(rows: sparse.csr_array, taps: np.ndarray) -> bool:
    """Whether some product row·tap is negative."""
    if not rows.nnz:
        return False
    per_row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return bool((rows.data[:, None] * taps[per_row] < 0).any())


def _enumerated(channels: ChannelRows) -> tuple[Fraction, Fraction] | None:
    """The smallest positive and negative values, from every combination of tokens at the lags a row reads."""
    count = len(channels.bias)
    embeds = dict(with_operation(channels.atoms, ops.Embed))
    if count > _MOST_ROWS or not all(a is ONE or a in embeds for a in channels.atoms):
        return None
    tables = [None if a is ONE else sparse.csc_array(embeds[a].table) for a in channels.atoms]
    positive, negative = np.inf, np.inf
    for i in range(count):
        here = _token_values(channels, tables, i)
        values = np.array([channels.bias[i]])
        for tap in channels.taps[i][channels.taps[i] != 0]:
            values = np.unique(values[:, None] + tap * here[None, :])
            if len(values) > _MOST_VALUES:
                return None
        positive = min(positive, values[values > 0].min(initial=np.inf))
        negative = min(negative, -values[values < 0].max(initial=-np.inf))
    return _or_zero(positive), _or_zero(negative)


def _or_zero(value: float) -> Fraction:
    """The number; 0 for an infinity, which says that there is none."""
    return Fraction(0) if np.isinf(value) else Fraction(float(value))


def _token_values(channels: ChannelRows, tables: list, i: int) -> np.ndarray:
    """Every value of row i at one lag: over all tokens, and 0 before the start."""
    entries = []
    for rows, table in zip(channels.rows, tables, strict=True):
        span = slice(rows.indptr[i], rows.indptr[i + 1])
        entries += [(table, lane, weight) for lane, weight in zip(rows.indices[span], rows.data[span], strict=True)]
    if len(entries) == 1 and entries[0][0] is not None:
        table, lane, weight = entries[0]
        return np.unique(np.append(table.data[table.indptr[lane] : table.indptr[lane + 1]] * weight, 0.0))
    size = next((t.shape[0] for t in tables if t is not None), 1)
    total = np.zeros(size)
    for table, lane, weight in entries:
        if table is None:
            total += weight
        else:
            span = slice(table.indptr[lane], table.indptr[lane + 1])
            total[table.indices[span]] += table.data[span] * weight
    return np.unique(np.append(total, 0.0))
