"""A value at some edges of the language only: another, simpler one that is the same there (lemma of edges by
themselves).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from math import ceil, floor

import numpy as np

from verify.checker.arithmetic.memories import memory
from verify.checker.values.bent import applied, product
from verify.checker.values.language import Graph
from verify.checker.values.tables import Table
from verify.checker.values.values import TOKEN, ZERO, Component, Root, Value, World, combine, kept, later, normal

ONE = Fraction(1)


def zero_at_all_edges(world: World, value: Value, zero: Callable[[Value], bool]) -> bool:
    """Whether the value is shown to be 0 at the edges that take some letters, and so for each set of letters."""
    graph = world.language.graph
    return all(zero(at_edges(world, value, tuple(graph.kind == kind))) for kind in range(len(graph.kinds)))


@kept
def at_edges(world: World, value: Value, live: tuple[bool, ...]) -> Value:
    """A value that is this one at every position where a path takes an edge of `live`; elsewhere it may be another."""
    parts = [(ONE, _component(world, key, c, np.array(live))) for key, c in value.terms.items()]
    return combine(parts, value.const)


def _component(world: World, key: tuple[int, int], component: Component, live: np.ndarray) -> Value:
    """What it sees there: letters of the edges that can come so many steps before, and integers within their bounds."""
    (number, lag), graph = key, world.language.graph
    there = reduce(lambda found, _: graph.preceding(found), range(lag), live)
    if not there.any():  # it sees what stood before the sequence, and nothing else
        return Value(ZERO, {key: component})
    if isinstance(component, Table):
        return normal({(TOKEN, lag): _on_letters(component, graph, there)}, ZERO)
    root = world.roots[number]
    lo, hi = floor(root.along[0][there].min()), ceil(root.along[1][there].max())
    ramp, inner = component.straight(max(lo, root.lo), min(hi, root.hi)), _inside(world, root, there)
    if inner is None:
        return normal({key: ramp}, ZERO)
    before = normal({(TOKEN, lag): Table(np.zeros(world.language.tokens), component.start)}, ZERO)
    return combine([(ONE, later(world, applied(world, ramp, inner), lag)), (ONE, before)])


def _on_letters(table: Table, graph: Graph, live: np.ndarray) -> Table:
    """The same on all letters of these edges, and on others what it is on one of them."""
    letters = np.any([graph.kinds[kind] for kind in set(graph.kind[live].tolist())], axis=0)
    dense = table.dense()
    dense[~letters] = dense[letters][0]
    return Table(dense, table.start)


def _inside(world: World, root: Root, live: np.ndarray) -> Value | None:
    """What a form, a product or the queries of a memory are at these edges; None for what holds the past alone."""
    at = lambda value: at_edges(world, value, tuple(live))
    if root.kind == "form":
        return at(root.parts[0])
    if root.kind == "product":
        scale, a, b = root.parts
        return combine([(scale, product(world, at(a), at(b)))])
    if root.kind == "memory":
        unit, shape, columns = root.parts
        return combine([(1 / unit, memory(world, shape, [(b, at(c)) for b, c in columns], None))])
    return None
