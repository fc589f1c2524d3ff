"""What a memory-like task asks, told by windows of tokens: which store, which ask, what is right."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

BEFORE = -1
"""Stands in a window for the positions before the first token."""

Windows = np.ndarray
"""(n, reach) int64 token ids: column l holds the token l positions back, BEFORE where there is none yet."""


@dataclass(frozen=True)
class Ask:
    """A memory's task: some windows store an answer in a slot, some ask for what a slot holds.

    reach:     how many tokens, the present one included, decide what a window stores and asks.
    stores:    windows → (slot, answer token), both (n,) int64; slot −1 where nothing is stored.
    asks:      windows → the slot asked for, (n,) int64; −1 where nothing is asked.
    policy:    "once": a window asks only if exactly one window, itself included, has stored in the slot so far, and
               that one's answer is right; "last": the last one's answer is right.
    otherwise: the answer while the slot is empty; None if nothing is asked then.
    """

    reach: int
    stores: Callable[[Windows], tuple[np.ndarray, np.ndarray]]
    asks: Callable[[Windows], np.ndarray]
    policy: Literal["once", "last"] = "once"
    otherwise: int | None = None


def adjacent_pairs(
    keys: Collection[int],
    values: Collection[int],
    policy: Literal["once", "last"] = "once",
    otherwise: int | None = None,
) -> Ask:
    """A value right after a key is stored under it, and a key asks for its value (MQAR; induction heads, where all
    tokens are both).
    """
    key_ids, value_ids = np.array(sorted(keys)), np.array(sorted(values))

    def slot(tokens: np.ndarray) -> np.ndarray:
        return np.where(np.isin(tokens, key_ids), np.searchsorted(key_ids, tokens), -1)

    def stores(windows: Windows) -> tuple[np.ndarray, np.ndarray]:
        present, previous = windows[:, 0], windows[:, 1]
        return np.where(np.isin(present, value_ids), slot(previous), -1), present

    return Ask(2, stores, lambda windows: slot(windows[:, 0]), policy, otherwise)
