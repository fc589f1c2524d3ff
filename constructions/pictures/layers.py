"""Boxes in layers, each below all that it reads, so that no line between two boxes crosses a third.

A line that passes a layer has a narrow place of its own in it. The layers are ordered so that few lines cross, and
each item stands as near to its neighbours as the others of its layer let it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

WIDEST = 13.0  # inches of boxes side by side; more go to the next layer
_GAP = 0.25  # inches between neighbours
_LINE = 0.05  # inches that a passing line takes
_SWEEPS = 12  # more change nothing in the circuits we have


@dataclass(frozen=True)
class Passing:
    """The place where the line from `source` passes a layer."""

    source: Hashable
    layer: int


@dataclass(frozen=True)
class Layers:
    """items: the boxes and passing lines of each layer, from left to right; x: the middle of each item, in inches."""

    items: tuple[tuple[Hashable, ...], ...]
    x: Mapping[Hashable, float]


def layered(sources: Mapping[Hashable, Sequence[Hashable]], width: Mapping[Hashable, float]) -> Layers:
    """Where boxes stand. sources: for each box, in an order that has read boxes first, those that it reads."""
    layer = _ranks(sources, width)
    items: list[list[Hashable]] = [[] for _ in range(max(layer.values()) + 1)]
    for box in sources:
        items[layer[box]].append(box)
    near: dict[Hashable, list[Hashable]] = {box: [] for box in sources}
    last = {box: max((layer[r] for r in sources if box in sources[r]), default=layer[box]) for box in sources}
    for box in sources:
        for passed in range(layer[box] + 1, last[box]):
            items[passed].append(Passing(box, passed))
            _join(near, above(box, passed, layer), Passing(box, passed))
    for reader in sources:
        for box in sources[reader]:
            _join(near, above(box, layer[reader], layer), reader)
    sizes = {**width, **{item: _LINE for row in items for item in row if isinstance(item, Passing)}}
    x = _placed(items, near, sizes)
    return Layers(tuple(map(tuple, items)), x)


def above(box: Hashable, layer: int, layers: Mapping[Hashable, int]) -> Hashable:
    """What the line from a box leaves from, one layer above: the box, or where its line passes."""
    return box if layers[box] == layer - 1 else Passing(box, layer - 1)


def _join(near: dict[Hashable, list[Hashable]], one: Hashable, other: Hashable) -> None:
    near.setdefault(one, []).append(other)
    near.setdefault(other, []).append(one)


def _ranks(sources: Mapping[Hashable, Sequence[Hashable]], width: Mapping[Hashable, float]) -> dict[Hashable, int]:
    """The layer of each box: below all that it reads, inputs just above their first reader, no layer too wide."""
    rank: dict[Hashable, int] = {}
    for box, read in sources.items():
        rank[box] = 1 + max((rank[source] for source in read), default=-1)
    for box, read in sources.items():
        readers = [rank[reader] for reader in sources if box in sources[reader]]
        if not read and readers:
            rank[box] = min(readers) - 1
    final: dict[Hashable, int] = {}
    layer = -1
    for number in sorted(set(rank.values())):
        layer, taken = layer + 1, 0.0
        for box in (box for box in sources if rank[box] == number):
            if taken and taken + width[box] > WIDEST:
                layer, taken = layer + 1, 0.0
            final[box], taken = layer, taken + width[box] + _GAP
    return final


def _placed(
    items: list[list[Hashable]], near: Mapping[Hashable, list[Hashable]], width: Mapping[Hashable, float]
) -> dict[Hashable, float]:
    """The middles; sorts each layer by the mean place of its neighbours."""
    x: dict[Hashable, float] = {}
    for row in items:
        x |= dict(zip(row, _spread(row, [0.0] * len(row), width), strict=True))
    for sweep in range(2 * _SWEEPS):
        for row in items if sweep % 2 == 0 else items[::-1]:
            wish = {item: float(np.mean([x[n] for n in near[item]])) if near[item] else x[item] for item in row}
            if sweep < _SWEEPS:
                row.sort(key=wish.__getitem__)
            x |= dict(zip(row, _spread(row, [wish[item] for item in row], width), strict=True))
    left = min(x[item] - width[item] / 2 for row in items for item in row)
    return {item: middle - left for item, middle in x.items()}


def _spread(row: Sequence[Hashable], wish: Sequence[float], width: Mapping[Hashable, float]) -> list[float]:
    """The middles nearest to the wishes (least squares) that keep the order and the gaps: pools of neighbours."""
    half = [width[item] / 2 for item in row]
    offset = np.cumsum([0.0, *(a + b + _GAP for a, b in zip(half, half[1:]))])
    pools: list[tuple[float, int]] = []
    for target in np.array(wish) - offset:
        pools.append((float(target), 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (a, m), (b, n) = pools[-2:]
            pools[-2:] = [((a * m + b * n) / (m + n), m + n)]
    flat = [mean for mean, count in pools for _ in range(count)]
    return [float(a + b) for a, b in zip(flat, offset, strict=True)]
