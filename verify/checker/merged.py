"""Equal operators on several operands as one operator on their sum (lemma Y)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from verify.checker.bent import product
from verify.checker.bounds import bounds
from verify.checker.memories import memory, read_with
from verify.checker.running import latch, running_sum
from verify.checker.values import ZERO, Root, Value, World, combine


def merged(world: World, value: Value, normal_form: bool = False) -> Value:
    """Equal operators on several operands are one operator on their sum (lemma Y): tighter bounds, and a normal form.

    normal_form: those in a factor of products as well, and what a memory reads is bounded as it is known.
    """
    groups: dict[tuple, list] = {}
    for key, component in value.ramps.items():
        root = world.roots[key[0]]
        if not key[1] and root.exact is None and component.linear and root.kind in _MERGED:
            groups.setdefault((root.kind, _parameters(root)), []).append((key, root, component))
    rest, more = dict(value.terms), []
    const = value.const
    for (kind, _), members in groups.items():
        if len(members) < 2:
            continue
        operand, offset = [], ZERO
        for key, root, component in members:
            slope = component.slopes[0] if component.slopes else ZERO
            offset += component.ys[0] - slope * component.xs[0]
            operand.append((slope / root.parts[0] if kind != "product" else slope * root.parts[0], root.parts[1]))
            rest.pop(key)
        const += offset
        total, root = combine(operand), members[0][1]
        if not normal_form:
            more.append(_MERGED[kind](world, total, root))
        elif kind == "memory":
            together = Value(-offset, {key: component for key, _, component in members})
            more.append(read_with(world, total, root, bounds(world, together)))
        else:
            more.append(_MERGED[kind](world, merged(world, total, normal_form), root))
    if not more:
        return value
    result = combine([(Fraction(1), Value(const, rest)), *((Fraction(1), v) for v in more)])
    result.upto = value.upto
    return result


def _parameters(root: Root) -> tuple:
    if root.kind == "memory":
        return tuple((b.key, c.key) for b, c in root.parts[2])
    return tuple(v.key for v in root.parts[2:])


_MERGED: dict[str, Callable[[World, Value, Root], Value]] = {
    "sum": lambda world, v, root: running_sum(world, v, "a sum"),
    "latch": lambda world, v, root: latch(world, v, root.parts[2]),
    "product": lambda world, v, root: product(world, v, root.parts[2]),
    "memory": lambda world, v, root: memory(world, v, list(root.parts[2]), "a memory"),
}
