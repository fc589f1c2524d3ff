"""circuit.json as polynomials: one rule for each operation of the language, an identity of exact arithmetic.

Of a stream the operation, its attributes and its inputs are read, and no declared type. That a flag is 0 or 1 and
that a number is whole is proved of the polynomials.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from verify.kernel.claims import MOST_LAG, Ledger, entries, natural
from verify.kernel.floats import Unproved, dyadic
from verify.kernel.terms import Poly, constant

ONE = Fraction(1)
MOST_ENTRIES, MOST_LANES = 1 << 26, 1 << 20  # of all matrices of a circuit; of all its streams
MOST_VALUES = 1 << 8  # of a number that is gone through
_OF_A_RAMP, _OF_A_SPELLING = 1 << 14, 1 << 6  # numbers that take as long; of a word and a letter
_NUMBER = re.compile("-?[0-9]+(/[1-9][0-9]*)?")
_OF_A_STREAM = {"operation", "attributes", "inputs", "type", "name", "source"}
Lanes = list[Poly]
Decided = tuple[int, float, Poly]  # of a rule over scores: its letter, what it adds there where its flag is 1, the flag
_RELATIONS = {">": (1, 0, 0), "<": (0, 1, 0), ">=": (0, -1, 1), "<=": (-1, 0, 1), "==": (-1, -1, 1), "!=": (1, 1, 0)}


class Circuit:
    """The streams of a circuit, read once, from the first to the last."""

    def __init__(self, ledger: Ledger, data: dict[str, Any]):
        self.ledger, self.terms, self.data = ledger, ledger.terms, data
        self.lanes: list[Lanes] = []
        self._entries = 0  # of the matrices so far
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
        before, inputs = len(self.terms.atoms), self._inputs(i, stream)
        if _width(stream["operation"], stream["attributes"], inputs) + sum(map(len, self.lanes)) > MOST_LANES:
            raise Unproved(f"stream {i}: the streams have more than {MOST_LANES} lanes together")
        lanes = rule(self, f"stream {i}", stream["attributes"], *inputs)
        new = [a for a in range(before, len(self.terms.atoms)) if self.terms.atoms[a].kind != "table"]
        if new:
            self.ledger.compare(f"stream {i}: a new atom", new)
        return [self.terms.replaced(p) for p in lanes]

    def _inputs(self, i: int, stream: dict[str, Any]) -> list[Lanes]:
        return [self.lanes[self._before(i, k)] for k in stream["inputs"]]

    @cached_property
    def scores(self) -> list[tuple[np.ndarray, Poly]]:
        """The output as a sum of lanes, each with its weight for every letter (0 beyond the output's). Of rules, the
        scores that they decide over.
        """
        i = self.data["output"]
        stream, tokens = self.data["streams"][i], self.terms.language.tokens
        if stream["operation"] == "Decide":
            _check_known(i, stream, ("tokens",))
            i = self._before(i, stream["inputs"][0])
            stream = self.data["streams"][i]
        if stream["operation"] in ("Linear", "Emit"):
            _check_known(i, stream, RULES[stream["operation"]][1])
            inputs = self._inputs(i, stream)
            matrices = self.matrices("the output", stream["attributes"]["matrices"], list(map(len, inputs)))
        else:
            inputs = [self._read(i, stream)]
            matrices = [np.eye(len(inputs[0]))]
        if len(matrices[0]) > tokens:
            raise Unproved(f"the output has more than {tokens} letters")
        parts = zip(matrices, inputs, strict=True)
        return [(np.pad(w, (0, tokens - len(w))), p) for m, x in parts for w, p in zip(m.T, x, strict=True)]

    def rules(self) -> list[tuple[int, Poly]]:
        """(token, flag) of each rule over the scores: the first one whose flag is 1 decides."""
        i, stream = self.data["output"], self.data["streams"][self.data["output"]]
        if stream["operation"] != "Decide":
            return []
        held = [self.flag("a rule", *lanes) for lanes in self._inputs(i, stream)[1:]]
        return list(zip(map(natural, stream["attributes"]["tokens"]), held, strict=True))

    def matrices(self, place: str, held: list[dict[str, Any]], widths: Sequence[int]) -> list[np.ndarray]:
        """All of one height, and of these widths. Before any is built all sizes are known."""
        sizes = [_size(data) for data in held]
        if not held or sizes != [(sizes[0][0], width) for width in widths]:
            raise Unproved(f"{place}: matrices of different sizes than what they read")
        self._entries += sum(height * width for height, width in sizes)
        if self._entries > MOST_ENTRIES:
            raise Unproved(f"{place}: the matrices of the circuit have more than {MOST_ENTRIES} entries together")
        return list(map(matrix, held))

    def _before(self, i: int, k: Any) -> int:
        if type(k) is not int or not 0 <= k < i:
            raise Unproved(f"stream {i} reads one that does not stand before it")
        return k

    # conditions -------------------------------------------------------------------------------------

    def flag(self, place: str, p: Poly) -> Poly:
        """p, proved to be 0 or 1."""

        def check() -> None:
            if not self.terms.is_flag(p):
                raise Unproved(f"{place}: a flag is not proved to be 0 or 1")

        if not p.constant or p.const not in (0, 1):
            self.ledger.until(place, [p], check)
        return p

    def ramp(self, p: Poly, k: Fraction) -> Poly:
        """max(p − k, 0)."""
        self.terms.spend(_OF_A_RAMP)
        return self.terms.relu(self.sum((ONE, p), (-k, constant(1))))

    def function(self, place: str, p: Poly, first: int, values: Sequence[Any]) -> Poly:
        """values[j] at first + j; p is whole. Beyond, the first and the last of them."""
        if p.unit < 0:
            raise Unproved(f"{place}: a number that is not whole")
        y = list(map(number, values))
        slopes = pairwise([Fraction(0), *(b - a for a, b in pairwise(y)), Fraction(0)])
        ramps = [(b - a, self.ramp(p, Fraction(first + j))) for j, (a, b) in enumerate(slopes) if a != b]
        return self.sum((y[0], constant(1)), *ramps)

    def numbers(self, place: str, p: Poly) -> range:
        """What a whole number may be."""
        lo, hi = self.terms.range(p)
        if p.unit < 0 or hi - lo > MOST_VALUES:
            raise Unproved(f"{place}: a number that is not whole, or one of more than {MOST_VALUES}")
        return range(int(lo), int(hi) + 1)

    def sum(self, *parts: tuple[Fraction, Poly]) -> Poly:
        return self.terms.add(parts)


def _width(operation: str, a: dict[str, Any], inputs: Sequence[Lanes]) -> int:
    """The lanes that an operation makes, or more, known before any is built."""
    if operation in ("Latch", "SumWhere"):
        return prod(map(len, inputs))
    if operation == "OneHotOf":
        return natural(a["n"])
    if operation in ("Linear", "Emit"):
        return max((_size(m)[0] for m in a["matrices"]), default=0)
    return _size(a["table"])[1] if operation == "Embed" else max(map(len, inputs), default=0)


def _check_known(i: int, stream: dict[str, Any], attributes: Sequence[str]) -> None:
    if set(stream) - _OF_A_STREAM or set(stream["attributes"]) - {*attributes, "type"}:
        raise Unproved(f"stream {i}: an entry or an attribute that the kernel does not know")


def number(x: Any) -> Fraction:
    """A number of circuit.json: one of JSON, or digits in a text, over others or not. "1e999999999" takes for ever."""
    if type(x) is bool or type(x) is str and not _NUMBER.fullmatch(x):
        raise Unproved(f"{x!r:.40} is no number, or none in digits alone")
    return Fraction(x)


def _size(data: dict[str, Any]) -> tuple[int, int]:
    height, width = (data["size"],) * 2 if "size" in data else data["shape"]
    return natural(height), natural(width)


def matrix(data: dict[str, Any]) -> np.ndarray:
    """A matrix of circuit.json, in any of its three forms, of a size that is allowed; float64 holds its numbers."""
    height, width = _size(data)
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
        if ((counts < 0) | (counts > width)).any() or counts.sum() != len(columns):
            raise Unproved("the rows of a matrix have more entries than there are, or fewer")
        if type(data["exponent"]) is not int or not -1000 <= data["exponent"] <= 900:
            raise Unproved("a matrix has an exponent beyond 2^-1000 … 2^900, in which float64 rounds nothing")
        at = list(zip(np.repeat(np.arange(height), counts).tolist(), columns.tolist(), strict=True))
        numbers = np.ldexp(values.astype(float), data["exponent"]).tolist()
    else:
        raise Unproved("a matrix of circuit.json in a form that the kernel does not read")
    if at != sorted(set(at)) or any(type(c) is not int or not 0 <= c < width for _, c in at):
        raise Unproved("a matrix has an entry outside of it, or not in its order")
    for (r, c), v in zip(at, numbers, strict=True):
        found[r, c] = v
    return found


def _exact(x: Any) -> float:
    if float(number(x)) != number(x):
        raise Unproved(f"a matrix holds {x!r:.40}, which float64 does not hold")
    return float(number(x))


def _integers(data: dict[str, Any]) -> np.ndarray:
    if type(data["bytes"]) is not int or data["bytes"] not in (1, 2, 4, 8):
        raise Unproved(f"the integers of a matrix have {data['bytes']!r:.40} bytes, expected 1, 2, 4 or 8")
    return np.frombuffer(base64.b64decode(data["base64"]), f"<i{data['bytes']}").astype(np.int64)


def _each(function: Callable[..., Poly], *operands: Lanes) -> Lanes:
    """Lane by lane; a single lane goes with all of the others."""
    width = max(map(len, operands))
    if any(len(lanes) not in (1, width) for lanes in operands):
        raise Unproved("operands of different widths")
    return [function(*(lanes[i % len(lanes)] for lanes in operands)) for i in range(width)]


def _embed(r: Circuit, place: str, a: dict) -> Lanes:
    (table,) = r.matrices(place, [a["table"]], [_size(a["table"])[1]])
    if len(table) != r.terms.language.tokens:
        raise Unproved(f"{place}: a table of {len(table)} rows for {r.terms.language.tokens} letters")
    return [r.terms.of_letter(column) for column in table.T]


def _linear(r: Circuit, place: str, a: dict, *inputs: Lanes) -> Lanes:
    parts = list(zip(r.matrices(place, a["matrices"], list(map(len, inputs))), inputs, strict=True))
    rows = range(len(parts[0][0]))
    return [r.sum(*((dyadic(m[i, j]), x[j]) for m, x in parts for j in np.flatnonzero(m[i]).tolist())) for i in rows]


def _compare(r: Circuit, place: str, a: dict, x: Lanes, y: Lanes) -> Lanes:
    up, down, const = map(Fraction, _RELATIONS[a["relation"]])

    def one(p: Poly, q: Poly) -> Poly:
        left = r.sum((ONE, p), (-ONE, q))
        units = Fraction(2) ** -min(left.unit, 0)  # so many of it are whole
        more, less = (r.function(place, r.sum((sign * units, left)), 0, (0, 1)) for sign in (1, -1))
        return r.sum((up, more), (down, less), (const, constant(1)))

    return _each(one, x, y)


def _memory(r: Circuit, place: str, a: dict, value: Lanes, key: Lanes, query: Lanes, *when: Lanes) -> Lanes:
    """What is read: Σ over the slots of query · what is held. Of policy once the sum: that is what it holds where no
    slot is written twice. last: each slot is a latch. first: of one-hot keys, what is stored where 2w − n is 1: w is
    whether something is written, n how often the key was (lemma of first writes; Identities.first_writes_of_a_key).
    """
    if (
        a["policy"] not in ("sum", "once", "first", "last")
        or a.get("skip", 0) not in (0, "0")
        or len(key) != len(query)
    ):
        raise Unproved(f"{place}: a memory that the kernel has no rule for")
    flags = [r.flag(place, f) for lanes in when for f in lanes]
    if len(flags) > 1:
        raise Unproved(f"{place}: a memory with several conditions")
    keys = [r.terms.product(k, f) for k in key for f in flags] if flags else key
    if a["policy"] == "first":
        _flags(r, place, [*key, _total(r, key)])
        before = [(-ONE, r.terms.product(k, r.terms.sum(n))) for k, n in zip(key, keys, strict=True)]
        first = r.terms.relu(r.sum((Fraction(2), flags[0] if flags else constant(1)), *before))
        keys = [r.terms.product(k, first) for k in key]
    if a["policy"] == "last":
        keys = [r.flag(place, k) for k in keys]
        held = [[r.terms.latch(v, k) for k in keys] for v in value]
    else:
        held = [[r.terms.sum(r.terms.product(v, k)) for k in keys] for v in value]
    return [_total(r, [r.terms.product(h, q) for h, q in zip(row, query, strict=True)]) for row in held]


def _or(r: Circuit, place: str, a: dict, *flags: Lanes) -> Lanes:
    one = lambda p, q: r.sum((ONE, p), (ONE, q), (-ONE, r.terms.product(p, q)))
    return _each(one, *_flags(r, place, *flags))


def _total(r: Circuit, lanes: Lanes) -> Poly:
    return r.sum(*((ONE, p) for p in lanes))


def _more(r: Circuit, p: Poly, q: Poly) -> Poly:
    """How much p is more than q, 0 where it is less."""
    return r.terms.relu(r.sum((ONE, p), (-ONE, q)))


def _one_hot_of(r: Circuit, place: str, a: dict, x: Lanes) -> Lanes:
    (p,) = x
    return [r.function(place, p, j - 1, (0, 1, 0)) for j in range(natural(a["n"]))]


def _lookup(r: Circuit, place: str, a: dict, x: Lanes) -> Lanes:
    """The entry of a table at a number, 0 beyond it; at a letter, which comes as a one-hot."""
    table, symbols = entries(a["table"]), a["symbols"]
    if type(symbols) is not bool:
        raise Unproved(f"{place}: symbols is {symbols!r:.20}")
    if symbols:
        return [r.sum(*((number(v), p) for v, p in zip(table, x, strict=True)))]
    (p,) = x
    return [r.function(place, p, -1, (0, *table, 0))]


def _lti(r: Circuit, place: str, a: dict, x: Lanes) -> Lanes:
    taps = [(number(w), natural(k, MOST_LAG)) for k, w in enumerate(entries(a["kernel"]))]
    return [r.sum(*((w, r.terms.earlier(p, k)) for w, k in taps if w)) for p in x]


def _decode(r: Circuit, place: str, a: dict, x: Lanes) -> Lanes:
    """Which word the lanes spell, where they are functions of one letter. No word is of zeros, as lanes are before the
    start.
    """
    (words,), terms = r.matrices(place, [a["words"]], [len(x)]), r.terms
    back = terms.common_lag(x)
    code = [terms.earlier(p, -back) for p in x]
    if not words.any(axis=1).all() or not all(terms.by_letter_alone(m) for p in code for m in p.terms):
        raise Unproved(f"{place}: a code that is no function of one letter, or a word of zeros")
    terms.spend(_OF_A_SPELLING * len(words) * terms.language.tokens)
    spelled = list(zip(*map(terms.by_letter, code), strict=True))
    of_word = lambda word: terms.of_letter(np.array([letter == word for letter in spelled], np.int64))
    return [terms.earlier(of_word(tuple(map(dyadic, word))), back) for word in words]


def _divide(r: Circuit, place: str, a: dict, x: Lanes, part: int = 0) -> Lanes:
    """The quotient (part 0) or the rest (part 1)."""
    of = lambda p: r.numbers(place, p)
    return [r.function(place, p, of(p)[0], [divmod(j, natural(a["divisor"]))[part] for j in of(p)]) for p in x]


def _running_max(r: Circuit, place: str, a: dict, value: Lanes, when: Lanes) -> Lanes:
    """0 before there was a number; then the least that there may be (0 if that is more), and 1 for each number above it
    that was reached.
    """

    def one(p: Poly, flag: Poly) -> Poly:
        numbers = r.numbers(place, p)
        least, most = min(numbers[0], 0), numbers[-1]
        above = [r.terms.product(flag, r.function(place, p, v, (0, 1))) for v in range(least, most)]
        latches = [r.terms.latch(constant(1), f) for f in (flag, *above)]
        return r.sum(*zip((Fraction(least), *[ONE] * len(above)), latches, strict=True))

    return _each(one, value, *_flags(r, place, when))


def _clip(r: Circuit, place: str, a: dict, x: Lanes) -> Lanes:
    lo, hi = number(a["lo"]), number(a["hi"])
    if lo > hi:
        raise Unproved(f"{place}: it clips to what is at least {lo} and at most {hi}")
    return [r.sum((lo, constant(1)), (ONE, r.ramp(p, lo)), (-ONE, r.ramp(p, hi))) for p in x]


def _select(r: Circuit, place: str, a: dict, flag: Lanes, yes: Lanes, no: Lanes) -> Lanes:
    one = lambda f, y, n: r.sum((ONE, n), (ONE, r.terms.product(f, r.sum((ONE, y), (-ONE, n)))))
    return _each(one, *_flags(r, place, flag), yes, no)


def _flags(r: Circuit, place: str, *operands: Lanes) -> Sequence[Lanes]:
    for lanes in operands:
        for p in lanes:
            r.flag(place, p)
    return operands


RULES: dict[str, tuple[Callable[..., Lanes], tuple[str, ...]]] = {
    "Embed": (_embed, ("table",)),
    "Constant": (lambda r, place, a: [constant(number(v)) for v in entries(a["values"])], ("values",)),
    "Linear": (_linear, ("matrices",)),
    "Emit": (_linear, ("matrices",)),
    "Shift": (lambda r, place, a, x: [r.terms.earlier(p, natural(a["k"], MOST_LAG)) for p in x], ("k",)),
    "Lti": (_lti, ("kernel",)),
    "Relu": (lambda r, place, a, x: [r.terms.relu(p) for p in x], ()),
    "Clip": (_clip, ("lo", "hi")),
    "Compare": (_compare, ("relation",)),
    "And": (lambda r, place, a, *x: _each(r.terms.product, *_flags(r, place, *x)), ()),
    "Or": (_or, ()),
    "Not": (lambda r, place, a, x: [r.sum((ONE, constant(1)), (-ONE, p)) for p in _flags(r, place, x)[0]], ()),
    "Select": (_select, ()),
    "SameSymbol": (lambda r, place, a, *x: [_total(r, _each(r.terms.product, *_flags(r, place, *x)))], ()),
    "OneHotOf": (_one_hot_of, ("n",)),
    "Lookup": (_lookup, ("table", "symbols")),
    "FloorDivide": (_divide, ("divisor",)),
    "Modulo": (partial(_divide, part=1), ("divisor",)),
    "Min": (lambda r, place, a, x, y: _each(lambda p, q: r.sum((ONE, p), (-ONE, _more(r, p, q))), x, y), ()),
    "Max": (lambda r, place, a, x, y: _each(lambda p, q: r.sum((ONE, p), (ONE, _more(r, q, p))), x, y), ()),
    "Multiply": (lambda r, place, a, x, y: _each(r.terms.product, x, y), ()),
    "Decode": (_decode, ("words",)),
    "SumWhere": (
        lambda r, at, a, v, f: [r.terms.sum(r.terms.product(x, w)) for w in _flags(r, at, f)[0] for x in v],
        (),
    ),
    "Cumsum": (lambda r, place, a, x: [r.terms.sum(p) for p in x], ()),
    "RunningMax": (_running_max, ()),
    "Count": (lambda r, place, a, *x: _each(r.terms.count, *_flags(r, place, *x)), ()),
    "Latch": (lambda r, place, a, v, when: [r.terms.latch(x, f) for f in _flags(r, place, when)[0] for x in v], ()),
    "MemoryRead": (_memory, ("policy", "writes", "skip")),
}
