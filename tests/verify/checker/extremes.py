"""Random circuits of extreme numbers: what the checker reads and bounds, beside what circuit.json says, in Fractions.

Numbers have units from 2^-600 to 2^600, odd factors of 30 bits, and near neighbours, so that float64 would round or
lose what decides. Each stream that the checker reads is held to its definition on all short words: its value, its
bounds at all and at each edge, its total, and that it is 0 or equal to another stream where the checker shows that.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product

import numpy as np

from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.memories import read_bound
from verify.checker.arithmetic.totals import majorants, over_time
from verify.checker.formats import EXACT, Rejected
from verify.checker.meaning.circuit import Reader
from verify.checker.meaning.conditions import Unproved
from verify.checker.values.bounds import along, bounds, values_of
from verify.checker.values.language import Edge, Language
from verify.checker.values.values import TOKEN, Value, World, combine, constant
from verify.checker.values.windows import TooLarge

LETTERS, LENGTH = 2, 3
_KINDS = ["Linear", "Linear", "Linear", "Relu", "Multiply", "Shift", "Cumsum", "Compare", "Clip", "Max"]
_REFUSED = (Rejected, Unproved, TooLarge, ArithmeticError, ValueError)
Lane = list[list[Fraction]]  # (words, positions)


def circuit(rng: random.Random) -> dict:
    """Streams of one lane each, as circuit.json has them; the last one reads what stands before it."""
    numbers = _numbers(rng)
    pick = lambda: rng.choice(numbers)
    streams: list[dict] = []

    def add(operation: str, *inputs: int, **attributes: object) -> None:
        kind = {"kind": "Int", "lo": None, "hi": None, "width": 1}
        streams.append({"operation": operation, "attributes": attributes, "inputs": list(inputs), "type": kind})

    for _ in range(2):
        rows = [[[0, pick()]] if rng.random() < 0.7 else [] for _ in range(LETTERS)]
        add("Embed", table={"shape": [LETTERS, 1], "rows": rows})
    add("Shift", rng.randrange(2), k=1)
    add("Constant", values=[pick()])
    for _ in range(rng.randint(2, 6)):
        some = lambda: rng.randrange(max(0, len(streams) - 4), len(streams))
        kind = rng.choice(_KINDS)
        if kind == "Linear":
            places = [some() for _ in range(rng.randint(1, 3))]
            matrix = lambda: {"shape": [1, 1], "rows": [[[0, rng.choice([1, 1, -1, pick()])]]]}
            add("Linear", *places, matrices=[matrix() for _ in places])
        elif kind == "Clip":
            add("Clip", some(), **dict(zip(("lo", "hi"), sorted((pick(), pick()), key=Fraction), strict=True)))
        elif kind == "Compare":
            add("Compare", some(), some(), relation=rng.choice([">", "<", ">=", "<=", "==", "!="]))
        else:
            attributes = {"k": rng.randint(1, 2)} if kind == "Shift" else {}
            add(kind, *(some() for _ in range(2 if kind in ("Multiply", "Max") else 1)), **attributes)
    return {"streams": streams, "codebooks": [], "output": len(streams) - 1}


def _numbers(rng: random.Random) -> list[int | str]:
    """A few numbers of one circuit, which have to do with each other."""
    unit = Fraction(2) ** rng.choice([0, 1, 30, 300, 600])
    odd = rng.randrange(2**29, 2**30) | 1
    pool = [Fraction(1), Fraction(odd), Fraction(odd + 2), Fraction(odd * odd), unit, 1 / unit, odd * unit, odd / unit]
    pool += [-Fraction(odd), Fraction(2) ** 52 + 1, -(Fraction(2) ** 53), unit * unit if unit < 2**400 else unit]
    return [x.numerator if x.denominator == 1 else f"{x.numerator}/{x.denominator}" for x in rng.sample(pool, 5)]


def language(rng: random.Random) -> Language:
    """All words, or those that begin with the second letter."""
    every, later = np.ones(LETTERS, dtype=bool), np.arange(LETTERS) > 0
    if rng.random() < 0.5:
        return Language(LETTERS, "any", (Edge("any", "any", every, False, True),), LENGTH)
    return Language(
        LETTERS, "a", (Edge("a", "b", later, False, False), Edge("b", "b", every, rng.random() < 0.5, True)), LENGTH
    )


def texts(known: Language) -> list[tuple[int, ...]]:
    found = []
    for length in range(1, known.length + 1):
        for word in product(range(known.tokens), repeat=length):
            state, used, fits = known.start, set(), True
            for letter in word:
                edge = next((e for e in known.edges if e.source == state and e.letters[letter]), None)
                fits = fits and edge is not None and not (edge.distinct and (letter, state) in used)
                used.add((letter, state))
                state = state if edge is None else edge.target
            found += [word] if fits else []
    return found


def judged(data: dict, known: Language) -> dict[str, int]:
    """What was read and what was refused; AssertionError where the checker says of a stream what is not so."""
    world, words = World(known, EXACT), texts(known)
    reader, truth, told = Reader(world, data), _truth(data, words), {"read": 0, "refused": 0, "equal": 0}
    lanes: dict[int, Value] = {}
    for i in range(len(data["streams"])):
        try:
            (lanes[i],) = reader.lanes(i)
            _hold(world, lanes[i], words, truth[i])
        except _REFUSED:
            lanes.pop(i, None)
            told["refused"] += 1
    told["read"] = len(lanes)
    zero = constant(0)
    for a, b in [*combinations(lanes, 2), *((i, None) for i in lanes)]:
        other = zero if b is None else lanes[b]
        try:
            shown = reader.zero(combine([(Fraction(1), lanes[a]), (Fraction(-1), other)]))
        except _REFUSED:
            continue
        same = all(x == (0 if b is None else y) for x, y in zip(_flat(truth[a]), _flat(truth[a if b is None else b])))
        assert same or not shown, f"streams {a} and {b} are shown to be equal"
        told["equal"] += shown
    return told


def _flat(lane: Lane) -> list[Fraction]:
    return [x for row in lane for x in row]


def _hold(world: World, value: Value, words: list[tuple[int, ...]], truth: Lane) -> None:
    (low, high), here, total = bounds(world, value), along(world, value), over_time(world, value)
    read, above, known = read_bound(world, [value], [Fraction(1)]), majorants(world, value), values_of(world, value)
    for word, row in zip(words, truth, strict=True):
        sequence = Sequence(world, list(word))
        assert [sequence.value(value, t) for t in range(1, len(word) + 1)] == row
        assert all(low <= x <= high and abs(x) <= read for x in row) and sum(map(abs, row)) <= total
        assert known is None or set(row) <= set(known)
        for t, x in enumerate(row, 1):
            edges = _taken(world.language, word, t)
            assert here[0][edges] <= x <= here[1][edges]
            for m in above:
                parts = [Value(Fraction(0), {(TOKEN, lag): f}) for lag, f in m.letters.items()]
                assert abs(x) <= m.const + sum(sequence.value(part, t) for part in parts)


def _taken(known: Language, word: tuple[int, ...], t: int) -> int:
    """The edge that the letter at position t takes: of one state's edges, one takes it."""
    state, at = known.start, 0
    for letter in word[:t]:
        at = next(i for i, e in enumerate(known.edges) if e.source == state and e.letters[letter])
        state = known.edges[at].target
    return at


# What circuit.json says, position by position ----------------------------------------------------------------------


def _truth(data: dict, words: list[tuple[int, ...]]) -> list[Lane]:
    found: list[Lane] = []
    for stream in data["streams"]:
        inputs = [found[k] for k in stream["inputs"]]
        operation = _OPERATIONS[stream["operation"]]
        found.append([operation(stream["attributes"], word, *(x[n] for x in inputs)) for n, word in enumerate(words)])
    return found


def _entry(rows: list) -> Fraction:
    return Fraction(rows[0][1]) if rows else Fraction(0)


def _linear(a: dict, word: tuple, *inputs: list[Fraction]) -> list[Fraction]:
    weights = [_entry(m["rows"][0]) for m in a["matrices"]]
    return [sum((w * x for w, x in zip(weights, row, strict=True)), Fraction(0)) for row in zip(*inputs, strict=True)]


def _running(a: dict, word: tuple, x: list[Fraction]) -> list[Fraction]:
    return [sum(x[: t + 1], Fraction(0)) for t in range(len(x))]


_COMPARED: dict[str, Callable[[Fraction, Fraction], bool]] = {
    ">": lambda x, y: x > y,
    "<": lambda x, y: x < y,
    ">=": lambda x, y: x >= y,
    "<=": lambda x, y: x <= y,
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
}
_OPERATIONS: dict[str, Callable[..., list[Fraction]]] = {
    "Embed": lambda a, word: [_entry(a["table"]["rows"][letter]) for letter in word],
    "Constant": lambda a, word: [Fraction(a["values"][0])] * len(word),
    "Shift": lambda a, word, x: ([Fraction(0)] * a["k"] + x)[: len(word)],
    "Linear": _linear,
    "Relu": lambda a, word, x: [max(v, Fraction(0)) for v in x],
    "Multiply": lambda a, word, x, y: [p * q for p, q in zip(x, y, strict=True)],
    "Max": lambda a, word, x, y: [max(p, q) for p, q in zip(x, y, strict=True)],
    "Clip": lambda a, word, x: [min(max(v, Fraction(a["lo"])), Fraction(a["hi"])) for v in x],
    "Cumsum": _running,
    "Compare": lambda a, word, x, y: [Fraction(_COMPARED[a["relation"]](p, q)) for p, q in zip(x, y, strict=True)],
}
