"""One number for all that a table of a cascade reads: letter + letters · Σ_j weight_j · c_j, with small weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

_MOST_TRIED = 1 << 8  # weights of one level


@dataclass(frozen=True)
class Code:
    """weights: of each level that is read; entries: for each number what the table holds, nothing where it never comes.

    size: one more than the largest number that bounds alone leave, so that no proof need know what never comes.
    """

    weights: tuple[int, ...]
    entries: Mapping[int, Hashable]
    size: int


def code_of(by: Mapping[tuple[int, ...], Hashable], sizes: Sequence[int], letters: int) -> Code:
    """The code of a table with keys (c of each level that is read …, then the letter, less than `letters`).

    Weights that tell all keys apart always work. From the first on each is made as small as the table allows: keys
    that share a number must share their entry.
    """
    numbers: dict[Hashable, int] = {}
    kept = np.array([numbers.setdefault(value, len(numbers)) for value in by.values()])
    keys = np.array(list(by), dtype=np.int64).reshape(len(by), len(sizes) + 1)
    weights = _apart(sizes, [])
    for j in range(len(sizes)):
        for tried in range(1, min(weights[j], _MOST_TRIED)):
            candidate = _apart(sizes, [*weights[:j], tried])
            if _one_entry_each(_numbers(keys, candidate, letters), kept):
                weights = candidate
                break
    found = _numbers(keys, weights, letters).tolist()
    top = sum(weight * (n - 1) for weight, n in zip(weights, sizes, strict=True))
    return Code(tuple(weights), dict(zip(found, by.values(), strict=True)), letters * (top + 1))


def _apart(sizes: Sequence[int], first: list[int]) -> list[int]:
    """The first weights, and others that keep what they weigh apart from all before."""
    weights = list(first)
    for j in range(len(first), len(sizes)):
        weights.append(1 + sum(w * (n - 1) for w, n in zip(weights, sizes[:j], strict=True)))
    return weights


def _numbers(keys: np.ndarray, weights: list[int], letters: int) -> np.ndarray:
    return keys[:, -1] + letters * (keys[:, :-1] @ np.array(weights, dtype=np.int64))


def _one_entry_each(numbers: np.ndarray, kept: np.ndarray) -> bool:
    order = np.argsort(numbers, kind="stable")
    same = np.diff(numbers[order]) == 0
    return not (same & (np.diff(kept[order]) != 0)).any()
