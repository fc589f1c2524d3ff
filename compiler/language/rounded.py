"""Tables of real numbers as an exact circuit can hold them: rounded to multiples of a power of two."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from compiler.language.arguments import integer, number, shown

_MOST_BITS = 40  # behind the point: beside them 12 bits are left before it
_MOST_DIGITS = 400  # before or behind the point of a Decimal: as a fraction it has them all


@dataclass(frozen=True, eq=False)
class Rounded:
    """values: float64, each k / 2^bits exactly; error: by how much the largest rounding moved an entry, exactly."""

    values: np.ndarray
    bits: int
    error: Fraction


def rounded(table: ArrayLike, bits: int = 10) -> Rounded:
    """The nearest multiples of 2^−bits to the numbers of a table, halves to even, and the largest error.

    table: finite numbers of any shape, such as log-probabilities, each taken exactly, be it a float, an integer, a
    Fraction or a Decimal; bits: 0 to 40. The error is at most 2^−(bits+1).
    ValueError where a number is not finite, or so large that its multiple has more than 53 bits.
    """
    bits = integer(bits, "bits of rounded", 0, _MOST_BITS)
    given = np.asarray(table, dtype=object)  # float64 would round them first
    numbers = [_exact(entry) for entry in given.reshape(-1)]
    largest = max(map(abs, numbers), default=Fraction(0))
    if largest * 2**bits > 2**53:
        raise ValueError(
            f"the table of rounded holds {float(largest):g}, and with bits = {bits} at most 2^{53 - bits} work"
        )
    near = [Fraction(round(number * 2**bits), 2**bits) for number in numbers]  # halves to even, as Python rounds
    values = np.array([float(number) for number in near]).reshape(given.shape)
    error = max((abs(a - b) for a, b in zip(numbers, near, strict=True)), default=Fraction(0))
    return Rounded(values, bits, error)


def _exact(entry: object) -> Fraction:
    """An entry of the table, exactly; ValueError for what is no finite number."""
    if isinstance(entry, (bool, np.bool_)):
        return Fraction(int(entry))
    if isinstance(entry, Decimal) and entry.is_finite() and abs(entry.adjusted()) <= _MOST_DIGITS:
        return Fraction(entry)
    try:
        return Fraction(number(entry, "an entry"))
    except (TypeError, ValueError):
        reason = "and finite numbers are needed; give log 0 as a large loss"
        raise ValueError(f"the table of rounded holds {_written(entry)}, {reason}") from None


def _written(entry: object) -> str:
    return str(entry) if isinstance(entry, float) else shown(entry)
