"""Edits of a circuit as data, and of the task that is claimed of it: most of them make some answer wrong."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from itertools import combinations
from typing import Any

Edit = tuple[str, dict[str, Any], dict[str, Any]]  # what was done, the circuit, the claim
_OTHERS = {"And": "Or", "Or": "And", "Min": "Max", "Max": "Min"}


def edits(circuit: dict[str, Any], claim: dict[str, Any]) -> Iterator[Edit]:
    """Every small edit, one at a time."""
    for path, value in [*_leaves(circuit, ())]:
        for changed in _changes(path, value):
            yield f"{_spelled(path)}: {value!r} → {changed!r}", _with(circuit, path, changed), claim
    for path, value in [*_leaves(claim, ())]:
        for changed in _changes(path, value):
            yield f"claim {_spelled(path)}: {value!r} → {changed!r}", circuit, _with(claim, path, changed)
    for i, j in combinations(range(len(circuit["alphabet"])), 2):
        letters = list(circuit["alphabet"])
        letters[i], letters[j] = letters[j], letters[i]
        yield f"{letters[j]} and {letters[i]} change names", circuit | {"alphabet": letters}, claim
    for i, stream in enumerate(circuit["streams"]):
        inputs = stream["inputs"]
        for k in range(len(inputs)):
            for other in range(i):
                if other != inputs[k]:
                    path = ("streams", i, "inputs", k)
                    yield f"{_spelled(path)}: {inputs[k]} → {other}", _with(circuit, path, other), claim
        if len(inputs) > 1:
            turned = _with(circuit, ("streams", i, "inputs"), [inputs[1], inputs[0], *inputs[2:]])
            yield f"streams {i}: inputs turned", turned, claim


def some(circuit: dict[str, Any], claim: dict[str, Any], count: int, seed: int) -> list[Edit]:
    found = list(edits(circuit, claim))
    return random.Random(seed).sample(found, min(count, len(found)))


def _leaves(value: Any, path: tuple) -> Iterator[tuple[tuple, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in ("source", "label", "name", "type", "version", "alphabet", "language", "books"):
                yield from _leaves(inner, (*path, key))
    elif isinstance(value, list) and not (path and path[-1] == "inputs"):
        for i, inner in enumerate(value):
            yield from _leaves(inner, (*path, i))
    else:
        yield path, value


def _changes(path: tuple, value: Any) -> list[Any]:
    if path[-1] == "policy":
        return [p for p in ("sum", "first", "last", "once") if p != value]
    if path[-1] == "write":
        return [p for p in ("sum", "first", "last") if p != value]
    if path[-1] == "relation":
        return [r for r in ("<", "<=", "==", ">", ">=", "!=") if r != value]
    if path[-1] == "operation":
        return [_OTHERS[value]] if value in _OTHERS else []
    if type(value) is int and path[-1] not in ("size", "output") and "shape" not in path:
        return [value + 1, value - 1, -value, 0, 2 * value]
    if type(value) is str and value.lstrip("-").isdigit():
        return [str(int(value) + d) for d in (-1, 1)]
    return []


def _with(data: Any, path: tuple, value: Any) -> Any:
    """A copy with another value there; what does not lead there is shared, and nobody may change it in place."""
    if not path:
        return value
    copied = copy.copy(data)
    copied[path[0]] = _with(data[path[0]], path[1:], value)
    return copied


def _spelled(path: tuple) -> str:
    return ".".join(map(str, path))
