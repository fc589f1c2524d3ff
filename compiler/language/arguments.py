"""Checks where an argument enters: one sentence that names it, what it is, and what would work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from numbers import Integral, Rational
from os import PathLike
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

Exact: TypeAlias = int | Fraction
Number: TypeAlias = (
    float | Fraction
)  # what an author may write: integers, Fractions, and floats for the k/2^n they equal
_T = TypeVar("_T")
_N = TypeVar("_N", int, Fraction)

MOST_LANES = 1 << 20  # of one stream; no module is as wide
_MOST_LISTED = 4
_LARGEST = 1 << 1023  # no float64 is much larger


def shown(value: object) -> str:
    """A value for a message: short, and with its type where that says more."""
    text = getattr(value, "__qualname__", None) or _written(value)
    text = " ".join(text.split())
    text = text if len(text) <= 60 else text[:57] + "…"
    return text if isinstance(value, (str, int, float, type(None))) else f"{text} ({type(value).__name__})"


def counted(number: int, what: str) -> str:
    """How many there are, for a message: 1 block, 2,048 blocks."""
    return f"{number:,} {what}{'s' * (number != 1)}"


def spanned(numbers: Sequence[int]) -> str:
    """Which numbers they are, from the least to the largest: 3, or 1 to 3; with gaps 2 or 4; and 1, 4, … 31 where many
    are equally far apart.
    """
    steps = {after - before for before, after in pairwise(numbers)}
    *others, last = (f"{number:,}" for number in numbers)
    if steps <= {1}:
        return f"{others[0]} to {last}" if others else last
    if len(steps) == 1 and len(others) >= _MOST_LISTED:
        return f"{others[0]}, {others[1]}, … {last}"
    return f"{', '.join(others)} or {last}"


def _written(value: object) -> str:
    """As Python writes it, which writes no integer of more than some thousand digits."""
    try:
        return repr(value)
    except ValueError:
        large = "an integer beyond 2^64"
        return large if isinstance(value, int) else f"a {type(value).__name__} with {large}"


def instance(value: object, kind: type[_T] | tuple[type[_T], ...], what: str, needed: str) -> _T:
    """The value, where it is of this kind; TypeError otherwise."""
    if not isinstance(value, kind):
        raise TypeError(f"{what} is {shown(value)}, and {needed} is needed")
    return value


def listed(value: object, what: str, needed: str) -> list:
    """The entries of what can be gone through; TypeError for anything else, an array without axes among it."""
    try:
        return list(instance(value, Iterable, what, needed))
    except TypeError:  # NumPy and SciPy know only then that they cannot
        raise TypeError(f"{what} is {shown(value)}, and {needed} is needed") from None


def path(value: object, what: str) -> Path:
    """The path that a text or a path-like object names; TypeError for anything else."""
    return Path(value) if isinstance(value, str | PathLike) else instance(value, Path, what, "a path")


def integer(value: object, what: str, least: int | None = None, most: int | None = None) -> int:
    """A whole number as a Python integer; TypeError for anything else, ValueError outside the limits."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{what} is {shown(value)}, and an integer is needed")
    number = _within_floats(int(value), what)
    if least is not None and number < least:
        raise ValueError(f"{what} is {number}, and it must be at least {least}")
    if most is not None and number > most:
        raise ValueError(f"{what} is {number}, and it must be at most {most}")
    return number


def truth(value: object, what: str) -> bool:
    """True or False, NumPy's included; TypeError for what only acts as one, such as the text "no"."""
    return bool(instance(value, (bool, np.bool_), what, "True or False"))


def _within_floats(exact: _N, what: str) -> _N:
    if not -_LARGEST <= exact <= _LARGEST:
        raise ValueError(f"{what} lies beyond ±2^1023, and no float reaches it")
    return exact


def number(value: object, what: str, needed: str = "a number") -> Exact:
    """The exact number that an int, Fraction or finite float (numpy's included) stands for.

    needed: what else may stand there, for the message.
    """
    if isinstance(value, (float, np.floating)):
        if not isfinite(value):
            raise ValueError(f"{what} is {value}, and a finite number is needed")
        numerator, denominator = value.as_integer_ratio()
    elif isinstance(value, Integral):
        numerator, denominator = int(value), 1
    elif isinstance(value, Rational):
        numerator, denominator = int(value.numerator), int(value.denominator)
    else:
        raise TypeError(f"{what} is {shown(value)}, and {needed} is needed")
    if denominator == 1:
        return _within_floats(numerator, what)
    return _within_floats(Fraction(numerator, denominator), what)


def close_to(name: object, known: Iterable[str], end: str = "") -> str:
    """`; did you mean 'v3'?` where a known name is close, else how the sentence ends without."""
    found = get_close_matches(name, known, 1, 0.6) if isinstance(name, str) else []
    return f"; did you mean {found[0]!r}?" if found else end
