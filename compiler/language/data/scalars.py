"""Numbers and entries of JSON objects, checked as they are read."""

from __future__ import annotations

import re
from fractions import Fraction
from numbers import Integral
from types import NoneType
from typing import Any, TypeAlias

from compiler.language.arguments import Exact, Number

Json: TypeAlias = Any  # what json.loads gives; `entry` and the readers refuse what is of another kind
LARGEST_SIZE = 1 << 20  # lanes of a stream, rows of a table
_FRACTION = re.compile(r"(-?[0-9]{1,1000})/([0-9]{1,1000})")
KINDS = {dict: "an object", list: "a list", str: "a text", int: "an integer", bool: "true or false", NoneType: "null"}


class DataError(ValueError):
    """Data that is no circuit, or a circuit that has no data form; one sentence says where and why."""


def shown(value: object) -> str:
    """A value for a message, cut short."""
    if isinstance(value, int) and value.bit_length() > 200:
        return f"an integer of {value.bit_length()} bits"
    text = repr(value) if isinstance(value, (str, int, float, NoneType)) else f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "…"


def entry(data: Json, key: str, kind: type | tuple[type, ...]) -> Json:
    """An entry of a JSON object, of the right kind."""
    if not isinstance(data, dict):
        raise DataError(f"it is {shown(data)}, and an object with an entry {key!r} is needed")
    if key not in data:
        raise DataError(f"the entry {key!r} is missing")
    value = data[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        needed = " or ".join(KINDS[k] for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise DataError(f"the entry {key!r} is {shown(value)}, and {needed} is needed")
    return value


def known_keys(data: Json, *known: str) -> None:
    """Refuse entries that nobody would read."""
    extra = sorted(map(str, set(data) - set(known)))
    if extra:
        raise DataError(f"the entry {shown(extra[0])} is unknown; there can be {', '.join(known)}")


def write_number(value: Number) -> int | str:
    """An integer, or "p/q" in lowest terms; a float stands for the number that it is."""
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else f"{exact.numerator}/{exact.denominator}"


def read_number(data: Json) -> Exact:
    if isinstance(data, int) and not isinstance(data, bool) and data.bit_length() <= 4096:
        return data
    match = _FRACTION.fullmatch(data) if isinstance(data, str) else None
    if match is None or not int(match[2]) or write_number(Fraction(data)) != data:
        raise DataError(f'it is {shown(data)}, and an integer or "p/q" in lowest terms is needed')
    return Fraction(data)


def read_float(data: Json) -> float:
    exact = read_number(data)
    try:
        number = float(exact)
    except OverflowError:
        number = float("inf")
    if number in (float("inf"), -float("inf")) or Fraction(number) != exact:
        raise DataError(f"it is {shown(data)}, which no float64 holds exactly")
    return number


def read_integer(data: Json) -> int:
    exact = read_number(data)
    if exact.denominator != 1:
        raise DataError(f"it is {shown(data)}, and an integer is needed")
    return int(exact)


def write_integer(value: Integral) -> int:
    if Fraction(value).denominator != 1:
        raise DataError(f"it is {value!r}, and an integer is needed")
    return int(value)


def within(what: str, value: int, most: int) -> None:
    """Refuse a size that is not 1 to `most`."""
    if not 0 < value <= most:
        raise DataError(f"its {what} is {shown(value)}, and 1 to {most} is possible")
