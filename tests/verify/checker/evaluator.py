"""circuit.json in plain NumPy, as the docstrings of the operations say, whatever the types declare.

For whole numbers of small size; shares no code with the checker or the compiler. Raises (KeyError, IndexError, …) where
the data is no circuit.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np


def evaluate(circuit: dict[str, Any], rows: np.ndarray) -> np.ndarray:
    """The scores (batch, time, width) of token ids (batch, time)."""
    values: list[np.ndarray] = []
    for j, stream in enumerate(circuit["streams"][: circuit["output"] + 1]):
        if not all(0 <= k < j for k in stream["inputs"]):
            raise IndexError("a stream reads one that does not stand before it")
        operation = _OPERATIONS[stream["operation"]]
        values.append(operation(rows, stream["attributes"], *(values[k] for k in stream["inputs"])))
    return values[circuit["output"]]


def _matrix(data: dict[str, Any]) -> np.ndarray:
    if "diagonal" in data:
        return float(Fraction(data["diagonal"])) * np.eye(data["size"])
    full = np.zeros(data["shape"])
    for r, row in enumerate(data["rows"]):
        for c, v in row:
            if c < 0 or full[r, c]:
                raise IndexError("a column below 0, or one that stands twice")
            full[r, c] = float(Fraction(v))
    return full


def _shift(x: np.ndarray, k: int) -> np.ndarray:
    if k < 0:
        raise ValueError("a shift to the future")
    moved = np.zeros_like(x)
    moved[:, k:] = x[:, : x.shape[1] - k] if k < x.shape[1] else 0
    return moved


def _linear(rows: np.ndarray, attributes: dict, *inputs: np.ndarray) -> np.ndarray:
    pairs = zip(attributes["matrices"], inputs, strict=True)
    return sum(x @ _matrix(m).T for m, x in pairs)


def _lookup(rows: np.ndarray, attributes: dict, x: np.ndarray) -> np.ndarray:
    table = np.array([float(Fraction(v)) for v in attributes["table"]])
    if attributes["symbols"]:
        return (x @ table)[..., None]
    inside = (x >= 0) & (x < len(table))
    return np.where(inside, table[np.where(inside, x, 0).astype(int)], 0.0)


def _flags(*lanes: np.ndarray) -> None:
    if not all(np.isin(x, (0, 1)).all() for x in lanes):
        raise ValueError("a flag that is not 0 or 1")


def _both(rows: np.ndarray, attributes: dict, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    _flags(a, b)
    return a * b


def _memory(rows: np.ndarray, attributes: dict, value: np.ndarray, key: np.ndarray, query: np.ndarray, *when):
    policy = {"sum": "sum", "once": "sum", "first": "first", "last": "last"}[attributes["policy"]]
    if attributes["skip"] or key.shape != query.shape:
        raise ValueError("no memory of the task")
    for flag in when:
        _flags(flag)
        key = key * flag
    if policy != "sum":
        _flags(key)
    state = np.zeros((len(rows), key.shape[2], value.shape[2]))
    written, read = np.zeros((len(rows), key.shape[2], 1), dtype=bool), []
    for t in range(rows.shape[1]):
        k, v = key[:, t, :, None], value[:, t, None, :]
        if policy == "sum":
            state = state + k * v
        else:
            here = (k != 0) & ~written if policy == "first" else k != 0
            state, written = np.where(here, v, state), written | (k != 0)
        read.append((query[:, t, :, None] * state).sum(axis=1))
    return np.stack(read, axis=1)


def _latch(rows: np.ndarray, attributes: dict, value: np.ndarray, when: np.ndarray) -> np.ndarray:
    _flags(when)
    if when.shape[2] != 1:
        raise ValueError("one flag")
    held, found = np.zeros_like(value[:, 0]), []
    for t in range(rows.shape[1]):
        held = np.where(when[:, t] != 0, value[:, t], held)
        found.append(held)
    return np.stack(found, axis=1)


def _count(rows: np.ndarray, attributes: dict, when: np.ndarray, reset: np.ndarray) -> np.ndarray:
    _flags(when, reset)
    count, found = np.zeros_like(when[:, 0]), []
    for t in range(rows.shape[1]):
        count = (count + when[:, t]) * (1 - reset[:, t])
        found.append(count)
    return np.stack(found, axis=1)


def _decode(rows: np.ndarray, attributes: dict, x: np.ndarray) -> np.ndarray:
    words = _matrix(attributes["words"])
    return (x[:, :, None, :] == words[None, None]).all(axis=3) * 1.0


def _compare(rows: np.ndarray, attributes: dict, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    relations = {"<": np.less, "<=": np.less_equal, "==": np.equal, ">": np.greater, ">=": np.greater_equal}
    return (relations | {"!=": np.not_equal})[attributes["relation"]](a, b) * 1.0


def _constant(rows: np.ndarray, attributes: dict) -> np.ndarray:
    return np.broadcast_to(np.array(attributes["values"], float), (*rows.shape, len(attributes["values"])))


def _not(rows: np.ndarray, attributes: dict, x: np.ndarray) -> np.ndarray:
    _flags(x)
    return 1 - x


def _one_hot_of(rows: np.ndarray, attributes: dict, x: np.ndarray) -> np.ndarray:
    if attributes["n"] < 0 or x.shape[2] != 1:
        raise ValueError("no one-hot")
    return (x == np.arange(attributes["n"])) * 1.0


def _select(rows: np.ndarray, attributes: dict, condition: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    _flags(condition)
    return np.where(condition == 1, yes, no)


def _decide(rows: np.ndarray, attributes: dict, scores: np.ndarray, *flags: np.ndarray) -> np.ndarray:
    """At each position by itself: the token of the first rule that holds is 1 above every other score."""
    _flags(*flags)
    found, tokens = scores.copy(), attributes["tokens"]
    for token, flag in reversed(list(zip(tokens, flags, strict=True))):
        if not 0 <= token < scores.shape[2]:
            raise IndexError("a rule names no token")
        top = found.max(axis=2) + 1
        found[..., token] = np.where(flag[..., 0] == 1, top, found[..., token])
    return found


_OPERATIONS = {
    "Decide": _decide,
    "Not": _not,
    "OneHotOf": _one_hot_of,
    "Select": _select,
    "Embed": lambda rows, a: _matrix(a["table"])[rows],
    "Constant": _constant,
    "Linear": _linear,
    "Emit": _linear,
    "Lookup": _lookup,
    "Shift": lambda rows, a, x: _shift(x, a["k"]),
    "Relu": lambda rows, a, x: np.maximum(x, 0),
    "And": _both,
    "Or": lambda rows, a, x, y: 1 - _both(rows, a, 1 - x, 1 - y),
    "Min": lambda rows, a, x, y: np.minimum(x, y),
    "Max": lambda rows, a, x, y: np.maximum(x, y),
    "Compare": _compare,
    "Cumsum": lambda rows, a, x: np.cumsum(x, axis=1),
    "MemoryRead": _memory,
    "Latch": _latch,
    "Count": _count,
    "Decode": _decode,
    "Modulo": lambda rows, a, x: np.mod(x, a["divisor"]),
    "FloorDivide": lambda rows, a, x: np.floor_divide(x, a["divisor"]),
}
