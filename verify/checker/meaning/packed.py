"""Several values in one number: where it is 0, each of them is (lemma of sums that decide)."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from verify.checker.formats import Rejected
from verify.checker.meaning.circuit import FEW_LETTERS, Reader
from verify.checker.meaning.conditions import Unproved
from verify.checker.values.bounds import largest
from verify.checker.values.values import ZERO, Value, World, combine
from verify.checker.values.windows import TooLarge

_MOST_TOGETHER = 8  # values
_MOST_WEIGHT = 1 << 40


def first_left(reader: Reader, values: dict[int, Value]) -> int | None:
    """The place of the first value that is not shown to be 0 throughout every sequence, None if all are."""
    many = reader.world.language.tokens > FEW_LETTERS
    for places, together in packs(reader.world, values) if many else [([place], None) for place in values]:
        if together is None or not _vanishes(reader, together):
            left = next((place for place in places if not reader.zero(values[place])), None)
            if left is not None:
                return left
    return None


def _vanishes(reader: Reader, value: Value) -> bool:
    try:
        return reader.zero(value)
    except (Unproved, Rejected, TooLarge):  # each by itself may be within the limits
        return False


def packs(world: World, values: dict[int, Value]) -> Iterator[tuple[list[int], Value]]:
    """Some of the values at a time: their places, and Σ w_j v_j, which is 0 at a position only if each v_j is.

    v_j is a multiple of u_j and |v_j| ≤ B_j; w_k is a power of two with w_k u_k > Σ_(j<k) w_j B_j. If some v_j is
    not 0, let v_k be the last that is not: |w_k v_k| ≥ w_k u_k is more than all the others together.
    """
    pack: list[tuple[int, Fraction]] = []
    before, weight = ZERO, Fraction(1)
    for place, value in values.items():
        while weight * Fraction(2) ** value.unit <= before:
            weight *= 2
        if len(pack) == _MOST_TOGETHER or weight > _MOST_WEIGHT:
            yield _packed(values, pack)
            pack, before, weight = [], ZERO, Fraction(1)
        pack.append((place, weight))
        before += weight * largest(world, value)
    if pack:
        yield _packed(values, pack)


def _packed(values: dict[int, Value], pack: list[tuple[int, Fraction]]) -> tuple[list[int], Value]:
    return [place for place, _ in pack], combine([(weight, values[place]) for place, weight in pack])
