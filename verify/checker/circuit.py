"""The circuit as written: circuit.json read into values, one rule per operation of the language (part C).

Each rule is an identity of exact arithmetic. Its side conditions (flags are 0 or 1, numbers are whole) are proved of
the values, never taken from the declared types; where one cannot be proved the circuit stays `Unproved`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from verify.checker.files import Matrix
from verify.checker.formats import EXACT, Rejected
from verify.checker.meaning import Meaning
from verify.checker.states import counted, latch, memory, running_sum
from verify.checker.tables import Ramp
from verify.checker.values import (
    TOKEN,
    Value,
    World,
    along,
    bounds,
    combine,
    constant,
    largest,
    later,
    normalised,
    of_letters,
    product,
    relu,
    values_of,
)
from verify.checker.windows import TooLarge

ONE = Fraction(1)
_MOST_LANES = 1 << 16
_MOST_WEIGHTS = 4  # powers of two that are tried
Lanes = list[Value]


class Unproved(Exception):
    """A step from the circuit as written to the weights that no rule covers."""


class Reader:
    """The streams of a circuit as lanes of values."""

    def __init__(self, world: World, data: dict):
        self.world, self.data, self.meaning = world, data, Meaning(world)
        self._lanes: dict[int, Lanes] = {}

    def lanes(self, i: int) -> Lanes:
        """The lanes of stream i; streams read earlier ones only, and only those that i needs are read."""
        needed = {i}
        for j in range(i, -1, -1):
            if j in needed and j not in self._lanes:
                needed |= set(self.inputs(j))
        for j in sorted(needed):
            if j not in self._lanes:
                stream = self.data["streams"][j]
                rule = RULES.get(stream["operation"])
                if rule is None:
                    raise Unproved(f"no rule reads the operation {stream['operation']}")
                self._lanes[j] = rule(self, stream, *(self._lanes[k] for k in stream["inputs"]))
                if len(self._lanes[j]) > _MOST_LANES:
                    raise Unproved(f"stream {j} has {len(self._lanes[j])} lanes")
        return self._lanes[i]

    def inputs(self, i: int) -> list[int]:
        """The streams that stream i reads."""
        inputs = self.data["streams"][i]["inputs"]
        if not all(type(k) is int and 0 <= k < i for k in inputs):
            raise Unproved(f"stream {i} reads streams that do not stand before it")
        return inputs

    def output(self, place: int, weight: Fraction | None = None) -> list[tuple[Matrix, Lanes]]:
        """The scores of a stream as a sum of matrix · lanes, without one value for each letter.

        weight: W of its rules; a rule adds 2^(number of rules behind it) · W to the score of its token.
        """
        stream = self.data["streams"][place]
        if stream["operation"] == "Decide":
            parts, tokens = self.output(stream["inputs"][0]), stream["attributes"]["tokens"]
            shape = (parts[0][0].shape[0], 1)
            for i, (token, flag) in enumerate(zip(tokens, stream["inputs"][1:], strict=True)):
                (lane,) = self.lanes(flag)
                size = np.array([float((weight or ONE) * 2 ** (len(tokens) - 1 - i))])
                rule = Matrix(shape, np.array([token]), np.array([0]), size)
                parts.append((rule, [self.flag(lane, "the condition of a rule")]))
            return parts
        if stream["operation"] in ("Linear", "Emit"):
            matrices = [read_matrix(m) for m in stream["attributes"]["matrices"]]
            return [(m, self.lanes(k)) for m, k in zip(matrices, stream["inputs"], strict=True)]
        lanes = self.lanes(place)
        places = np.arange(len(lanes))
        return [(Matrix((len(lanes), len(lanes)), places, places, np.ones(len(lanes))), lanes)]

    def flag(self, value: Value, what: str) -> Value:
        values = values_of(self.world, value)
        if values is None or not set(values) <= {0, 1}:
            raise Unproved(f"{what} is not proved to be 0 or 1")
        return value

    def whole(self, value: Value, what: str) -> Value:
        if value.unit < 0:
            raise Unproved(f"{what} is not proved to be whole")
        return value

    def above(self, x: Value) -> Value:
        """[x > 0] of a whole number."""
        self.whole(x, "a compared number")
        return combine([(ONE, relu(self.world, x)), (-ONE, relu(self.world, combine([(ONE, x)], -ONE)))])

    def both(self, a: Value, b: Value) -> Value:
        if a.constant or b.constant:
            return product(self.world, a, b)
        a, b = self.flag(a, "an operand of `and`"), self.flag(b, "an operand of `and`")
        return relu(self.world, combine([(ONE, a), (ONE, b)], -ONE))

    def same(self, a: Value, b: Value) -> bool:
        """Whether two values are shown to be the same function of the sequence."""
        return self.meaning.key(a) == self.meaning.key(b)

    def literals(self, i: int) -> Lanes:
        """The flags whose conjunction stream i is."""
        stream = self.data["streams"][i]
        if stream["operation"] == "And":
            return [flag for k in stream["inputs"] for flag in self.literals(k)]
        return self.lanes(i)

    def masked(self, x: Value, flag: Value) -> Value:
        """x where the flag is 1, 0 where it is at most 0: relu(±x + M(flag − 1)), M ≥ |x| a power of two."""
        top, room = largest(self.world, x), Fraction(1)
        while room < top:
            room *= 2
        while room / 2 >= top > 0:
            room /= 2
        closed = combine([(room, flag)], -room)
        up = relu(self.world, combine([(ONE, x), (ONE, closed)]))
        if bounds(self.world, x)[0] >= 0:
            return up
        down = relu(self.world, combine([(-ONE, x), (ONE, closed)]))
        return combine([(ONE, up), (-ONE, down)])

    def pair(self, function: Callable[[Value, Value], Value], a: Lanes, b: Lanes) -> Lanes:
        """Lane by lane; a single lane goes with all of the other operand."""
        width = max(len(a), len(b))
        return [function(a[i % len(a)], b[i % len(b)]) for i in range(width)]


# Matrices and numbers -----------------------------------------------------------------------------


def read_number(x: int | float | str) -> Fraction:
    return Fraction(x)


def read_matrix(data: dict) -> Matrix:
    """The three forms in which circuit.json writes matrices; Rejected where an entry is none, or stands twice."""
    if "diagonal" in data:
        places, entries = np.arange(data["size"]), [read_number(data["diagonal"])]
        return _matrix((data["size"],) * 2, places, places, np.full(len(places), float(entries[0])), entries)
    shape = tuple(data["shape"])
    if "rows" in data:
        listed = [(r, c, read_number(v)) for r, row in enumerate(data["rows"]) for c, v in row]
        rows, cols = (np.array([entry[i] for entry in listed], dtype=np.int64) for i in (0, 1))
        exact = [v for _, _, v in listed]
        return _matrix(shape, rows, cols, np.array([float(v) for v in exact]), exact)
    counts, cols, units = (_integers(data[name]) for name in ("counts", "columns", "values"))
    if np.abs(units.astype(float)).max(initial=0.0) > 2.0**53:
        raise Rejected("a matrix of circuit.json needs more than the 53 bits that the checker carries")
    rows = np.repeat(np.arange(shape[0]), counts)
    return _matrix(shape, rows, cols, np.ldexp(units.astype(float), data["exponent"]), [])


def _matrix(shape: tuple, rows: np.ndarray, cols: np.ndarray, data: np.ndarray, exact: list[Fraction]) -> Matrix:
    height, width = shape
    inside = len(rows) == len(cols) == len(data) and (rows < height).all() and ((cols >= 0) & (cols < width)).all()
    if not inside or len(rows) and (np.diff(rows * width + cols) <= 0).any():
        raise Rejected("a matrix of circuit.json has an entry outside of it, or not in its order")
    if any(Fraction(float(v)) != v for v in set(exact)):
        raise Rejected("a matrix of circuit.json holds a number that 53 bits do not hold")
    return Matrix((height, width), rows, cols, data)


def _integers(data: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(data["base64"]), f"<i{data['bytes']}").astype(np.int64)


def _times(matrix: Matrix, lanes: Lanes) -> list[list[tuple[Fraction, Value]]]:
    return [[(w, lanes[c]) for c, w in matrix.row(r)] for r in range(matrix.shape[0])]


# Rules --------------------------------------------------------------------------------------------


def _embed(r: Reader, s: dict) -> Lanes:
    table = read_matrix(s["attributes"]["table"]).T
    return [of_letters(table.dense_row(i)) for i in range(table.shape[0])]


def _linear(r: Reader, s: dict, *inputs: Lanes) -> Lanes:
    parts = [_times(read_matrix(m), lanes) for m, lanes in zip(s["attributes"]["matrices"], inputs, strict=True)]
    return [combine([term for part in parts for term in part[i]]) for i in range(len(parts[0]))]


def _lti(r: Reader, s: dict, x: Lanes) -> Lanes:
    taps = [read_number(k) for k in s["attributes"]["kernel"]]
    return [combine([(w, later(v, k, r.world.language.tokens)) for k, w in enumerate(taps) if w]) for v in x]


def _clip(r: Reader, s: dict, x: Lanes) -> Lanes:
    lo, hi = (Fraction(s["attributes"][name]) for name in ("lo", "hi"))
    bent = lambda v, k: relu(r.world, combine([(ONE, v)], -k))
    return [combine([(ONE, bent(v, lo)), (-ONE, bent(v, hi))], lo) for v in x]


def _compare(r: Reader, s: dict, a: Lanes, b: Lanes) -> Lanes:
    weights = {">": (1, 0, 0), "<": (0, 1, 0), ">=": (0, -1, 1), "<=": (-1, 0, 1), "==": (-1, -1, 1), "!=": (1, 1, 0)}
    up, down, const = map(Fraction, weights[s["attributes"]["relation"]])
    difference = lambda x, y: combine([(ONE, x), (-ONE, y)])
    return r.pair(
        lambda x, y: combine([(up, r.above(difference(x, y))), (down, r.above(difference(y, x)))], const), a, b
    )


def _select(r: Reader, s: dict, condition: Lanes, yes: Lanes, no: Lanes) -> Lanes:
    found = []
    for i, (y, n) in enumerate(zip(yes, no, strict=True)):
        flag = r.flag(condition[i % len(condition)], "a condition")
        found.append(combine([(ONE, n), (ONE, r.masked(combine([(ONE, y), (-ONE, n)]), flag))]))
    return found


def _pointwise(r: Reader, x: Value, function: Callable[[int], int]) -> Value:
    """A function of one whole number, as bends of relu(x − j) between its bounds."""
    lo, hi = (int(b) for b in bounds(r.world, r.whole(x, "a looked up number")))
    if hi - lo > 4096:
        raise Unproved(f"a function of a number of {hi - lo} values")
    return _bent(r, x, lo, [function(j) for j in range(lo, hi + 1)] + [function(hi)])


def _bent(r: Reader, x: Value, first: int, y: list[int]) -> Value:
    """y[0] up to `first`, then from one of y to the next, and y[-1] from there on."""
    slopes = [0, *(b - a for a, b in zip(y, y[1:], strict=False)), 0]
    bends = [(j + first, b - a) for j, (a, b) in enumerate(zip(slopes, slopes[1:], strict=False)) if b != a]
    return combine([(Fraction(w), relu(r.world, combine([(ONE, x)], Fraction(-j)))) for j, w in bends], Fraction(y[0]))


def _lookup(r: Reader, s: dict, x: Lanes) -> Lanes:
    table = [int(v) for v in s["attributes"]["table"]]
    if s["attributes"]["symbols"]:
        return [combine([(Fraction(w), v) for w, v in zip(table, x, strict=True)])]
    return [_bent(r, r.whole(x[0], "a looked up number"), -1, [0, *table, 0])]


def _decode(r: Reader, s: dict, x: Lanes) -> Lanes:
    """Functions of one letter only: the definition, letter by letter."""
    words = read_matrix(s["attributes"]["words"])
    keys = {k for v in x for k in v.terms}
    if len(keys) != 1 or next(iter(keys))[0] != TOKEN:
        raise Unproved("a decoded code that is no function of one letter")
    (key,) = keys
    tables = [t.affine(ONE, v.const) for v in x for t in v.tables.values()]
    if len(tables) < len(x) or any(t.start != (0,) * key[1] for t in tables):
        raise Unproved("a decoded code that is constant, or not 0 before the start")
    dense = np.stack([t.dense() for t in tables])
    full = np.stack([words.dense_row(i) for i in range(words.shape[0])])
    norm = (full[0] ** 2).sum()
    here = (full @ dense == norm) & ((dense * dense).sum(axis=0) == norm)
    return [later(of_letters(row.astype(float)), key[1], r.world.language.tokens) for row in here]


def _memory(r: Reader, s: dict, value: Lanes, key: Lanes, query: Lanes, *when: Lanes) -> Lanes:
    policy, world = s["attributes"]["policy"], r.world
    if read_number(s["attributes"].get("skip", 0)):
        raise Unproved("a memory that adds what it stores")
    if policy == "first":
        return _first(r, s, value, key, query)
    keys = [product(world, k, r.flag(when[0][0], "a condition")) for k in key] if when else key
    if policy == "last":
        flags = [r.flag(k, "a key") for k in keys]
        return [
            combine([(ONE, product(world, latch(world, v, f), q)) for f, q in zip(flags, query, strict=True)])
            for v in value
        ]
    return [_summed(world, v, keys, query) for v in value]


def _summed(world: World, value: Value, keys: Lanes, query: Lanes) -> Value:
    if len(keys) == 1:
        return product(world, running_sum(world, product(world, value, keys[0]), "a memory"), query[0])
    return memory(world, value, list(zip(keys, query, strict=True)), "a memory")


def _first(r: Reader, s: dict, value: Lanes, key: Lanes, query: Lanes) -> Lanes:
    """Lemma F′: with one-hot keys the first write is where 2w − n is 1, n the writes so far under the present key."""
    world = r.world
    r.flag(combine([(ONE, k) for k in key]), "the sum of the keys")
    for k in key:
        r.flag(k, "a key")
    left = []
    for flag in r.literals(s["inputs"][3]) if len(s["inputs"]) > 3 else []:
        r.flag(flag, "a condition")
        if any(r.meaning.key(product(world, k, flag)) != r.meaning.key(k) for k in key):
            left.append(flag)
    write = constant(1)
    for flag in left:
        write = r.both(write, flag)
    before = _summed(world, write, key, key)
    first = combine([(Fraction(2), write), (-ONE, before)])
    stored = [_stored(r, v, first) for v in value]
    return [_summed(world, v, key, query) for v in stored]


def _stored(r: Reader, value: Value, flag: Value) -> Value:
    """value · flag; codes of ±1 and 0 as 2 · positive part − size, which are masked alone (a mask is linear)."""
    if bounds(r.world, value)[0] >= 0 or not set(values_of(r.world, value) or (2,)) <= {-1, 0, 1}:
        return r.masked(value, flag)
    positive, negative = relu(r.world, value), relu(r.world, combine([(-ONE, value)]))
    size = combine([(ONE, positive), (ONE, negative)])
    return combine([(Fraction(2), r.masked(positive, flag)), (-ONE, r.masked(size, flag))])


def _running_max(r: Reader, s: dict, value: Lanes, when: Lanes) -> Lanes:
    """0 before anything was seen; then the least value there is, and 1 for each level above it that was reached."""
    return [_largest_so_far(r, v, when[i % len(when)]) for i, v in enumerate(value)]


def _largest_so_far(r: Reader, value: Value, when: Value) -> Value:
    lo, hi = bounds(r.world, r.whole(value, "a largest number"))
    if hi - lo > 256:
        raise Unproved(f"a running maximum of numbers from {lo} to {hi}")
    lo = min(lo, Fraction(0)) if lo >= 0 else lo
    reached = [r.both(r.above(combine([(ONE, value)], Fraction(-v))), when) for v in range(int(lo), int(hi))]
    levels = [(ONE, latch(r.world, constant(1), flag)) for flag in reached]
    return combine([(lo, latch(r.world, constant(1), r.flag(when, "a condition"))), *levels])


def _count(r: Reader, s: dict, when: Lanes, reset: Lanes) -> Lanes:
    up, down = r.flag(when[0], "what is counted"), r.flag(reset[0], "a reset")
    drive = relu(r.world, combine([(ONE, up), (-ONE, down)]))
    return [running_sum(r.world, drive, "a count") if down.constant else counted(r.world, drive, down, "a count")]


def _latches(r: Reader, s: dict, value: Lanes, when: Lanes) -> Lanes:
    return [latch(r.world, v, r.flag(f, "a condition")) for f in when for v in value]


def _gated(r: Reader, s: dict, bank: Lanes, gate: Lanes) -> Lanes:
    width = len(bank) // len(gate)
    return [
        combine([(ONE, product(r.world, bank[k * width + i], g)) for k, g in enumerate(gate)]) for i in range(width)
    ]


def _sum_where(r: Reader, s: dict, value: Lanes, when: Lanes) -> Lanes:
    return [running_sum(r.world, product(r.world, v, r.flag(f, "a condition")), "a sum") for f in when for v in value]


def _one_hot_of(r: Reader, s: dict, x: Lanes) -> Lanes:
    number = r.whole(x[0], "a number that selects")
    return [_bent(r, number, k - 1, [0, 1, 0]) for k in range(s["attributes"]["n"])]


def _divided(r: Reader, s: dict, x: Lanes) -> Lanes:
    divisor, rest = int(s["attributes"]["divisor"]), s["operation"] == "Modulo"
    return [_pointwise(r, v, lambda j: j % divisor if rest else j // divisor) for v in x]


def _scaled_sum(r: Reader, s: dict, value: Lanes, weight: Lanes, gate: Lanes) -> Lanes:
    driven = r.pair(lambda v, w: running_sum(r.world, product(r.world, v, w), "a sum"), value, weight)
    return r.pair(lambda v, g: product(r.world, v, g), driven, gate)


def _difference(a: Value, b: Value) -> Value:
    return combine([(ONE, a), (-ONE, b)])


def _or(r: Reader, s: dict, a: Lanes, b: Lanes) -> Lanes:
    neither = lambda x, y: relu(r.world, combine([(-ONE, r.flag(x, "a flag")), (-ONE, r.flag(y, "a flag"))], ONE))
    return [combine([(-ONE, v)], ONE) for v in r.pair(neither, a, b)]


RULES: dict[str, Callable] = {
    "Embed": _embed,
    "Constant": lambda r, s: [constant(read_number(v)) for v in s["attributes"]["values"]],
    "Position": lambda r, s: [running_sum(r.world, constant(1), "the position")],
    "Linear": _linear,
    "Emit": _linear,
    "Shift": lambda r, s, x: [later(v, s["attributes"]["k"], r.world.language.tokens) for v in x],
    "Lti": _lti,
    "Relu": lambda r, s, x: [relu(r.world, v) for v in x],
    "Clip": _clip,
    "Compare": _compare,
    "SameSymbol": lambda r, s, a, b: [combine([(ONE, v) for v in r.pair(r.both, a, b)])],
    "And": lambda r, s, a, b: r.pair(r.both, a, b),
    "Or": _or,
    "Not": lambda r, s, a: [combine([(-ONE, v)], ONE) for v in a],
    "Select": _select,
    "Lookup": _lookup,
    "FloorDivide": _divided,
    "Modulo": _divided,
    "ScaledSum": _scaled_sum,
    "OneHotOf": _one_hot_of,
    "Decode": _decode,
    "Min": lambda r, s, a, b: r.pair(lambda x, y: _difference(x, relu(r.world, _difference(x, y))), a, b),
    "Max": lambda r, s, a, b: r.pair(lambda x, y: combine([(ONE, y), (ONE, relu(r.world, _difference(x, y)))]), a, b),
    "Multiply": lambda r, s, a, b: r.pair(lambda x, y: product(r.world, x, y), a, b),
    "Dot": lambda r, s, a, b: [combine([(ONE, v) for v in r.pair(lambda x, y: product(r.world, x, y), a, b)])],
    "Cumsum": lambda r, s, x: [running_sum(r.world, v, "a running sum") for v in x],
    "Latch": _latches,
    "SumWhere": _sum_where,
    "GateSum": _gated,
    "MemoryRead": _memory,
    "Count": _count,
    "RunningMax": _running_max,
}


# The comparison ------------------------------------------------------------------------------------


def scores_differ(reader: Reader, lanes: Lanes, head: Matrix, letters: int) -> str | None:
    """None if every score of the weights is the circuit's, as a function of the sequence; else the first that is not
    shown.
    """
    place = reader.data["output"]
    weight = _rule_weight(reader, reader.data["streams"][place], lanes, head)
    parts = reader.output(place, weight)
    width = parts[0][0].shape[0]
    if width > letters:
        return f"the circuit gives {width} numbers, and there are {letters} letters"
    if _same_matrices([(head.part(0, letters), lanes)], parts):
        return None
    if letters > 4096:
        return "the head is not the circuit's, lane by lane"
    for row in range(letters):
        if not reader.same(_score(parts, row), _score([(head, lanes)], row)):
            return f"the score of letter {row} is not shown to be the circuit's"
    return None


def _score(parts: list[tuple[Matrix, Lanes]], row: int) -> Value:
    return combine([(w, lanes[c]) for matrix, lanes in parts if row < matrix.shape[0] for c, w in matrix.row(row)])


def _tight(world: World, value: Value, depth: int) -> tuple[Fraction, Fraction]:
    """Bounds, of the value and of what it also is: a ramp of a sum is a line of its parts and another ramp."""
    (lo, hi), here = bounds(world, value), along(world, value)
    if here is not None:
        lo, hi = max(lo, Fraction(here[0].min())), min(hi, Fraction(here[1].max()))
    for key, ramp in value.ramps.items() if depth else ():
        form = world.roots[key[0]]
        for slope in {ramp.slopes[0], ramp.slopes[-1]} - {0} if form.kind == "form" and not key[1] else ():
            line = Value(Fraction(0), {key: Ramp([form.lo, form.hi], [slope * form.lo, slope * form.hi])})
            other = _tight(world, combine([(ONE, value), (-ONE, line), (slope, form.parts[0])]), depth - 1)
            lo, hi = max(lo, other[0]), min(hi, other[1])
    return lo, hi


def _rule_weight(reader: Reader, stream: dict, lanes: Lanes, head: Matrix) -> Fraction | None:
    """The W of rules: a power of two above every lead of a score over that of a token with a rule; any will do."""
    if stream["operation"] != "Decide":
        return None
    tokens, scores = stream["attributes"]["tokens"], reader.output(stream["inputs"][0])
    found = [_tight(reader.world, _score(scores, row), 3) for row in range(scores[0][0].shape[0])]
    lead = max(hi for _, hi in found) - min(found[t][0] for t in tokens)
    weight = ONE
    while weight <= lead:
        weight *= 2
    read = _score([(head, lanes)], tokens[0])
    for _ in range(_MOST_WEIGHTS):
        if reader.same(_score(reader.output(reader.data["output"], weight), tokens[0]), read):
            return weight
        weight *= 2
    raise Unproved(f"no power of two from {weight / 2**_MOST_WEIGHTS} on is shown to be the weight of the rules")


def _same_matrices(left: list[tuple[Matrix, Lanes]], right: list[tuple[Matrix, Lanes]]) -> bool:
    """Whether two sums of matrix · lanes agree entry by entry, proportional lanes taken together."""
    basis: dict[tuple, int] = {}
    sides = []
    for side in (left, right):
        rows, cols, data = [], [], []
        for matrix, lanes in side:
            place, scale = np.zeros(len(lanes), np.int64), np.zeros(len(lanes))
            for i in set(matrix.cols.tolist()):
                if lanes[i].zero:
                    continue
                factor, key = _proportion(lanes[i])
                place[i], scale[i] = basis.setdefault(key, len(basis)), float(factor)
                if Fraction(scale[i]) != factor:
                    return False
            rows.append(matrix.rows)
            cols.append(place[matrix.cols])
            data.append(matrix.data * scale[matrix.cols])
        sides.append((np.concatenate(rows), np.concatenate(cols), np.concatenate(data)))
    width = max(len(basis), 1)
    places = np.concatenate([s[0] * width + s[1] for s in sides])
    signed = np.concatenate([sides[0][2], -sides[1][2]])
    if np.abs(signed).max(initial=0) >= 2.0**50 or (signed * 2.0**20 % 1).any():
        return False
    distinct, at = np.unique(places, return_inverse=True)
    return not np.bincount(at.reshape(-1), weights=signed, minlength=len(distinct)).any()


def _proportion(lane: Value) -> tuple[Fraction, tuple]:
    factor, shape = (lane.const, constant(1)) if lane.constant else normalised(lane)
    return factor, shape.key


def compare(world: World, data: dict, lanes: Lanes, head: Matrix) -> str | None:
    """Why the scores are not shown to be the circuit's, or None where they are."""
    world.format = EXACT
    try:
        return scores_differ(Reader(world, data), lanes, head, world.language.tokens)
    except (Unproved, Rejected, TooLarge) as reason:
        return str(reason)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as reason:
        return f"circuit.json is not a circuit: {reason!r}"
