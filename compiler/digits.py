"""Bounds in few digits, rounded so that the sentence they stand in stays true."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def at_most(x: float, digits: int = 3) -> str:
    """x rounded up: what is within x is within that."""
    return _rounded(x, digits, ROUND_CEILING)


def at_least(x: float, digits: int = 3) -> str:
    """x rounded down: what is x or more is that or more."""
    return _rounded(x, digits, ROUND_FLOOR)


def _rounded(x: float, digits: int, towards: str) -> str:
    return f"{float(Context(prec=digits, rounding=towards).create_decimal(repr(float(x)))):.{digits}g}"
