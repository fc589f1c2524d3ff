"""One rule for each operation of the language: what a circuit's stream holds, as values (part C).

Each rule is an identity of exact arithmetic. Its side conditions (flags are 0 or 1, numbers are whole) are proved of
the values, never taken from the declared types; where one cannot be proved the circuit stays `Unproved`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

import numpy as np

from verify.checker.arithmetic.memories import memory
from verify.checker.arithmetic.running import counted, running_sum
from verify.checker.files import Matrix
from verify.checker.meaning.conditions import ONE, Conditions, Lanes, Unproved, Unread, no_rule
from verify.checker.meaning.entries import read_matrix, read_number
from verify.checker.values.bent import product, relu
from verify.checker.values.bounds import bounds, values_of
from verify.checker.values.effort import spend
from verify.checker.values.latches import latch
from verify.checker.values.machines import machine, of_states
from verify.checker.values.values import TOKEN, Value, World, combine, constant, later, of_letters

_MOST_OF_CODES = 1 << 24  # numbers: of all words that are decoded, and of the codes of all letters
_LETTERS_OF_A_STEP = 1 << 12  # that a table is made for in the time of a step of a search


def _readable(function: Callable[..., Value], *lanes: Value) -> Value:
    """The function of these lanes; unread where one of them is."""
    return next((lane for lane in lanes if isinstance(lane, Unread)), None) or function(*lanes)


def _times(matrix: Matrix, lanes: Lanes) -> list[list[tuple[Fraction, Value]]]:
    return [[(w, lanes[c]) for c, w in matrix.row(r)] for r in range(matrix.shape[0])]


def _embed(r: Conditions, s: dict) -> Lanes:
    table = read_matrix(s["attributes"]["table"]).T
    return [of_letters(table.dense_row(i)) for i in range(table.shape[0])]


def maps(s: dict, inputs: Sequence[Lanes]) -> list[tuple[Matrix, Lanes]]:
    """The matrices of a linear map, all as high, each with the lanes that it reads: all of its operand's."""
    parts = [(read_matrix(m), lanes) for m, lanes in zip(s["attributes"]["matrices"], inputs, strict=True)]
    if any(matrix.shape != (parts[0][0].shape[0], len(lanes)) for matrix, lanes in parts):
        raise Unproved("a matrix has another width than what it reads, or another height than those beside it")
    return parts


def _linear(r: Conditions, s: dict, *inputs: Lanes) -> Lanes:
    parts = [_times(matrix, lanes) for matrix, lanes in maps(s, inputs)]
    rows = ([term for part in parts for term in part[i]] for i in range(len(parts[0])))
    return [_readable(lambda *_, row=row: combine(row), *(lane for _, lane in row)) for row in rows]


def _fading(r: Conditions, s: dict, value: Lanes, *others: Lanes) -> Lanes:
    """Real numbers: nothing is proved of them, nor of what they stand beside."""
    return [Unread(no_rule(s["operation"])) for _ in value]


def _lti(r: Conditions, s: dict, x: Lanes) -> Lanes:
    taps = [read_number(k) for k in s["attributes"]["kernel"]]
    return [combine([(w, later(r.world, v, k)) for k, w in enumerate(taps) if w]) for v in x]


def _clip(r: Conditions, s: dict, x: Lanes) -> Lanes:
    lo, hi = (Fraction(s["attributes"][name]) for name in ("lo", "hi"))
    bent = lambda v, k: relu(r.world, combine([(ONE, v)], -k))
    return [combine([(ONE, bent(v, lo)), (-ONE, bent(v, hi))], lo) for v in x]


def _compare(r: Conditions, s: dict, a: Lanes, b: Lanes) -> Lanes:
    weights = {">": (1, 0, 0), "<": (0, 1, 0), ">=": (0, -1, 1), "<=": (-1, 0, 1), "==": (-1, -1, 1), "!=": (1, 1, 0)}
    up, down, const = map(Fraction, weights[s["attributes"]["relation"]])
    difference = lambda x, y: combine([(ONE, x), (-ONE, y)])
    return r.pair(
        lambda x, y: combine([(up, r.above(difference(x, y))), (down, r.above(difference(y, x)))], const), a, b
    )


def _select(r: Conditions, s: dict, condition: Lanes, yes: Lanes, no: Lanes) -> Lanes:
    found = []
    for i, (y, n) in enumerate(zip(yes, no, strict=True)):
        flag = r.flag(condition[i % len(condition)], "a condition")
        found.append(combine([(ONE, n), (ONE, r.masked(combine([(ONE, y), (-ONE, n)]), flag))]))
    return found


def _pointwise(r: Conditions, x: Value, function: Callable[[int], int]) -> Value:
    """A function of one whole number, as breakpoints of relu(x − j) between its bounds."""
    lo, hi = (int(b) for b in bounds(r.world, r.whole(x, "a looked up number")))
    if hi - lo > 4096:
        raise Unproved(f"a function of a number of {hi - lo} values")
    return _bent(r, x, lo, [function(j) for j in range(lo, hi + 1)] + [function(hi)])


def _bent(r: Conditions, x: Value, first: int, y: list[int]) -> Value:
    """y[0] up to `first`, then from one of y to the next, and y[-1] from there on."""
    slopes = [0, *(b - a for a, b in zip(y, y[1:], strict=False)), 0]
    breakpoints = [(j + first, b - a) for j, (a, b) in enumerate(zip(slopes, slopes[1:], strict=False)) if b != a]
    ramps = [(Fraction(w), relu(r.world, combine([(ONE, x)], Fraction(-j)))) for j, w in breakpoints]
    return combine(ramps, Fraction(y[0]))


def _lookup(r: Conditions, s: dict, x: Lanes) -> Lanes:
    table = [int(v) for v in s["attributes"]["table"]]
    if s["attributes"]["symbols"]:
        return [combine([(Fraction(w), v) for w, v in zip(table, x, strict=True)])]
    return [_bent(r, r.whole(x[0], "a looked up number"), -1, [0, *table, 0])]


def _decode(r: Conditions, s: dict, x: Lanes) -> Lanes:
    """Functions of one letter only: the definition, letter by letter."""
    words, count = read_matrix(s["attributes"]["words"]), r.world.language.tokens
    if max(words.shape[0] * words.shape[1], count * words.shape[1]) > _MOST_OF_CODES:
        told = f"{words.shape[0]} words of {words.shape[1]} numbers, over {count} letters"
        raise Unproved(f"{told}, of which no more than {_MOST_OF_CODES} numbers are read")
    keys = {k for v in x for k in v.terms}
    if len(keys) != 1 or next(iter(keys))[0] != TOKEN:
        raise Unproved("a decoded code that is no function of one letter")
    (key,) = keys
    tables = [t.affine(ONE, v.const) for v in x for t in v.tables.values()]
    if len(tables) < len(x) or any(t.start != (0,) * key[1] for t in tables):
        raise Unproved("a decoded code that is constant, or not 0 before the start")
    if not np.isin(words.data, (-1.0, 1.0)).all() or len(set(np.bincount(words.rows, minlength=words.shape[0]))) > 1:
        raise Unproved("decoded words of different lengths, or of other numbers than −1, 0 and 1")
    if not len(words.data):
        raise Unproved("a decoded word of zeros, which stands before the start too")
    codes = np.stack([t.dense() for t in tables], axis=1) + 0.0
    full = [(words.dense_row(i) + 0.0).tobytes() for i in range(words.shape[0])]
    spend(len(full) * (1 + count // _LETTERS_OF_A_STEP))
    letters: dict[bytes, list[int]] = {}
    for letter, code in enumerate(codes):
        letters.setdefault(code.tobytes(), []).append(letter)
    return [later(r.world, of_letters(_of_these(letters.get(word, []), len(codes))), key[1]) for word in full]


def _of_these(letters: list[int], count: int) -> np.ndarray:
    """1 at some letters, 0 at others."""
    found = np.zeros(count)
    found[letters] = 1.0
    return found


def _memory(r: Conditions, s: dict, value: Lanes, key: Lanes, query: Lanes, *when: Lanes) -> Lanes:
    """Of policy once the sum: that is what it holds where no slot is written twice, which the verdict says beside it
    (`given`) and the compiler asks.
    """
    policy, world = s["attributes"]["policy"], r.world
    if policy not in ("sum", "once", "first", "last") or len(when) > 1:
        raise Unproved(f"a memory of the policy {policy!r} with {3 + len(when)} operands")
    if read_number(s["attributes"].get("skip", 0)):
        raise Unproved("a memory that adds what it stores")
    if policy == "first":
        return _first(r, value, key, query, when)
    if policy == "last":
        keys = [product(world, k, r.flag(when[0][0], "a condition")) for k in key] if when else key
        flags = [r.flag(k, "a key") for k in keys]
        return [
            combine([(ONE, product(world, latch(world, v, f), q)) for f, q in zip(flags, query, strict=True)])
            for v in value
        ]
    flag = _condition(r, when)
    return [_summed(world, v, [product(world, k, flag) for k in key], query) for v in value]


def _condition(r: Conditions, when: Sequence[Lanes]) -> Value:
    (flag,) = when[0] if when else [constant(1)]
    return r.flag(flag, "a condition")


def _summed(world: World, value: Value, keys: Lanes, query: Lanes) -> Value:
    if len(keys) == 1:
        return product(world, running_sum(world, product(world, value, keys[0]), "a memory"), query[0])
    return memory(world, value, list(zip(keys, query, strict=True)), "a memory")


def _first(r: Conditions, value: Lanes, key: Lanes, query: Lanes, when: Sequence[Lanes]) -> Lanes:
    """The lemma of first writes: with one-hot keys the first write is where 2w − n is 1, n the writes so far under
    the present key.
    """
    world = r.world
    r.flag(combine([(ONE, k) for k in key]), "the sum of the keys")
    for k in key:
        r.flag(k, "a key")
    write = _condition(r, when)
    before = _summed(world, write, key, key)
    first = combine([(Fraction(2), write), (-ONE, before)])
    stored = [_stored(r, v, first) for v in value]
    return [_summed(world, v, key, query) for v in stored]


def _stored(r: Conditions, value: Value, flag: Value) -> Value:
    """value · flag; codes of ±1 and 0 as 2 · positive part − size, which are masked alone (a mask is linear)."""
    if bounds(r.world, value)[0] >= 0 or not set(values_of(r.world, value) or (2,)) <= {-1, 0, 1}:
        return r.masked(value, flag)
    positive, negative = relu(r.world, value), relu(r.world, combine([(-ONE, value)]))
    size = combine([(ONE, positive), (ONE, negative)])
    return combine([(Fraction(2), r.masked(positive, flag)), (-ONE, r.masked(size, flag))])


def _running_max(r: Conditions, s: dict, value: Lanes, when: Lanes) -> Lanes:
    """0 before anything was seen; then the least value there is, and 1 for each level above it that was reached."""
    return [_largest_so_far(r, v, when[i % len(when)]) for i, v in enumerate(value)]


def _largest_so_far(r: Conditions, value: Value, when: Value) -> Value:
    lo, hi = bounds(r.world, r.whole(value, "a largest number"))
    if hi - lo > 256:
        raise Unproved(f"a running maximum of numbers from {lo} to {hi}")
    lo = min(lo, Fraction(0)) if lo >= 0 else lo
    reached = [r.both(r.above(combine([(ONE, value)], Fraction(-v))), when) for v in range(int(lo), int(hi))]
    levels = [(ONE, latch(r.world, constant(1), flag)) for flag in reached]
    return combine([(lo, latch(r.world, constant(1), r.flag(when, "a condition"))), *levels])


def _count(r: Conditions, s: dict, when: Lanes, reset: Lanes) -> Lanes:
    up, down = r.flag(when[0], "what is counted"), r.flag(reset[0], "a reset")
    drive = relu(r.world, combine([(ONE, up), (-ONE, down)]))
    return [running_sum(r.world, drive, "a count") if down.constant else counted(r.world, drive, down, "a count")]


def _permuted(r: Conditions, s: dict, swaps: Lanes, *reset: Lanes) -> Lanes:
    """A machine whose states are the places, −1 where the state is on none yet (lemma of moved states). Of several
    swaps at once, the first pair comes first; a reset comes last.
    """
    n, pairs, start = (s["attributes"][name] for name in ("n", "pairs", "start"))
    if any(len(set(pair)) != 2 or max(pair) >= n for pair in pairs) or (start or 0) >= n:
        raise Unproved("a permuted state that names places that it has not, or a swap of other than two")
    if len(swaps) != len(pairs) or any(len(places) != n for places in reset) or len(reset) > 1:
        raise Unproved("a permuted state whose swaps or places are not as many as it names")
    flags = [r.flag(flag, "a swap") for flag in swaps] + [r.flag(flag, "a reset") for part in reset for flag in part]

    def step(place: Hashable, on: frozenset[int]) -> Hashable:
        put = [i - len(pairs) for i in sorted(on) if i >= len(pairs)]
        if len(put) > 1:
            raise Unproved("a reset to two places at once")
        if put:
            return put[0]
        for a, b in (pairs[i] for i in sorted(on)):
            place = b if place == a else a if place == b else place
        return place

    root, states = machine(r.world, flags, -1 if start is None else start, step, "a permuted state")
    return [of_states(root, [Fraction(int(place == m)) for place in states]) for m in range(n)]


def _latches(r: Conditions, s: dict, value: Lanes, when: Lanes) -> Lanes:
    kept = lambda v, f: latch(r.world, v, r.flag(f, "a condition"))
    return [_readable(kept, v, f) for f in when for v in value]


def _sum_where(r: Conditions, s: dict, value: Lanes, when: Lanes) -> Lanes:
    added = lambda v, f: running_sum(r.world, product(r.world, v, r.flag(f, "a condition")), "a sum")
    return [_readable(added, v, f) for f in when for v in value]


def _one_hot_of(r: Conditions, s: dict, x: Lanes) -> Lanes:
    number = r.whole(x[0], "a number that selects")
    return [_bent(r, number, k - 1, [0, 1, 0]) for k in range(s["attributes"]["n"])]


def _divided(r: Conditions, s: dict, x: Lanes) -> Lanes:
    divisor, rest = int(s["attributes"]["divisor"]), s["operation"] == "Modulo"
    return [_pointwise(r, v, lambda j: j % divisor if rest else j // divisor) for v in x]


def _scaled_sum(r: Conditions, s: dict, value: Lanes, weight: Lanes, gate: Lanes) -> Lanes:
    driven = r.pair(lambda v, w: running_sum(r.world, product(r.world, v, w), "a sum"), value, weight)
    return r.pair(lambda v, g: product(r.world, v, g), driven, gate)


def _difference(a: Value, b: Value) -> Value:
    return combine([(ONE, a), (-ONE, b)])


def _or(r: Conditions, s: dict, a: Lanes, b: Lanes) -> Lanes:
    neither = lambda x, y: relu(r.world, combine([(-ONE, r.flag(x, "a flag")), (-ONE, r.flag(y, "a flag"))], ONE))
    return [combine([(-ONE, v)], ONE) for v in r.pair(neither, a, b)]


RULES: dict[str, Callable] = {
    "Embed": _embed,
    "Constant": lambda r, s: [constant(read_number(v)) for v in s["attributes"]["values"]],
    "Position": lambda r, s: [running_sum(r.world, constant(1), "the position")],
    "Linear": _linear,
    "Emit": _linear,
    "Shift": lambda r, s, x: [later(r.world, v, s["attributes"]["k"]) for v in x],
    "Lti": _lti,
    "Relu": lambda r, s, x: [relu(r.world, v) for v in x],
    "Clip": _clip,
    "Compare": _compare,
    "SameSymbol": lambda r, s, a, b: [combine([(ONE, v) for v in r.pair(r.both, a, b)])],
    "And": lambda r, s, a, b: r.pair(r.both, a, b),
    "Or": _or,
    "Not": lambda r, s, a: [combine([(-ONE, r.flag(v, "an operand of `not`"))], ONE) for v in a],
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
    "MemoryRead": _memory,
    "Count": _count,
    "Permute": _permuted,
    "RunningMax": _running_max,
    "FadingSum": _fading,
    "SelectiveSum": _fading,
    "FadingMemory": _fading,
}
EACH = {
    *("Relu", "Clip", "Min", "Max", "Compare", "Select", "And", "Or", "Not", "FloorDivide", "Modulo", "Multiply"),
    *("ScaledSum", "Cumsum", "RunningMax", "Lti", "Shift"),
}
"""Operations that make lane i of lane i of each operand, or of the only lane of one."""
