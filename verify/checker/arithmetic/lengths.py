"""Keys and queries of a Gated DeltaNet, divided by their lengths (lemma of lengths)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from verify.checker.arithmetic.norms import half_step
from verify.checker.formats import FORMATS, Rejected, exponent, is_power
from verify.checker.values.together import heights_of
from verify.checker.values.values import Value, World, scaled

FLOAT32 = FORMATS["float32"]  # in which the delta rule is computed, whatever the dtype
CHUNK = 64  # positions of a chunk at most
_EPSILON = Fraction(1, 10**6) * (1 + Fraction(1, 1 << 20))  # beside the square of a length, as a float


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of keys or queries that are 0 or `level`, a power of two: flags, by row; none of a row that is always 0."""

    level: Fraction
    flags: dict[int, Value]

    def entry(self, count: int, what: str) -> Fraction:
        """What stands at each of `count` rows that are not 0, once they are divided by their length √(|x|² + 10⁻⁶)."""
        square = count * self.level**2
        if not is_power(square) or exponent(square) % 2 or square > Fraction(2) ** 64:
            raise Rejected(
                f"{what}: {count} of its rows can be {float(self.level):g} at once, whose length is no power of 2"
            )
        if half_step(square) <= _EPSILON:
            raise Rejected(f"{what}: the square {float(square):g} of its length does not hide 1e-6")
        return self.level / Fraction(2) ** (exponent(square) // 2)


def rows_of(world: World, rows: Sequence[Value], what: str) -> Rows:
    """The rows as flags of one level; Rejected where they are not."""
    levels: set[Fraction] = set()
    for i, row in enumerate(rows):
        levels |= heights_of(world, row, f"{what}: its row {i}")
    if not levels:
        return Rows(Fraction(1), {})
    level = max(levels)
    if levels != {level} or not is_power(level) or level < 0:
        told = ", ".join(f"{float(v):g}" for v in sorted(levels)[:4])
        raise Rejected(f"{what}: its rows can be {told}, expected 0 and one power of 2")
    return Rows(level, {i: scaled(row, 1 / level) for i, row in enumerate(rows) if not row.zero})


def scale_of(d_k: int, what: str) -> Fraction:
    """1/√d_k; Rejected where that is no power of two."""
    if not is_power(Fraction(d_k)) or exponent(d_k) % 2:
        raise Rejected(f"{what}: √{d_k} is no power of 2")
    return 1 / Fraction(2) ** (exponent(d_k) // 2)
