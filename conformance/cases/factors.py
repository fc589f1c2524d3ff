"""What is crossed of each operation: its options with their values, its lengths and its sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from conformance.cases.draw import BF16
from conformance.cases.packing import WIDE_LENGTHS

LENGTHS = (1, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1025)
CHUNK_SIZES = (64, 16, 128, 256, 32, 8)
"""All that are crossed, of a kernel that is told the size of a chunk."""
DELTA_LENGTHS = (1, 15, 16, 17, 63, 64, 65, 128, 129)  # whose equations take longer
STEPS = (1, 4)  # positions, of a kernel that takes one at a time
CONV_LENGTHS = (1, 2, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1025)  # 2: fewer than a window holds
LAYER_LENGTHS = (65, 130, 260)  # beyond a chunk of 64, 128 and 256, where sizes are those of layers
STRENGTH, LAYER_STRENGTH = 3, 2
DTYPES = {"float32": torch.float32, "bfloat16": BF16, "float16": torch.half}
LIMITS: dict[Any, tuple[float, float]] = {"above": (0.0, 16.0), "both": (8.0, 16.0), "below": (16.0, math.inf)}
PLAIN = (4, 2, 2)  # heads, channels of a head, state columns
_SIZES: dict[
    str, Sequence[Any]
] = {  # groups of 3 channels, which no vector of 2 or 4 divides, and columns that are no power of two
    "selective_scan": [PLAIN, (6, 1, 3)],
    "ssd": [PLAIN, (6, 1, 3)],
    "conv": [8, 12, 64],
    "delta_rule": [(1, 4, 3), (2, 16, 5)],
}
_WIDE_SIZES = {  # a tile of 16 and what is usual, then columns and channels of a head beyond it and no multiple of it
    "selective_scan": [(4, 2, 16), (6, 1, 17), (10, 1, 24), (14, 1, 40), (2, 9, 5)],
    "ssd": [(2, 64, 16), (4, 3, 64), (6, 20, 5), (2, 17, 20), (10, 3, 24)],
    "delta_rule": [(1, 16, 40), (3, 64, 9), (1, 256, 2)],
}
_LAYER_SIZES: dict[
    str, Sequence[Any]
] = {  # those of released models, heads, channels and columns beyond 64 or 128, two of them at a time; then few or odd
    "selective_scan": [
        *((64, 1, 16), (16, 1, 32), (16, 1, 64), (132, 1, 3), (4, 1, 130), (68, 1, 66)),
        *((1, 1, 8), (3, 7, 1)),
    ],
    "ssd": [
        *((4, 64, 128), (4, 128, 16), (8, 32, 64), (68, 1, 130), (4, 66, 66), (36, 34, 2)),
        *((1, 48, 8), (3, 80, 1), (1, 7, 16), (2, 96, 8)),
    ],
    "conv": [128, 130, 258, 1],
    "norm": [2048, 512],
    "delta_rule": [(2, 64, 64), (1, 16, 128), (1, 16, 256), (66, 4, 3), (1, 64, 66), (1, 256, 3)],
}
Factors = dict[str, Sequence[Any]]


def factors_of(op: str, lengths: Sequence[int] = LENGTHS) -> Factors:
    """What is crossed; the first value of a factor is what every kernel takes."""
    common: Factors = {"length": lengths, "dtype": [*DTYPES], "batch": [1, 2], "views": [False, True, "mixed"]}
    start = ["nothing", "state", "pieces", "documents", "state and documents"]
    if op == "delta_rule":
        own: Factors = {"length": DELTA_LENGTHS, "start": start, "normed": [False, True], "last state": [False, True]}
        return common | own | {"spread": [1, 2, 3], "sizes": _SIZES[op], "chunk": [64, 16, 128]}
    if op == "norm":
        return common | {
            "length": (1, 3, 70, 140),
            "groups": [1, 2],
            "z": [False, True],
            "gate": ["before", "after"],
            "sizes": [16],
        }
    if op == "conv":
        more: Factors = {"start": start[:-1], "bias": [False, True], "taps": [4, 3, 2], "sizes": _SIZES[op]}
        more["length"] = CONV_LENGTHS
        return common | more | {"activation": [None, "silu", "swish"], "last state": [False, True]}
    found: Factors = common | {"start": start, "last state": [False, True], "sizes": _SIZES[op]}
    found |= {name: [False, True] for name in ("D", "z", "bias", "softplus")} | {"groups": [1, 2]}
    if op == "ssd":
        found |= {"D": ["no", "of heads", "of channels"], "chunk": [64, 16, 256], "limit": [None, *LIMITS]}
    return found


def wide_factors_of(op: str, lengths: Sequence[int] = LENGTHS) -> Factors:
    """What is crossed with sizes beyond a tile, over so few positions that the plain equations are quick."""
    if op not in _WIDE_SIZES:
        return {}
    few = [length for length in WIDE_LENGTHS if length <= max(lengths)]
    found = dict(factors_of(op)) | {"length": few, "sizes": _WIDE_SIZES[op]}
    return found | ({"chunk": [16, 8]} if "chunk" in found else {})


def layer_factors_of(op: str, lengths: Sequence[int] = LENGTHS) -> Factors:
    """What is crossed with sizes as layers have them, over more than a chunk: a tile of heads, channels or columns that
    is lost only there, or only with a state, documents or a narrow dtype, is lost in every layer.
    """
    found = dict(factors_of(op, lengths)) | {"sizes": _LAYER_SIZES[op], "batch": [1, 3]}
    if op == "norm":
        return found | {"length": (1, 9, 128), "groups": [1, 2, 8]}
    if "chunk" in found:
        found["chunk"] = [64, 32, 128, 256]
    if "groups" in found:
        found["groups"] = [1, 2]
    if max(lengths) < max(LAYER_LENGTHS):
        return found
    return found | {"length": (*LAYER_LENGTHS[:-1], 520) if op == "conv" else LAYER_LENGTHS}
