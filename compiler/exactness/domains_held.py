"""Domains held: what the streams are taken to hold, against what they hold on sampled inputs.

Everything that is promised about exactness is arithmetic on the domains, so a rule that claims too little of a stream
would make a promise false and break nothing else. The samples believe none of the rules.
"""

from __future__ import annotations

import numpy as np

from compiler.lattice.domain import Domain

_SUMS = 1 + 2.0**-40  # a float64 sum of a few thousand numbers, in any order


def outside(domain: Domain, values: np.ndarray, tolerance: float) -> str | None:
    """What the domain says and the values (batch, time, width) contradict, in words; None where they are within it.

    tolerance: how far float64 may be from a value; 0 where it is exact.
    """
    _, time, width = values.shape
    sizes = np.abs(values)
    below, above = values.min(axis=(0, 1)), values.max(axis=(0, 1))
    totals, at_once = sizes.sum(axis=1).max(axis=0), float(sizes.sum(axis=2).max(initial=0))
    rest = _off_lattice(values, domain.units)
    checks = (
        (below < domain.low - tolerance, below, domain.low, "values of at least {}"),
        (above > domain.high + tolerance, above, domain.high, "values of at most {}"),
        (rest > tolerance, rest, domain.units, "multiples of {}, but for a rest of 0"),
        (totals > (domain.totals + tolerance * time) * _SUMS, totals, domain.totals, "at most {} over a sequence"),
    )
    for wrong, found, claimed, words in checks:
        if wrong.any():
            lane = int(wrong.argmax())
            return f"lane {lane} is taken to hold {words.format(f'{claimed[lane]:g}')}, and {found[lane]:g} is found"
    if at_once > (float(domain.l1) + tolerance * width) * _SUMS:
        return f"its lanes are taken to add up to at most {float(domain.l1):g} at a position, and add up to {at_once:g}"
    return None


def _off_lattice(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """For each lane how far its values are from multiples of its unit (0: of none, infinity: 0 is the only one)."""
    finite = np.where((units > 0) & np.isfinite(units), units, 1.0)
    rest = np.abs(values - np.round(values / finite) * finite)
    rest = np.where(np.isinf(units), np.abs(values), np.where(units > 0, rest, 0.0))
    return rest.max(axis=(0, 1))
