"""What the rules of operations ask of values before they apply: flags are 0 or 1, numbers are whole."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from verify.checker.values.bent import product, relu
from verify.checker.values.bounds import bounds, largest, values_of
from verify.checker.values.values import Value, World, combine, constant
from verify.checker.values.windows import is_window

ONE = Fraction(1)
Lanes = list[Value]


class Unproved(Exception):
    """A step from the circuit as written to the weights that no rule covers.

    value, kind: the operand of which something was to be proved, that it is a "flag" or "whole"; None where there is no
    one operand. at: the stream that was read.
    """

    at: int | None = None

    def __init__(self, reason: str, value: Value | None = None, kind: str = ""):
        super().__init__(reason)
        self.value, self.kind = value, kind


class Unread(Value):
    """A lane that no rule reads. Where the scores are made of it, and it is looked at, the circuit stays `Unproved`."""

    def __init__(self, reason: Unproved):
        self.reason = reason

    def __getattr__(self, name: str) -> Any:  # of all that a value has
        raise self.reason


def no_rule(operation: str) -> Unproved:
    """Of an operation that models compute and the checker does not know."""
    return Unproved(f"computed, but no proof rule for {operation}")


def place(streams: list[dict], i: int, lane: int | None = None) -> str:
    """A stream by its name, else by its operation, and where it was written: `stack[2] (dyck2.py:14)`."""
    held = streams[i]
    name, source = held.get("name"), held.get("source")
    told = (name or f"the {held['operation']}") + ("" if lane is None else f"[{lane}]")
    if isinstance(source, list) and len(source) == 2:
        return f"{told} ({source[0]}:{source[1]})"
    return told if name else f"{told} (stream {i})"


class Conditions:
    """Conditions that are proved of the values of a world, `Unproved` where they are not.

    bent: whether `and` is read as a bent sum or as a product, which mean the same; chosen: whether that made a
    difference.
    """

    def __init__(self, world: World, bent: bool = True):
        self.world, self.bent = world, bent
        self.chosen = False

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
        """a and b, flags both; of a lane that no rule reads that is its declared type, and a flag of 0 leaves nothing
        of it.
        """
        for value in (v for v in (a, b) if not isinstance(v, Unread)):
            self.flag(value, "an operand of `and`")
        if any(not isinstance(flag, Unread) and flag.zero for flag in (a, b)):
            return constant(0)
        if a.constant or b.constant:
            return product(self.world, a, b)
        if not (is_window(self.world, a) and is_window(self.world, b)):
            self.chosen = True
            if not self.bent:
                return product(self.world, a, b)
        return relu(self.world, combine([(ONE, a), (ONE, b)], -ONE))

    def masked(self, x: Value, flag: Value) -> Value:
        """x where the flag is 1, 0 where it is at most 0: relu(±x + M(flag − 1)), M ≥ |x| a power of two."""
        if x.zero:
            return x
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
