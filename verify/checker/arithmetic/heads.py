"""What a head of a Gated DeltaNet puts out: what it passes on, overwrites (lemma of overwriting) or moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from verify.checker.arithmetic.lengths import CHUNK, FLOAT32, Rows, rows_of, scale_of
from verify.checker.arithmetic.moves import moved_output
from verify.checker.arithmetic.norms import level_of
from verify.checker.arithmetic.sums import check_range, exact_sum, in_range
from verify.checker.formats import Rejected
from verify.checker.values.bent import product
from verify.checker.values.bounds import largest
from verify.checker.values.latches import latch
from verify.checker.values.together import exclusive
from verify.checker.values.values import Value, World, combine, constant, scaled

ONE = Fraction(1)


@dataclass(frozen=True, eq=False)
class Head:
    """query, key: d_k rows, before they are divided by their lengths; value: d_v rows; forgets: a flag, e^g = 0."""

    query: Sequence[Value]
    key: Sequence[Value]
    value: Sequence[Value]
    beta: Fraction
    forgets: Value


def head_output(world: World, head: Head, weight: np.ndarray, epsilon: float, what: str) -> list[Value]:
    """w · o/√(mean(o²) + ε) of every column, as values."""
    if all(row.zero for row in head.key):  # nothing is ever written, but β·v is formed
        for c, v in enumerate(head.value):
            in_range(FLOAT32, head.beta * largest(world, v), FLOAT32.least, f"{what}: column {c}·β")
        return [constant(0) for _ in head.value]
    if head.beta not in (1, 2):
        raise Rejected(f"{what}: β is {float(head.beta):g}, expected 1 or 2 where keys are not 0")
    query, key = rows_of(world, head.query, f"{what}: its query"), rows_of(world, head.key, f"{what}: its key")
    scale = scale_of(len(head.key), what)
    if head.beta == 1 and head.forgets.constant and not any(_many(world, rows, what) for rows in (query, key)):
        for rows, name in ((query, "query"), (key, "key")):
            rows.entry(1, f"{what}: its {name}")
        kept = _passed if head.forgets.const else _overwritten
        return _normed(world, head, kept(world, head, query, key), scale, weight, epsilon, what)
    return moved_output(world, head.value, query, key, head.beta, head.forgets, scale, weight, epsilon, what)


def _many(world: World, rows: Rows, what: str) -> bool:
    """Whether two rows may be other than 0 at once."""
    return not exclusive(world, list(rows.flags.values()), what)


def _overwritten(world: World, head: Head, query: Rows, key: Rows) -> list[Value]:
    """Row n of the state holds the value of the last position with key n, and the query reads one row."""
    shared = query.flags.keys() & key.flags.keys()
    return [
        combine([(ONE, product(world, latch(world, v, key.flags[n]), query.flags[n])) for n in sorted(shared)])
        for v in head.value
    ]


def _passed(world: World, head: Head, query: Rows, key: Rows) -> list[Value]:
    """Where every step forgets: the value itself, where key and query are the same row."""
    gates = [product(world, key.flags[n], query.flags[n]) for n in sorted(query.flags.keys() & key.flags.keys())]
    return [combine([(ONE, product(world, v, gate)) for gate in gates]) for v in head.value]


def _normed(
    world: World,
    head: Head,
    read: Sequence[Value],
    scale: Fraction,
    weight: np.ndarray,
    epsilon: float,
    what: str,
) -> list[Value]:
    """Behind the norm. What is read is 0 in all columns, or what all of them were at one position: the norm divides
    it by the level of the values' ballast, and 0 stays 0.
    """
    held = [scaled(v, scale) for v in head.value]
    level = level_of(world, held, epsilon, f"{what}: its norm")
    result = []
    for c, (v, o, w) in enumerate(zip(head.value, read, weight.tolist(), strict=True)):
        if v.zero:
            result.append(constant(0))
            continue
        place, reach = f"{what}: column {c}", largest(world, v)
        if v.upto is not None or 2 * (CHUNK + 1) * reach > FLOAT32.units * Fraction(2) ** v.unit:
            raise Rejected(
                f"{place} holds up to {float(reach / Fraction(2) ** v.unit):.0f} units, and a chunk adds 130 of them"
            )
        check_range(world, 2 * (CHUNK + 1) * reach, v.unit, place)
        for factor in (scale, scale / level, scale * Fraction(w) / level):
            if factor:
                exact_sum(world, [(factor, v)], place)
        result.append(combine([(scale * Fraction(w) / level, o)]))
    return result
