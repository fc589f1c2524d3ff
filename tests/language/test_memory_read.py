"""A memory answers what a walk over the positions with one dictionary for each sequence answers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from compiler.language.operations.memories import MemoryRead


def walked(policy: str, value: list, key: list, query: list, when: list) -> list:
    """One sequence: lists of rows of each position; the rows that are read."""
    slots: dict[int, list[Fraction]] = {}
    out = []
    for row, keys, queries, writes in zip(value, key, query, when, strict=True):
        for slot, factor in enumerate(keys):
            if not factor or not writes:
                continue
            added = [factor * entry for entry in row]
            if policy in ("sum", "once"):
                slots[slot] = [a + b for a, b in zip(slots.get(slot, [0] * len(row)), added, strict=True)]
            elif policy == "last" or slot not in slots:
                slots[slot] = added
        read = [[factor * entry for entry in slots.get(slot, [0] * len(row))] for slot, factor in enumerate(queries)]
        out.append([sum(entries) for entries in zip(*read, strict=True)])
    return out


def one_hot(draw: np.random.Generator, batch: int, length: int, slots: int) -> np.ndarray:
    """(batch, length, slots), some rows without a one."""
    return np.eye(slots + 1, slots, dtype=int)[draw.integers(0, slots + 1, (batch, length))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, object])
@pytest.mark.parametrize("policy", ["sum", "once", "first", "last"])
def test_reads_are_those_of_a_walk(policy: str, dtype: type) -> None:
    draw = np.random.default_rng(0)
    for case in range(40):
        batch, length, slots, width = (int(n) for n in draw.integers(1, (4, 14, 5, 4)))
        value = draw.integers(-4, 5, (batch, length, width))
        if policy in ("sum", "once"):
            key, query = draw.integers(-2, 3, (2, batch, length, slots)) * (
                draw.random((2, batch, length, slots)) < 0.6
            )
        else:
            key, query = (one_hot(draw, batch, length, slots) for _ in range(2))
        query = key if case % 3 == 0 else query
        flags = draw.integers(0, 2, (batch, length, 1)) if case % 2 else np.ones((batch, length, 1), dtype=int)
        arrays = {id(a): a.astype(dtype) for a in (value, key, query, flags)}
        given = [arrays[id(a)] for a in (value, key, query, flags)[: 3 + case % 2]]
        found = MemoryRead(policy).evaluate(*given)
        lists = (a.tolist() for a in (value, key, query))
        expected = [walked(policy, *rows) for rows in zip(*lists, flags[..., 0].tolist(), strict=True)]
        assert found.dtype == dtype and found.tolist() == expected
