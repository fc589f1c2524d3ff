"""Bounds in few digits, rounded so that the sentence they stand in stays true."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def at_most(x: float, digits: int = 3) -> str:
    """x rounded up: what is within x is within that."""
    return _rounded(x, digits, ROUND_CEILING)


def at_least(x: float, digits: int = 3) -> str:
    """x rounded down: what is x or more is that or more."""
    return _rounded(x, digits, ROUND_FLOOR)


def named(name: str, x: float, digits: int = 3) -> str:
    """x as a report has it under this name: a bound rounded so that it holds, any other number to nearest."""
    words = set(name.replace("_", " ").replace(",", " ").split())
    if name in _NO_BOUNDS or not words & _OF_BOUNDS:
        return f"{x:.{digits}g}"
    return at_least(x, digits) if words & {"lower", "least"} else at_most(x, digits)


def percent(share: float, digits: int) -> str:
    """A share in percent, to nearest; 100 and 0 only where it is all or nothing."""
    text = f"{100 * share:.{digits}g}"
    return text if text not in ("100", "0") or share in (0, 1) else at_least(100 * share, digits)


_OF_BOUNDS = {"bound", "bounds", "curvature", "neighbourhood", "covering", "tail"}
_NO_BOUNDS = {"bound_fails"}  # how often one fails


def _rounded(x: float, digits: int, towards: str) -> str:
    return f"{float(Context(prec=digits, rounding=towards).create_decimal(repr(float(x)))):.{digits}g}"
