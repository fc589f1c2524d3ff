"""What each lane of a stream holds, where lanes of real numbers, integers and flags stand side by side.

A type speaks for all lanes. Where they differ it is the widest of theirs, and `kinds` says so lane by lane, so that an
integer that is picked from beside a real number is an integer again. It follows from what a stream is made of: no
author declares it, and it is not written with the circuit.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np

from compiler.language.types import Bool, Int, OneHot, Real, Type


class Kind(IntEnum):
    """What a lane holds; what is made of several is the least of them."""

    REAL = 0
    INTEGER = 1
    FLAG = 2


def kinds_of(type: Type) -> np.ndarray:
    """The kind of every lane: (width,) uint8."""
    if isinstance(type, (Int, Real)) and type.kinds:
        return np.frombuffer(type.kinds, dtype=np.uint8)
    kind = Kind.FLAG if isinstance(type, (Bool, OneHot)) else Kind.INTEGER if type.integral else Kind.REAL
    return _of_one_kind(type.width, int(kind))


@lru_cache(maxsize=1 << 8)
def _of_one_kind(width: int, kind: int) -> np.ndarray:
    found = np.full(width, kind, dtype=np.uint8)
    found.flags.writeable = False
    return found


def of_kinds(kinds: np.ndarray, lo: Any = None, hi: Any = None) -> Int | Real:
    """The type of lanes of these kinds, within these bounds."""
    least = int(kinds.min(initial=Kind.FLAG))
    result = Real(lo, hi, len(kinds)) if least == Kind.REAL else Int(lo, hi, len(kinds))
    if (kinds != (Kind.REAL if least == Kind.REAL else Kind.INTEGER)).any():
        object.__setattr__(result, "kinds", kinds.astype(np.uint8).tobytes())  # no author can
    return result


def lane_by_lane(*types: Type, most: Kind = Kind.INTEGER) -> np.ndarray:
    """The kinds of lanes made of a lane of each operand, or of its only one, and at most of this kind."""
    width = max(t.width for t in types)
    kinds = [kinds_of(t) for t in types]
    if any(len(k) not in (1, width) for k in kinds):  # the check pass refuses it
        return np.full(width, Kind.REAL, dtype=np.uint8)
    return np.minimum.reduce([*np.broadcast_arrays(*kinds), np.full(width, most, dtype=np.uint8)])


def number_type(*types: Type) -> Int | Real:
    """The type of numbers made lane by lane: integers where every operand holds integers."""
    return of_kinds(lane_by_lane(*types))


def is_flags(type: Type) -> bool:
    """Whether every lane is 0 or 1."""
    return bool((kinds_of(type) == Kind.FLAG).all())
