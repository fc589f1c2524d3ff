"""Placing by urgency: an order that is always allowed, and better than graph order where columns are in conflict."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from compiler.language.stream import constant
from compiler.passes.urgency import by_urgency


def _random(seed: int, size: int, groups: int) -> tuple[dict, list, dict]:
    """A random graph: who reads whom (some in their own block), who takes a place, and with which columns."""
    rng = np.random.default_rng(seed)
    nodes = [constant(i) for i in range(size)]
    ramps = {node: bool(rng.integers(2)) for node in nodes}
    reads: dict = {}
    for i, node in enumerate(nodes):
        sources = rng.choice(i, min(i, int(rng.integers(0, 3))), replace=False)
        reads[node] = [(nodes[s], bool(ramps[nodes[s]] and rng.integers(2))) for s in sources]
    held = {source for sources in reads.values() for source, in_port in sources if not in_port}
    placed = [node for node in nodes if not ramps[node] or node in held]
    return reads, placed, {n: None if ramps[n] else (int(rng.integers(groups)),) for n in placed}


def _allowed(reads: dict, block: dict, groups: dict) -> bool:
    ready: dict = {}
    for node, sources in reads.items():
        ready[node] = max((ready[s] if in_port else block[s] + 1 for s, in_port in sources), default=0)
    columns: dict = {}
    kept = all(block[node] >= ready[node] for node in block)
    return kept and all(columns.setdefault(at, groups[n]) == groups[n] for n, at in block.items() if groups[n])


@pytest.mark.parametrize("seed", range(60))
def test_every_stream_is_placed_after_what_it_reads_and_no_block_has_two_groups(seed: int):
    reads, placed, groups = _random(seed, 3 + seed, 1 + seed % 4)
    block = by_urgency(reads, placed, groups)
    assert set(block) == set(placed) and _allowed(reads, block, groups)


def test_small_graphs_take_at_most_one_block_more_than_the_best():
    """Against every placement there is."""
    worse = 0
    for seed in range(40):
        reads, placed, groups = _random(seed, 6, 2)
        found = max(by_urgency(reads, placed, groups).values(), default=-1)
        best = next(
            (
                last
                for last in range(found + 1)
                for at in product(range(last + 1), repeat=len(placed))
                if _allowed(reads, dict(zip(placed, at, strict=True)), groups)
            ),
            found,
        )
        worse += found > best
        assert found <= best + 1
    assert worse <= 4


def test_what_everything_waits_for_goes_first():
    """A state at the end of the graph takes the columns, and one that stands first in graph order waits."""
    patient, urgent, follows, last = (constant(i) for i in range(4))
    reads = {patient: [], urgent: [], follows: [(urgent, False)], last: [(follows, False)]}
    groups = {patient: ("a",), urgent: ("b",), follows: None, last: ("a",)}
    block = by_urgency(reads, list(reads), groups)
    assert [block[s] for s in reads] == [2, 0, 1, 2] or [block[s] for s in reads] == [1, 0, 1, 2]
