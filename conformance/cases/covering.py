"""Covering arrays: few rows in which any three options meet in every way that they can."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any

Level = tuple[str, Any]
"""A factor and the value that it has."""
Allowed = Callable[[Mapping[str, Any]], bool]
"""Whether values may stand together; of a factor each must have one that may stand beside any of the others."""


def tuples(factors: Mapping[str, Sequence[Any]], strength: int) -> Iterator[frozenset[Level]]:
    """Every choice of values for every `strength` of the factors; for all of them where they are fewer."""
    for names in combinations(factors, min(strength, len(factors))):
        for values in product(*(factors[name] for name in names)):
            yield frozenset(zip(names, values, strict=True))


def covering(
    factors: Mapping[str, Sequence[Any]], strength: int = 3, allowed: Allowed = lambda levels: True
) -> list[dict[str, Any]]:
    """Rows, a value for each factor, that hold every one of `tuples` that is allowed: greedy, the same for the same
    factors.

    Each row begins with the first tuple that no row holds. Then each other factor, the one with most values first,
    takes the value that meets most of those tuples. Between values that meet as many, a checksum decides: where the
    one used least were taken, factors would go in step, and some fours of options would never meet.
    """
    missing = dict.fromkeys(each for each in tuples(factors, strength) if allowed(dict(each)))
    order = sorted(factors, key=lambda name: -len(factors[name]))
    rows: list[dict[str, Any]] = []
    while missing:
        row = dict(next(iter(missing)))
        for name in (name for name in order if name not in row):
            values = [value for value in factors[name] if allowed(row | {name: value})]
            gain = {value: len(_met(row, (name, value), missing, strength)) for value in values}
            lot = {value: zlib.crc32(f"{len(rows)} {name} {value}".encode()) for value in values}
            row[name] = max(values, key=lambda value: (gain[value], lot[value]))
        rows.append({name: row[name] for name in factors})
        for names in combinations(row.items(), min(strength, len(factors))):
            missing.pop(frozenset(names), None)
    return rows


def _met(row: Mapping[str, Any], level: Level, missing: Mapping[frozenset[Level], None], strength: int) -> list:
    """The missing tuples that a row would hold with one level more, beside those that it holds without."""
    others = combinations(row.items(), strength - 1)
    return [each for rest in others if (each := frozenset((*rest, level))) in missing]
