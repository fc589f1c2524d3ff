"""The places within a JSON value, for tests that put something else there."""

from __future__ import annotations

from functools import reduce
from operator import getitem
from typing import Any


def places(value: Any, before: tuple = ()) -> list[tuple]:
    """The path to every place, from the outside on; the whole value is at ()."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [before, *(place for name, item in items for place in places(item, (*before, name)))]


def at(value: Any, place: tuple) -> Any:
    """What stands there."""
    return reduce(getitem, place, value)
