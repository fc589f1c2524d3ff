"""Domains held: what the streams are taken to hold, against what they hold on sampled inputs.

Everything that is promised about exactness is arithmetic on the domains, so a rule that claims too little of a stream
would make a promise false and break nothing else. The samples believe none of the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from compiler.lattice.domain import Domain

_SUMS = 1 + 2.0**-40  # a float64 sum of a few thousand numbers, in any order


def first_outside(
    domains: Sequence[Domain], values: Sequence[np.ndarray], tolerances: Sequence[float]
) -> tuple[int, str] | None:
    """(which, what) of the first stream that leaves its domain; None where all are within theirs.

    values: (batch, time, width) float64 of each stream, width ≥ 1. All lanes are looked at together, for most streams
    are narrow.
    """
    widths = [each.shape[-1] for each in values]
    every = np.concatenate(values, axis=2)
    together = Domain(
        np.concatenate([domain.units for domain in domains]),
        np.concatenate([domain.low for domain in domains]),
        np.concatenate([domain.high for domain in domains]),
        Fraction(0),  # of all streams at once, which says nothing
        np.concatenate([domain.totals for domain in domains]),
    )
    wrong = np.zeros(len(domains), dtype=bool)
    of = np.repeat(np.arange(len(domains)), widths)
    tolerance = np.array(tolerances)
    for broken, *_ in _lanes(together, every, tolerance[of]):
        wrong[of[broken]] = True
    starts = np.cumsum([0, *widths[:-1]])
    at_once = np.add.reduceat(np.abs(every), starts, axis=2).max(axis=(0, 1))
    most = np.array([float(domain.l1) for domain in domains])
    wrong |= at_once > (most + tolerance * widths) * _SUMS
    for which in np.flatnonzero(wrong).tolist():
        reason = outside(domains[which], values[which], tolerances[which])
        if reason is not None:  # sums of many lanes were added in another order
            return which, reason
    return None


def outside(domain: Domain, values: np.ndarray, tolerance: float) -> str | None:
    """What the domain says and the values (batch, time, width) contradict, in words; None where they are within it.

    tolerance: how far float64 may be from a value; 0 where it is exact.
    """
    for wrong, found, claimed, words in _lanes(domain, values, tolerance):
        if wrong.any():
            lane = int(wrong.argmax())
            return f"lane {lane} is taken to hold {words.format(f'{claimed[lane]:g}')}, and {found[lane]:g} is found"
    width, at_once = values.shape[2], float(np.abs(values).sum(axis=2).max(initial=0))
    if at_once > (float(domain.l1) + tolerance * width) * _SUMS:
        return f"its lanes are taken to add up to at most {float(domain.l1):g} at a position, and add up to {at_once:g}"
    return None


def _lanes(
    domain: Domain, values: np.ndarray, tolerance: float | np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, str]]:
    """(which lanes are wrong, what is found, what the domain says, in words) for each thing it says of single lanes."""
    below, above = values.min(axis=(0, 1)), values.max(axis=(0, 1))
    totals, time = np.abs(values).sum(axis=1).max(axis=0), values.shape[1]
    rest = _off_lattice(values, domain.units)
    yield below < domain.low - tolerance, below, domain.low, "values of at least {}"
    yield above > domain.high + tolerance, above, domain.high, "values of at most {}"
    yield rest > tolerance, rest, domain.units, "multiples of {}, but for a rest of 0"
    yield totals > (domain.totals + tolerance * time) * _SUMS, totals, domain.totals, "at most {} over a sequence"


def _off_lattice(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """For each lane how far its values are from multiples of its unit (0: of none, infinity: 0 is the only one)."""
    finite = np.where((units > 0) & np.isfinite(units), units, 1.0)
    rest = np.abs(values - np.round(values / finite) * finite)
    rest = np.where(np.isinf(units), np.abs(values), np.where(units > 0, rest, 0.0))
    return rest.max(axis=(0, 1))
