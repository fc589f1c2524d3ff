"""A potential that bounds how much a function of the letter adds up to (claims of `Language.bound_total`)."""

from __future__ import annotations

from fractions import Fraction

import networkx
import numpy as np

from verify.kernel.language import Language

Potential = tuple[Fraction, list[Fraction], list[int]]


def potential(language: Language, amounts: np.ndarray) -> Potential:
    """Distinct edges are charged where that is less; edges on a cycle pay the cost; others, taken once, a fall."""
    graph = networkx.DiGraph([(e.source, e.target) for e in language.edges])
    graph.add_nodes_from(range(language.states))
    home = {s: i for i, group in enumerate(networkx.strongly_connected_components(graph)) for s in group}
    tops = [Fraction(int(amounts[e.letters].max(initial=0))) for e in language.edges]
    charged = [
        i for i, e in enumerate(language.edges) if e.distinct and tops[i] and _charge(language, amounts, home, i)
    ]
    free = [(e, top) for i, (e, top) in enumerate(zip(language.edges, tops, strict=True)) if i not in charged]
    cost = max((top for e, top in free if home[e.source] == home[e.target]), default=Fraction(0))
    heights = dict.fromkeys(home.values(), Fraction(0))
    for _ in heights:
        for i, e in enumerate(language.edges):
            if home[e.source] != home[e.target]:
                fall = max(Fraction(0), tops[i] - cost) if i not in charged else Fraction(0)
                heights[home[e.source]] = max(heights[home[e.source]], heights[home[e.target]] + fall)
    return cost, [heights[home[s]] for s in range(language.states)], charged


def _charge(language: Language, amounts: np.ndarray, home: dict[int, int], i: int) -> bool:
    edge = language.edges[i]
    taken = amounts[edge.letters]
    times = language.length if home[edge.source] == home[edge.target] else 1
    return sum(taken[taken != 0].tolist()) <= int(taken.max()) * times


def scaled(found: Potential, times: int) -> Potential:
    """The potential of so many times the amounts."""
    cost, heights, charged = found
    return times * cost, [times * x for x in heights], charged


def written(found: Potential) -> list:
    """As a claim says it."""
    cost, heights, charged = found
    return [number(cost), [number(x) for x in heights], charged]


def number(x: Fraction) -> int | str:
    return int(x) if x.denominator == 1 else str(x)
