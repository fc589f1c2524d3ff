"""circuit.json as polynomials: one rule for each operation of the language, an identity of exact arithmetic.

Of a stream the operation, its attributes and its inputs are read, and no declared type. That a flag is 0 or 1 and
that a number is whole is proved of the polynomials.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from verify.kernel.claims import Ledger, natural
from verify.kernel.floats import Unproved, dyadic
from verify.kernel.terms import Poly, constant

ONE = Fraction(1)
MOST_ENTRIES = 1 << 26  # of a matrix
_OF_A_STREAM = {"operation", "attributes", "inputs", "type", "name", "source"}
Lanes = list[Poly]
Decided = tuple[int, float, Poly]  # of a rule over scores: its letter, what it adds there where its flag is 1, the flag
_RELATIONS = {">": (1, 0, 0), "<": (0, 1, 0), ">=": (0, -1, 1), "<=": (-1, 0, 1), "==": (-1, -1, 1), "!=": (1, 1, 0)}


class Circuit:
    """The streams of a circuit, read once, from the first to the last."""

    def __init__(self, ledger: Ledger, data: dict[str, Any]):
        self.ledger, self.terms, self.data = ledger, ledger.terms, data
        self.lanes: list[Lanes] = []
        decides = data["streams"][data["output"]]["operation"] == "Decide"
        self.decided: list[Decided] | None = None if decides else []  # what rules over scores add, once it is proved
        for i, stream in enumerate(data["streams"][: natural(data["output"])]):
            self.lanes.append(self._read(i, stream))

    @property
    def given(self) -> tuple[str, ...]:
        """What the circuit takes for granted of its sequences."""
        read = enumerate(self.data["streams"][: self.data["output"] + 1])
        once = [i for i, s in read if s["operation"] == "MemoryRead" and s["attributes"]["policy"] == "once"]
        return tuple(f"no slot of stream {i} is written twice" for i in once)

    def _read(self, i: int, stream: dict[str, Any]) -> Lanes:
        rule, known = RULES.get(stream["operation"], (None, ()))
        if rule is None:
            raise Unproved(f"stream {i}: computed, but no rule of the kernel for {stream['operation']!r:.40}")
        _check_known(i, stream, known)
        before = len(self.terms.atoms)
        lanes = rule(self, f"stream {i}", stream["attributes"], *self._inputs(i, stream))
        new = [a for a in range(before, len(self.terms.atoms)) if self.terms.atoms[a].kind != "table"]
        if new:
            self.ledger.compare(f"stream {i}: a new atom", new)
        return [self.terms.replaced(p) for p in lanes]

    def _inputs(self, i: int, stream: dict[str, Any]) -> list[Lanes]:
        return [self.lanes[self._before(i, k)] for k in stream["inputs"]]

    def scores(self, at: int | None = None) -> list[tuple[np.ndarray, Lanes]]:
        """The output (or a stream before it) as a sum of matrix · lanes; of rules, the scores that they decide over."""
        i = self.data["output"] if at is None else at
        stream = self.data["streams"][i]
        if stream["operation"] == "Decide":
            _check_known(i, stream, ("tokens",))
            return self.scores(self._before(i, stream["inputs"][0]))
        if stream["operation"] in ("Linear", "Emit"):
            _check_known(i, stream, RULES[stream["operation"]][1])
            return list(zip(map(matrix, stream["attributes"]["matrices"]), self._inputs(i, stream), strict=True))
        lanes = self._read(i, stream)
        return [(np.eye(len(lanes)), lanes)]

    def rules(self) -> list[tuple[int, Poly]]:
        """(token, flag) of each rule over the scores: the first one whose flag is 1 decides."""
        i, stream = self.data["output"], self.data["streams"][self.data["output"]]
        if stream["operation"] != "Decide":
            return []
        held = [self.flag("a rule", *self.lanes[self._before(i, k)]) for k in stream["inputs"][1:]]
        return list(zip(map(natural, stream["attributes"]["tokens"]), held, strict=True))

    def _before(self, i: int, k: Any) -> int:
        if type(k) is not int or not 0 <= k < i:
            raise Unproved(f"stream {i} reads one that does not stand before it")
        return k

    # conditions -------------------------------------------------------------------------------------

    def flag(self, place: str, p: Poly) -> Poly:
        """p, proved to be 0 or 1."""

        def check() -> None:
            c, cells = self.terms.cells(p)
            ends = {c * end for cell in cells for end in (cell.lo, cell.hi)}
            if not ends <= {0, 1} or p.unit < 0 and any(cell.lo != cell.hi for cell in cells):
                raise Unproved(f"{place}: a flag is not proved to be 0 or 1")

        if not p.constant or p.const not in (0, 1):
            self.ledger.until(place, [p], check)
        return p

    def above(self, p: Poly) -> Poly:
        """[p > 0], for p is a multiple of 2^e, e <= 0: (relu(p) − relu(p − 2^e)) / 2^e."""
        if not p.terms:
            return p
        step = Fraction(2) ** min(p.unit, 0)
        less = self.terms.relu(self.sum((ONE, p), (-step, constant(1))))
        return self.sum((1 / step, self.terms.relu(p)), (-1 / step, less))

    def sum(self, *parts: tuple[Fraction, Poly]) -> Poly:
        return self.terms.add(parts)


def _check_known(i: int, stream: dict[str, Any], attributes: Sequence[str]) -> None:
    if set(stream) - _OF_A_STREAM or set(stream["attributes"]) - {*attributes, "type"}:
        raise Unproved(f"stream {i}: an entry or an attribute that the kernel does not know")


def matrix(data: dict[str, Any]) -> np.ndarray:
    """A matrix of circuit.json, in any of its three forms; its numbers fit float64 exactly."""
    height, width = (data["size"],) * 2 if "size" in data else data["shape"]
    if natural(height) * natural(width) > MOST_ENTRIES:
        raise Unproved(f"a matrix has {height} · {width} entries, and the kernel reads {MOST_ENTRIES}")
    if set(data) == {"diagonal", "size"}:
        return np.eye(height) * _exact(data["diagonal"])
    found = np.zeros((height, width))
    if set(data) == {"shape", "rows"}:
        if len(data["rows"]) != height:
            raise Unproved("a matrix has another height than it says")
        at = [(r, c) for r, row in enumerate(data["rows"]) for c, _ in row]
        numbers = [_exact(v) for row in data["rows"] for _, v in row]
    elif set(data) == {"shape", "exponent", "counts", "columns", "values"}:
        counts, columns, values = (_integers(data[name]) for name in ("counts", "columns", "values"))
        if len(counts) != height or ((values > 1 << 53) | (values < -(1 << 53))).any():
            raise Unproved("a matrix has another height than it says, or numbers of more than 53 bits")
        if type(data["exponent"]) is not int or not -1000 <= data["exponent"] <= 900:
            raise Unproved("a matrix has an exponent beyond 2^-1000 … 2^900, in which float64 rounds nothing")
        at = list(zip(np.repeat(np.arange(height), counts).tolist(), columns.tolist(), strict=True))
        numbers = np.ldexp(values.astype(float), data["exponent"]).tolist()
    else:
        raise Unproved("a matrix of circuit.json in a form that the kernel does not read")
    if any(type(c) is not int or not 0 <= c < width for _, c in at) or any(
        a >= b for a, b in zip(at[:-1], at[1:], strict=True)
    ):
        raise Unproved("a matrix has an entry outside of it, or not in its order")
    for (r, c), v in zip(at, numbers, strict=True):
        found[r, c] = v
    return found


def _exact(x: Any) -> float:
    if float(Fraction(x)) != Fraction(x) or type(x) is bool:
        raise Unproved(f"a matrix holds {x!r:.40}, which float64 does not hold")
    return float(Fraction(x))


def _integers(data: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(data["base64"]), f"<i{data['bytes']}").astype(np.int64)


def _each(function: Callable[..., Poly], *operands: Lanes) -> Lanes:
    """Lane by lane; a single lane goes with all of the others."""
    width = max(map(len, operands))
    if any(len(lanes) not in (1, width) for lanes in operands):
        raise Unproved("operands of different widths")
    return [function(*(lanes[i % len(lanes)] for lanes in operands)) for i in range(width)]


def _embed(r: Circuit, place: str, a: dict) -> Lanes:
    table = matrix(a["table"])
    if len(table) != r.terms.language.tokens:
        raise Unproved(f"{place}: an embedding of {len(table)} letters")
    return [r.terms.of_letter([dyadic(x) for x in column]) for column in table.T]


def _linear(r: Circuit, place: str, a: dict, *inputs: Lanes) -> Lanes:
    parts = list(zip(map(matrix, a["matrices"]), inputs, strict=True))
    if any(m.shape != (len(parts[0][0]), len(lanes)) for m, lanes in parts):
        raise Unproved(f"{place}: matrices of different sizes than what they read")
    rows = range(len(parts[0][0]))
    return [r.sum(*((dyadic(m[i, j]), x[j]) for m, x in parts for j in np.flatnonzero(m[i]).tolist())) for i in rows]


def _compare(r: Circuit, place: str, a: dict, x: Lanes, y: Lanes) -> Lanes:
    up, down, const = map(Fraction, _RELATIONS[a["relation"]])

    def one(p: Poly, q: Poly) -> Poly:
        left, right = r.sum((ONE, p), (-ONE, q)), r.sum((ONE, q), (-ONE, p))
        return r.sum((up, r.above(left)), (down, r.above(right)), (const, constant(1)))

    return _each(one, x, y)


def _memory(r: Circuit, place: str, a: dict, value: Lanes, key: Lanes, query: Lanes, *when: Lanes) -> Lanes:
    """What is read: Σ over the slots of query · what is held. Of policy once the sum: that is what it holds where no
    slot is written twice. last: each slot is a latch.
    """
    if a["policy"] not in ("sum", "once", "last") or a.get("skip", 0) not in (0, "0") or len(key) != len(query):
        raise Unproved(f"{place}: a memory that the kernel has no rule for")
    flags = [r.flag(place, f) for lanes in when for f in lanes]
    if len(flags) > 1:
        raise Unproved(f"{place}: a memory with several conditions")
    keys = [r.terms.product(k, f) for k in key for f in flags] if flags else key
    if a["policy"] == "last":
        keys = [r.flag(place, k) for k in keys]
        held = [[r.terms.latch(v, k) for k in keys] for v in value]
    else:
        held = [[r.terms.sum(r.terms.product(v, k)) for k in keys] for v in value]
    return [r.sum(*((ONE, r.terms.product(h, q)) for h, q in zip(row, query, strict=True))) for row in held]


def _count(r: Circuit, place: str, a: dict, when: Lanes, reset: Lanes) -> Lanes:
    """How often the one flag was 1 after the other one last was."""
    _flags(r, place, when, reset)
    return _each(r.terms.count, when, reset)


def _latch(r: Circuit, place: str, a: dict, value: Lanes, when: Lanes) -> Lanes:
    return [r.terms.latch(v, r.flag(place, flag)) for flag in when for v in value]


def _min(r: Circuit, p: Poly, q: Poly) -> Poly:
    return r.sum((ONE, p), (-ONE, r.terms.relu(r.sum((ONE, p), (-ONE, q)))))


def _one_hot_of(r: Circuit, place: str, a: dict, x: Lanes) -> Lanes:
    """[x = j] of a whole number, as a difference of three ramps."""
    (p,) = x
    if p.unit < 0:
        raise Unproved(f"{place}: a number that is not whole")
    ramp = lambda j: r.terms.relu(r.sum((ONE, p), (Fraction(-j), constant(1))))
    return [r.sum((ONE, ramp(j - 1)), (Fraction(-2), ramp(j)), (ONE, ramp(j + 1))) for j in range(a["n"])]


def _clip(r: Circuit, place: str, a: dict, x: Lanes) -> Lanes:
    lo, hi = Fraction(a["lo"]), Fraction(a["hi"])
    if lo > hi:
        raise Unproved(f"{place}: it clips to what is at least {lo} and at most {hi}")
    bent = lambda p, k: r.terms.relu(r.sum((ONE, p), (-k, constant(1))))
    return [r.sum((lo, constant(1)), (ONE, bent(p, lo)), (-ONE, bent(p, hi))) for p in x]


def _select(r: Circuit, place: str, a: dict, flag: Lanes, yes: Lanes, no: Lanes) -> Lanes:
    for f in flag:
        r.flag(place, f)
    return _each(lambda f, y, n: r.sum((ONE, n), (ONE, r.terms.product(f, r.sum((ONE, y), (-ONE, n))))), flag, yes, no)


def _flags(r: Circuit, place: str, *operands: Lanes) -> Sequence[Lanes]:
    for lanes in operands:
        for p in lanes:
            r.flag(place, p)
    return operands


RULES: dict[str, tuple[Callable[..., Lanes], tuple[str, ...]]] = {
    "Embed": (_embed, ("table",)),
    "Constant": (lambda r, place, a: [constant(Fraction(v)) for v in a["values"]], ("values",)),
    "Linear": (_linear, ("matrices",)),
    "Emit": (_linear, ("matrices",)),
    "Shift": (lambda r, place, a, x: [r.terms.earlier(p, natural(a["k"])) for p in x], ("k",)),
    "Relu": (lambda r, place, a, x: [r.terms.relu(p) for p in x], ()),
    "Clip": (_clip, ("lo", "hi")),
    "Compare": (_compare, ("relation",)),
    "And": (lambda r, place, a, *x: _each(r.terms.product, *_flags(r, place, *x)), ()),
    "Not": (lambda r, place, a, x: [r.sum((ONE, constant(1)), (-ONE, p)) for p in _flags(r, place, x)[0]], ()),
    "Select": (_select, ()),
    "OneHotOf": (_one_hot_of, ("n",)),
    "Min": (lambda r, place, a, x, y: _each(lambda p, q: _min(r, p, q), x, y), ()),
    "Max": (lambda r, place, a, x, y: _each(lambda p, q: r.sum((ONE, p), (ONE, q), (-ONE, _min(r, p, q))), x, y), ()),
    "Multiply": (lambda r, place, a, x, y: _each(r.terms.product, x, y), ()),
    "Cumsum": (lambda r, place, a, x: [r.terms.sum(p) for p in x], ()),
    "Count": (_count, ()),
    "Latch": (_latch, ()),
    "MemoryRead": (_memory, ("policy", "writes", "skip")),
}
