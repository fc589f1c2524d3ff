"""A search with one of its functions broken at random: it returns something else, loses a part, or swaps two."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import wraps
from typing import Any
from unittest.mock import patch

import numpy as np

import verify.prover.search as searching
from verify.prover.samples import Samples
from verify.prover.search import Search

OFTEN = 0.4  # how many of its results a broken function spoils
MOST_CLAIMS = 300


def places() -> list[tuple[Any, str]]:
    """Every function of the search: where it stands, and its name."""
    found: list[tuple[Any, str]] = [(searching, name) for name in ("potential", "number", "written", "short")]
    for kind in (Search, Samples):
        found += [(kind, name) for name, what in vars(kind).items() if inspect.isfunction(what) and name != "__init__"]
    return found


@contextmanager
def broken(rng: random.Random) -> Iterator[str]:
    """While it is open one function of the search is broken; what it gives is which."""
    holder, name = rng.choice(places())
    with patch.object(holder, name, _spoiling(getattr(holder, name), rng)), _short_searches():
        yield f"{holder.__name__}.{name}"


@contextmanager
def _short_searches() -> Iterator[None]:
    """A broken search may go on for ever with new claims: here it ends."""
    ask = Search.__call__

    def counted(self: Search, place: str, subjects: Any) -> Any:
        return ask(self, place, subjects) if len(self.claims) < MOST_CLAIMS else None

    with patch.object(Search, "__call__", counted):
        yield


def _spoiling(function: Callable, rng: random.Random) -> Callable:
    if inspect.isgeneratorfunction(function):

        @wraps(function)
        def items(*arguments: Any, **named: Any) -> Iterator[Any]:
            held = []
            for item in function(*arguments, **named):
                kind = rng.randrange(5) if rng.random() < OFTEN else None
                if kind == 0:  # lost
                    continue
                if kind == 1:  # behind the next
                    held.append(item)
                    continue
                yield spoiled(item, rng) if kind in (2, 3) else item
                if kind == 4:  # twice
                    yield item
                yield from held
                held.clear()
            yield from held

        return items

    @wraps(function)
    def value(*arguments: Any, **named: Any) -> Any:
        found = function(*arguments, **named)
        return spoiled(found, rng) if rng.random() < OFTEN else found

    return value


def spoiled(found: Any, rng: random.Random) -> Any:
    """Something else of the same kind, mostly."""
    if isinstance(found, bool):
        return not found
    if isinstance(found, int | Fraction):
        return found + rng.choice([-2, -1, 1, 2, 32])
    if isinstance(found, str):
        return found[::-1]
    if isinstance(found, set):
        return {x for x in found if rng.random() < 0.5} | {rng.randrange(6)}
    if isinstance(found, np.ndarray):
        return np.roll(found, 1)
    if isinstance(found, list | tuple) and found:
        return _other_items(found, rng)
    return rng.choice([None, 0, []]) if found is not None else 1


def _other_items(found: list | tuple, rng: random.Random) -> list | tuple:
    items = list(found)
    i, j = rng.randrange(len(items)), rng.randrange(len(items))
    kind = rng.randrange(3)
    if kind == 0:
        del items[i]
    elif kind == 1 and i != j:
        items[i], items[j] = items[j], items[i]
    else:
        items[i] = spoiled(items[i], rng)
    return type(found)(items)
