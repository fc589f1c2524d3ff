"""The circuit as written: circuit.json read into values, stream by stream, by the rules of `rules.py` (part C)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from verify.checker.bent import product, relu
from verify.checker.bounds import bounds, largest, values_of
from verify.checker.cases import zero_at_all_edges
from verify.checker.entries import read_matrix
from verify.checker.files import Matrix
from verify.checker.meaning import Meaning
from verify.checker.quotient import quotient
from verify.checker.rules import EACH, ONE, RULES, Lanes, Unproved, Unread, maps
from verify.checker.values import Value, World, combine, constant, kept
from verify.checker.windows import is_window

_MOST_LANES = 1 << 16
FEW_LETTERS = 64


class Reader:
    """The streams of a circuit as lanes of values.

    bend: whether `and` is read as a bent sum or as a product, which mean the same; chosen: whether that made a
    difference. walks: whether what walks leave counts as well: edges by themselves, and normal forms made for it.
    """

    def __init__(self, world: World, data: dict, bend: bool = True, walks: bool = True):
        self.world, self.data, self.bend, self.walks = world, data, bend, walks
        self.chosen = False
        self._forms = _forms_of(world)
        self._lanes: dict[int, Lanes] = {}
        self.made: dict[int, tuple[int, int]] = {}  # by stream: the first root that came with it, and the next one

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
                    raise Unproved(f"computed, but no proof rule for {stream['operation']}")
                first = len(self.world.roots)
                try:
                    self._lanes[j] = self._read(rule, stream, [self._lanes[k] for k in stream["inputs"]])
                except Unproved as reason:
                    reason.at = j
                    raise
                self.made[j] = first, len(self.world.roots)
                count = len(self._lanes[j])
                if not count == self._width(stream, count) <= _MOST_LANES:
                    raise Unproved(f"stream {j} has {count} lanes, by its type {stream.get('type')}")
        return self._lanes[i]

    def _read(self, rule: Callable[..., Lanes], stream: dict, inputs: list[Lanes]) -> Lanes:
        """The lanes of a stream by its rule; one by one where some operand has lanes that no rule reads."""
        width = max(map(len, inputs), default=0)
        unread = any(isinstance(lane, Unread) for lanes in inputs for lane in lanes)
        if not unread or stream["operation"] not in EACH or any(len(lanes) not in (1, width) for lanes in inputs):
            return rule(self, stream, *inputs)
        found: Lanes = []
        for i in range(width):
            try:
                found += rule(self, stream, *([lanes[i % len(lanes)]] for lanes in inputs))
            except Unproved as reason:
                found.append(Unread(str(reason)))
        return found

    def _width(self, stream: dict, count: int) -> int:
        """The lanes of the type that a stream declares, as all do in files; else as many as there are."""
        kind = stream.get("type", {"kind": "Int", "width": count})
        if "book" in kind:
            return read_matrix(self.data["codebooks"][kind["book"]]).shape[1]
        return kind["n"] if kind["kind"] == "OneHot" else kind["width"]

    def inputs(self, i: int) -> list[int]:
        """The streams that stream i reads."""
        return self.data["streams"][i]["inputs"]

    def output(self, place: int, weight: Fraction | None = None) -> list[tuple[Matrix, Lanes]]:
        """The scores of a stream as a sum of matrix · lanes, without one value for each letter.

        weight: W of its rules; a rule adds 2^(number of rules behind it) · W to the score of its token.
        """
        stream = self.data["streams"][place]
        if stream["operation"] == "Decide":
            parts, tokens = self.output(self.inputs(place)[0]), stream["attributes"]["tokens"]
            shape = (parts[0][0].shape[0], 1)
            for i, (token, flag) in enumerate(zip(tokens, stream["inputs"][1:], strict=True)):
                (lane,) = self.lanes(flag)
                size = np.array([float((weight or ONE) * 2 ** (len(tokens) - 1 - i))])
                rule = Matrix(shape, np.array([token]), np.array([0]), size)
                parts.append((rule, [self.flag(lane, "the condition of a rule")]))
            return parts
        if stream["operation"] in ("Linear", "Emit"):
            return maps(stream, [self.lanes(k) for k in stream["inputs"]])
        lanes = self.lanes(place)
        places = np.arange(len(lanes))
        return [(Matrix((len(lanes), len(lanes)), places, places, np.ones(len(lanes))), lanes)]

    def flag(self, value: Value, what: str) -> Value:
        values = values_of(self.world, value)
        if values is None or not set(values) <= {0, 1}:
            lo, hi = bounds(self.world, value)
            if not (lo >= 0 and hi <= 1 and value.unit >= 0):
                raise Unproved(f"{what} is not proved to be 0 or 1", value, "flag")
        return value

    def whole(self, value: Value, what: str) -> Value:
        if value.unit < 0:
            raise Unproved(f"{what} is not proved to be whole", value, "whole")
        return value

    def above(self, x: Value) -> Value:
        """[x > 0] of a multiple of 2^e, which is a whole number of them."""
        if x.unit < 0:
            x = combine([(Fraction(2) ** -x.unit, x)])
        return combine([(ONE, relu(self.world, x)), (-ONE, relu(self.world, combine([(ONE, x)], -ONE)))])

    def both(self, a: Value, b: Value) -> Value:
        if any(not isinstance(flag, Unread) and flag.zero for flag in (a, b)):
            return constant(0)
        if a.constant or b.constant:
            return product(self.world, a, b)
        a, b = self.flag(a, "an operand of `and`"), self.flag(b, "an operand of `and`")
        if not (is_window(self.world, a) and is_window(self.world, b)):
            self.chosen = True
            if not self.bend:
                return product(self.world, a, b)
        return relu(self.world, combine([(ONE, a), (ONE, b)], -ONE))

    def zero(self, value: Value) -> bool:
        """Whether the value is shown to be 0 throughout every sequence."""
        world, forms = self.world, self._forms
        if world.language.tokens > FEW_LETTERS:
            world, value = quotient(self.world, value)
            forms = _forms_of(world)
        vanishes = lambda v: v.zero or any(m.zero(v) for m in forms if not m.walks)
        if vanishes(value) or self.walks and zero_at_all_edges(world, value, vanishes):
            return True
        return self.walks and any(m.zero(value) for m in forms if m.walks)

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


@kept
def _forms_of(world: World) -> list[Meaning]:
    """The normal forms of a world, which all readings of a circuit share: what one of them found, none finds again."""
    return normal_forms(world)


def normal_forms(world: World) -> list[Meaning]:
    """The normal forms that are tried, the cheapest first."""
    return [Meaning(world, bends, walks) for walks in (False, True) for bends in (False, True)]
