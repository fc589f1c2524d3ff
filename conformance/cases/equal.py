"""Sizes of which several are equal: an axis that is taken for another of the same size shows in no other case.

A matrix that is read transposed, or a state that is handed back so, has another shape everywhere else, and raises there
or is turned back by its shape. Every two axes of an operation have one size in some row below, most of them together;
A and states are of no symmetry. Any two of the options meet in each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Sizes = dict[str, Any]


def _sized(batch: int, length: int, sizes: int | tuple[int, ...], **more: int) -> Sizes:
    return {"batch": batch, "length": length, "sizes": sizes, **more}


def _scan(batch: int, length: int, channels: int, columns: int, groups: int = 1) -> Sizes:
    return _sized(batch, length, (channels, 1, columns), groups=groups)


def _ssd(batch: int, length: int, heads: int, channels: int, columns: int, groups: int = 1, chunk: int = 16) -> Sizes:
    return _sized(batch, length, (heads, channels, columns), groups=groups, chunk=chunk)


def _conv(batch: int, length: int, channels: int) -> Sizes:
    return _sized(batch, length, channels, taps=4)


def _norm(batch: int, length: int, channels: int, groups: int) -> Sizes:
    return _sized(batch, length, channels, groups=groups)


def _delta(batch: int, length: int, heads: int, keys: int, values: int, spread: int = 1) -> Sizes:
    return _sized(batch, length, (heads, keys, values), spread=spread, chunk=16)


EQUAL: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "selective_scan": [
        _scan(1, 70, 5, 5),  # beyond a chunk of 64
        _scan(1, 17, 17, 17),  # and of 16, with as many positions
        _scan(3, 70, 3, 3),
        _scan(5, 5, 5, 5),
        _scan(3, 70, 6, 3, groups=3),
        _scan(4, 4, 4, 4, groups=4),  # a group for each channel
    ],
    "ssd": [
        _ssd(1, 80, 5, 5, 5),  # as many chunks
        _ssd(1, 16, 4, 16, 16),  # one chunk, of as many positions as channels and columns
        _ssd(5, 80, 5, 5, 5),
        _ssd(5, 5, 5, 5, 5),
        _ssd(3, 48, 6, 3, 3, groups=3),
        _ssd(4, 4, 4, 4, 4, groups=4),
        _ssd(8, 8, 8, 8, 8, groups=8, chunk=8),
    ],
    "conv": [_conv(1, 70, 4), _conv(1, 8, 8), _conv(3, 70, 3), _conv(4, 4, 4), _conv(3, 3, 3)],  # a window: 3
    "norm": [_norm(1, 16, 16, 1), _norm(4, 16, 16, 4), _norm(4, 4, 16, 4), _norm(16, 16, 16, 1), _norm(2, 8, 8, 8)],
    "delta_rule": [
        _delta(1, 64, 4, 4, 4),  # as many chunks
        _delta(1, 16, 2, 16, 16),  # one chunk, of as many positions as keys and channels
        _delta(4, 64, 4, 4, 4),
        _delta(4, 4, 4, 4, 4),
        _delta(4, 20, 2, 4, 4, spread=2),
    ],
}  # fmt: skip


def equal_sizes(op: str, most: int, without: frozenset[tuple[str, Any]]) -> list[dict[str, Any]]:
    """Rows, without those of several rows or groups where these are not taken; positions: `most`, or fewer."""
    found = []
    for sizes in EQUAL[op]:
        several = {(name, 2) for name in ("batch", "groups") if sizes.get(name, 1) > 1}
        if not several & without:
            found.append({**sizes, "length": min(sizes["length"], most)})
    return found
