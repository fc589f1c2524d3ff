"""Latches of one flag in a sum: together they are one latch, of what is stored together (lemma Y, of latches)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from verify.checker.values.tables import Ramp
from verify.checker.values.values import TOKEN, ZERO, Key, Root, Value, World, combine


@dataclass(frozen=True)
class Together:
    """Components of a value, by their keys, whose sum is `level` + what `stored` was at the last position, so many
    back, where their flag was 1; `level` where there is none.
    """

    keys: tuple[Key, ...]
    lag: int
    flag: Value
    stored: Value
    level: Fraction


def together(world: World, value: Value) -> list[Together]:
    """The latches of a sum that share their flag and their lag, where there are several."""
    found: dict[tuple[str, int], list[tuple[Key, Ramp, Root]]] = {}
    for key, part in value.terms.items():
        root = world.roots[key[0]] if key[0] != TOKEN else None
        if root is not None and root.kind == "latch" and isinstance(part, Ramp) and part.linear and part.slopes:
            found.setdefault((root.parts[2].key, key[1]), []).append((key, part, root))
    groups = []
    for (_, lag), parts in found.items():
        if len(parts) > 1:
            stored = combine([(part.slopes[0] / root.parts[0], root.parts[1]) for _, part, root in parts])
            level = sum((part.ys[0] - part.slopes[0] * part.xs[0] for _, part, _ in parts), ZERO)
            groups.append(Together(tuple(key for key, _, _ in parts), lag, parts[0][2].parts[2], stored, level))
    return groups
