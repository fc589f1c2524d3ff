"""Tables of real numbers as an exact circuit can hold them: rounded to multiples of a power of two."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from compiler.language.arguments import integer

_MOST_BITS = 40  # behind the point: beside them 12 bits are left before it


@dataclass(frozen=True, eq=False)
class Rounded:
    """values: float64, each k / 2^bits exactly; error: by how much the largest rounding moved an entry, exactly."""

    values: np.ndarray
    bits: int
    error: Fraction


def rounded(table: ArrayLike, bits: int = 10) -> Rounded:
    """The nearest multiples of 2^−bits to the numbers of a table, halves to even, and the largest error.

    table: finite numbers of any shape, such as log-probabilities; bits: 0 to 40. The error is at most 2^−(bits+1).
    ValueError where a number is not finite, or so large that its multiple has more than 53 bits.
    """
    bits = integer(bits, "bits of rounded", 0, _MOST_BITS)
    given = np.asarray(table, dtype=np.float64)
    if not np.isfinite(given).all():
        odd = given[~np.isfinite(given)].flat[0]
        raise ValueError(f"the table of rounded holds {odd}, and finite numbers are needed; give log 0 as a large loss")
    largest = float(np.abs(given).max(initial=0.0))
    if largest * 2**bits > 2**53:
        raise ValueError(f"the table of rounded holds {largest:g}, and with bits = {bits} at most 2^{53 - bits} work")
    values = np.rint(given * 2**bits) / 2**bits  # both factors are powers of two: only rint rounds
    pairs = zip(given.reshape(-1).tolist(), values.reshape(-1).tolist())
    error = max((abs(Fraction(a) - Fraction(b)) for a, b in pairs), default=Fraction(0))
    return Rounded(values, bits, error)
