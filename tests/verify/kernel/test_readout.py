"""Leads of scores, against a loop over every letter and column."""

from __future__ import annotations

import numpy as np
import pytest

from verify.kernel.floats import Unproved
from verify.kernel.readout import check_leads


def leads(head: np.ndarray, codes: np.ndarray, right: list[int], low: int, others: int) -> bool:
    """As `check_leads` says, with Python's integers."""
    scores = [[sum(int(a) * int(b) for a, b in zip(row, column, strict=True)) for column in codes.T] for row in head]
    least, most = min(map(min, scores)), max(map(max, scores))
    for i, v in enumerate(right):
        noise = max(max(scores[v]) - least, most - min(scores[v]))
        gaps = [scores[v][i] - scores[u][i] for u in range(len(head)) if u != v]
        if any(low * gap <= others * noise for gap in gaps):
            return False
    return True


def accepted(*given) -> bool:
    try:
        check_leads(*given)
    except Unproved:
        return False
    return True


@pytest.mark.parametrize("reach", [1, 3, 1 << 20, 1 << 40, 1 << 70], ids=["1", "3", "2^20", "2^40", "2^70"])
def test_a_lead_is_found_where_there_is_one(reach: int) -> None:
    """Of products in float32, in float64, in 64 bits and in Python's integers; ties are no leads."""
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        letters, lanes, columns = (int(x) for x in rng.integers((2, 1, 1), (5, 4, 4)))
        draw = lambda shape: np.array(rng.integers(-3, 4, shape).tolist(), object) * (reach // 3 or 1)
        head, codes = draw((letters, lanes)), draw((lanes, columns))
        if reach < 1 << 62:
            head, codes = head.astype(np.int64), codes.astype(np.int64)
        best = [
            int(np.argmax([sum(int(h) * int(c) for h, c in zip(row, x, strict=True)) for row in head])) for x in codes.T
        ]
        for others in (0, 1):
            low = int(rng.integers(1, 4))
            found.append(leads(head, codes, best, low, others))
            assert accepted(head, codes, np.array(best), low, others) == found[-1]
    assert len(set(found)) == 2
