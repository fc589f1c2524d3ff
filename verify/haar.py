"""The Haar transform by its definition, in Python's integers: the oracle of `construct haar`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

Number = TypeVar("Number", int, Fraction)


def haar_of(samples: Sequence[Number]) -> list[Number]:
    """The T = 2^J coefficients without factors: Σ x, then for each scale and shift the left half of the support minus
    the right.
    """
    if len(samples) & (len(samples) - 1) or not samples:
        raise ValueError(f"{len(samples)} samples have no Haar transform; their number must be a power of two.")
    sums, rows = list(samples), []
    while len(sums) > 1:
        pairs = list(zip(sums[::2], sums[1::2]))
        rows.append([left - right for left, right in pairs])
        sums = [left + right for left, right in pairs]
    return sums + [coefficient for row in reversed(rows) for coefficient in row]
