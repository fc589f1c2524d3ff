"""A circuit as a machine: what it remembers, and what it gives at a position, letters left open (lemma of open
letters).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np

from verify.checker.files import Matrix
from verify.checker.formats import Rejected
from verify.checker.meaning.conditions import no_rule, place
from verify.checker.meaning.entries import float_of, read_matrix, read_number
from verify.checker.tasks.letters import MOST_ENTRIES, Open, Situation, exact, fixed
from verify.checker.tasks.scores import dense

_MOST_READ = 1 << 14  # a query is rather known than all that it may read

Memory = dict[int, tuple]
"""What a machine remembers, by stream."""
Rule: TypeAlias = "Callable[[Position, int, dict, tuple], tuple]"
"""What a stream remembers after a position, from what it remembered before."""


class Machine:
    """The streams of circuit.json, position by position."""

    def __init__(self, data: dict, tokens: int):
        self.streams, self.output, self.tokens = data["streams"], data["output"], tokens
        self.needed = self._needed()
        self.tables: dict[int, list[np.ndarray]] = {}

    def _needed(self) -> list[int]:
        needed = {self.output}
        for i in range(self.output, -1, -1):
            if i in needed:
                needed |= set(self.streams[i]["inputs"])
        return sorted(needed)

    @cached_property
    def stateful(self) -> list[int]:
        return [i for i in self.needed if self.streams[i]["operation"] in STATES]

    def matrices(self, i: int) -> list[np.ndarray]:
        """The matrices of a linear map, dense; the table of an embedding: (lanes, letters)."""
        if i not in self.tables:
            stream = self.streams[i]
            if stream["operation"] == "Embed":
                self.tables[i] = [dense(read_matrix(stream["attributes"]["table"]), self.tokens).T]
            else:
                found = [read_matrix(m) for m in stream["attributes"]["matrices"]]
                self.tables[i] = [_full(m) for m in found]
        return self.tables[i]


def _full(matrix: Matrix) -> np.ndarray:
    if matrix.shape[0] * matrix.shape[1] > MOST_ENTRIES:
        raise Rejected(f"a matrix of {matrix.shape[0]} × {matrix.shape[1]} numbers")
    full = np.zeros(matrix.shape)
    np.add.at(full, (matrix.rows, matrix.cols), matrix.data)
    return full


class Position:
    """One position: the present letter is the open letter `now`; what was remembered before it."""

    @property
    def rules(self) -> dict[str, Rule]:
        """What each operation remembers."""
        return STATES

    def __init__(self, machine: Machine, situation: Situation, now: int, before: Memory):
        self.machine, self.at, self.now, self.before = machine, situation, now, before
        self._values: dict[int, Open] = {}
        self._after: dict[int, tuple] = {}

    def value(self, i: int) -> Open:
        if i not in self._values:
            stream = self.machine.streams[i]
            rule = _VALUES.get(stream["operation"])
            try:
                if rule is None:
                    raise Rejected(f"{no_rule(stream['operation'])} among paths")
                self._values[i] = rule(self, i, stream)
            except Rejected as reason:
                raise reason.at(place(self.machine.streams, i))  # noqa: B904 (the same one)
        return self._values[i]

    def input(self, i: int, k: int) -> Open:
        return self.value(self.machine.streams[i]["inputs"][k])

    def inputs(self, i: int) -> list[Open]:
        return [self.value(k) for k in self.machine.streams[i]["inputs"]]

    def after(self, i: int) -> tuple:
        """What stream i remembers after this position."""
        if i not in self._after:
            stream = self.machine.streams[i]
            self._after[i] = self.rules[stream["operation"]](self, i, stream, self.before.get(i, ()))
        return self._after[i]

    def remembered(self) -> Memory:
        return {i: self.after(i) for i in self.machine.stateful}

    def scores(self) -> Open:
        """(letters, …) the scores of all letters, whole numbers; where a rule decides, 1 for its token: W is whole, and
        more than what another letter leads by, so it leads by 1 or more.
        """
        output = self.machine.streams[self.machine.output]
        if output["operation"] == "Decide":
            for token, flag in zip(output["attributes"]["tokens"], output["inputs"][1:], strict=True):
                if self.on(self.value(flag), "the condition of a rule"):
                    self.value(output["inputs"][0])  # refused where these are not whole
                    return fixed(float(letter == token) for letter in range(self.machine.tokens))
            return self._padded(self.value(output["inputs"][0]))
        return self._padded(self.value(self.machine.output))

    def _padded(self, parts: Open) -> Open:
        if parts.width > self.machine.tokens:
            raise Rejected("a circuit has more scores than letters")
        return Open(parts.ids, np.pad(parts.data, [(0, self.machine.tokens - parts.width)] + [(0, 0)] * len(parts.ids)))

    def on(self, flag: Open, what: str) -> bool:
        """A flag that has to be known, lane 0."""
        found = float(self.at.fix(flag).data[0])
        if found not in (0.0, 1.0):
            raise Rejected(f"{what} is {found:g}, and no flag")
        return found == 1.0


def _embed(p: Position, i: int, s: dict) -> Open:
    (table,) = p.machine.matrices(i)
    return Open((p.now,), exact(table[:, p.at.choices[p.now]]))


def _linear(p: Position, i: int, s: dict) -> Open:
    return p.at.sum([p.at.linear(m, x) for m, x in zip(p.machine.matrices(i), p.inputs(i), strict=True)])


def _pointwise(function: Callable[..., np.ndarray]) -> Callable[[Position, int, dict], Open]:
    return lambda p, i, s: p.at.apply(function, *p.inputs(i))


def _of_flags(function: Callable[..., np.ndarray], count: int) -> Callable[[Position, int, dict], Open]:
    """Of operands of which the first `count` must be flags."""

    def rule(p: Position, i: int, s: dict) -> Open:
        operands = p.inputs(i)
        if not all(((x.data == 0.0) | (x.data == 1.0)).all() for x in operands[:count]):
            raise Rejected(f"an operand of {s['operation']} is not 0 or 1 everywhere")
        return p.at.apply(function, *operands)

    return rule


def _chosen(condition: np.ndarray, yes: np.ndarray, no: np.ndarray) -> np.ndarray:
    return np.where(condition == 1.0, yes, no)


def _clip(p: Position, i: int, s: dict) -> Open:
    lo, hi = exact(np.array([float_of(s["attributes"][name]) for name in ("lo", "hi")]))
    return p.at.apply(lambda x: np.clip(x, lo, hi), p.input(i, 0))


_RELATIONS = {">": np.greater, "<": np.less, ">=": np.greater_equal, "<=": np.less_equal}
_RELATIONS |= {"==": np.equal, "!=": np.not_equal}


def _compare(p: Position, i: int, s: dict) -> Open:
    return p.at.apply(lambda a, b: _RELATIONS[s["attributes"]["relation"]](a, b) * 1.0, *p.inputs(i))


def _one_hot_of(p: Position, i: int, s: dict) -> Open:
    x, n = p.input(i, 0), int(s["attributes"]["n"])
    if x.data.size * n > MOST_ENTRIES:
        x = p.at.fix(x)
    places = np.arange(n).reshape(n, *[1] * len(x.ids))
    return Open(x.ids, (x.data == places) * 1.0)


def _lookup(p: Position, i: int, s: dict) -> Open:
    table, x = exact(np.array([float_of(v) for v in s["attributes"]["table"]])), p.input(i, 0)
    if s["attributes"]["symbols"]:
        return p.at.linear(table[None], x)
    return p.at.apply(
        lambda v: np.where((v >= 0) & (v < len(table)), table[np.clip(v, 0, len(table) - 1).astype(int)], 0.0), x
    )


def _divided(p: Position, i: int, s: dict) -> Open:
    divisor = float(int(s["attributes"]["divisor"]))
    if s["operation"] == "Modulo":
        return p.at.apply(lambda x: np.mod(x, divisor), p.input(i, 0))
    return p.at.apply(lambda x: np.floor_divide(x, divisor), p.input(i, 0))


def _summed(p: Position, i: int, s: dict) -> Open:
    product = p.at.apply(np.multiply, *p.inputs(i))
    return p.at.linear(np.ones((1, product.width)), product)


def lanes(value: Open, first: int, count: int) -> Open:
    return Open(value.ids, value.data[first : first + count])


def _nothing(p: Position, i: int, k: int = 0) -> Open:
    return fixed([0.0] * p.input(i, k).width)


# What is remembered ---------------------------------------------------------------------------------------------


def _accumulated(p: Position, i: int, s: dict, before: tuple) -> tuple:
    x = fixed([1.0]) if s["operation"] == "Position" else p.input(i, 0)
    return (p.at.apply(np.add, before[0], x) if before else x,)


def _counted(p: Position, i: int, s: dict, before: tuple) -> tuple:
    if p.on(p.input(i, 1), "a reset"):
        return (fixed([0.0]),)
    up = float(p.on(p.input(i, 0), "what is counted"))
    return (fixed([float(p.at.fix(before[0]).data[0]) + up if before else up]),)


def _latched(p: Position, i: int, s: dict, before: tuple) -> tuple:
    value, when = p.inputs(i)
    flags = [p.on(lanes(when, k, 1), "a condition") for k in range(when.width)]
    return tuple(value if on else before[k] if before else _nothing(p, i) for k, on in enumerate(flags))


def _largest_so_far(p: Position, i: int, s: dict, before: tuple) -> tuple:
    value, when = p.inputs(i)
    found = []
    for k in range(value.width):
        held, lane = before[k] if before else None, lanes(value, k, 1)
        if p.on(lanes(when, k % when.width, 1), "a condition"):
            held = lane if held is None else p.at.apply(np.maximum, held, lane)
        found.append(held)
    return tuple(found)


def _moved(p: Position, i: int, s: dict, before: tuple) -> tuple:
    """The lanes of the places: the state is on one, or on none before a reset."""
    held = p.at.fix(before[0]).data if before else first_place(s)
    for k, (a, b) in enumerate(s["attributes"]["pairs"]):
        if p.on(lanes(p.input(i, 0), k, 1), "a swap"):
            held = held.copy()
            held[[a, b]] = held[[b, a]]
    if len(s["inputs"]) > 1:
        put = [p.on(lanes(p.input(i, 1), k, 1), "a reset") for k in range(len(held))]
        held = np.array(put, dtype=float) if any(put) else held
    return (fixed(held),)


def first_place(s: dict) -> np.ndarray:
    held = np.zeros(s["attributes"]["n"])
    if s["attributes"]["start"] is not None:
        held[s["attributes"]["start"]] = 1.0
    return held


def _delayed(p: Position, i: int, s: dict, before: tuple) -> tuple:
    """The operand at this position and so many before, the latest first."""
    lag = s["attributes"]["k"] if s["operation"] == "Shift" else len(s["attributes"]["kernel"]) - 1
    return (p.input(i, 0), *before)[: lag + 1]


def _stored(p: Position, i: int, s: dict, before: tuple) -> tuple:
    """For each column the value that it holds, None before anything was written."""
    policy, key = s["attributes"]["policy"], p.input(i, 1)
    if read_number(s["attributes"].get("skip", 0)):
        raise Rejected("a memory adds what it stores to what it reads")
    columns = list(before) or [None] * key.width
    if len(s["inputs"]) > 3 and not p.on(p.input(i, 3), "a condition"):
        return tuple(columns)
    adds = policy in ("sum", "once")
    value = p.input(i, 0)
    if not adds or p.at.union(*(lanes(key, n, 1) for n in range(key.width)), value) is None:
        key = p.at.fix(key)
    for n, held in enumerate(columns):
        weight = lanes(key, n, 1)
        if not weight.data.any() or (not adds and not p.on(weight, "a key")):
            continue
        written = p.at.apply(np.multiply, weight, value) if adds else value
        if adds and held is not None:
            written = p.at.apply(np.add, held, written)
        if held is None or policy != "first":
            columns[n] = written
    return tuple(columns)


def _read(p: Position, i: int, s: dict) -> Open:
    columns, query = p.after(i), p.input(i, 2)
    held = [(n, c) for n, c in enumerate(columns) if c is not None and query.data[n].any()]
    if query.ids and held and p.at.union(query, *(c for _, c in held), most=_MOST_READ) is None:
        query = p.at.fix(query)
    terms = [p.at.apply(np.multiply, lanes(query, n, 1), c) for n, c in held if query.data[n].any()]
    return p.at.sum(terms) if terms else _nothing(p, i)


def _joined(p: Position, values: list[Open]) -> Open:
    """The lanes of all of them, one after the other."""
    ids = p.at.union(*values)
    if ids is None:
        values, ids = [p.at.fix(v) for v in values], ()
    zero = Open(ids, np.zeros((1, *(len(p.at.choices[k]) for k in ids))))
    return Open(ids, np.concatenate([p.at.apply(np.add, v, zero).data for v in values]))


def _taps(p: Position, i: int, s: dict) -> Open:
    kernel = exact(np.array([float_of(k) for k in s["attributes"]["kernel"]])).tolist()
    terms = [p.at.apply(lambda x, w=w: w * x, x) for w, x in zip(kernel, p.after(i), strict=False) if w]
    return p.at.sum(terms) if terms else _nothing(p, i)


def _shifted(p: Position, i: int, s: dict) -> Open:
    held = p.after(i)
    return held[-1] if len(held) > s["attributes"]["k"] else _nothing(p, i)


def _constant(p: Position, i: int, s: dict) -> Open:
    return fixed(float_of(v) for v in s["attributes"]["values"])


STATES: dict[str, Rule] = {
    "Position": _accumulated,
    "Cumsum": _accumulated,
    "Count": _counted,
    "Latch": _latched,
    "RunningMax": _largest_so_far,
    "Shift": _delayed,
    "Lti": _delayed,
    "MemoryRead": _stored,
    "Permute": _moved,
}
_VALUES: dict[str, Callable[[Position, int, dict], Open]] = {
    "Embed": _embed,
    "Constant": _constant,
    "Linear": _linear,
    "Emit": _linear,
    "Relu": _pointwise(lambda x: np.maximum(x, 0.0)),
    "Clip": _clip,
    "Compare": _compare,
    "SameSymbol": _summed,
    "Dot": _summed,
    "And": _of_flags(np.minimum, 2),
    "Or": _of_flags(np.maximum, 2),
    "Not": _of_flags(lambda x: 1.0 - x, 1),
    "Select": _of_flags(_chosen, 1),
    "Lookup": _lookup,
    "FloorDivide": _divided,
    "Modulo": _divided,
    "OneHotOf": _one_hot_of,
    "Min": _pointwise(np.minimum),
    "Max": _pointwise(np.maximum),
    "Multiply": _pointwise(np.multiply),
    "Position": lambda p, i, s: p.after(i)[0],
    "Cumsum": lambda p, i, s: p.after(i)[0],
    "Count": lambda p, i, s: p.after(i)[0],
    "Latch": lambda p, i, s: _joined(p, list(p.after(i))),
    "RunningMax": lambda p, i, s: _joined(p, [fixed([0.0]) if v is None else v for v in p.after(i)]),
    "Shift": _shifted,
    "Lti": _taps,
    "MemoryRead": _read,
    "Permute": lambda p, i, s: p.after(i)[0],
}
