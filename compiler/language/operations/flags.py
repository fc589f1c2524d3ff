"""Comparisons and logic of one position."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from compiler.language.kinds import Kind, lane_by_lane, of_kinds
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import LaneWise, Sees
from compiler.language.operations.wording import grouped, needs, same_width
from compiler.language.types import Bool, OneHot, Type
from compiler.lattice.domain import Domain, raised
from compiler.lattice.intervals import Interval, Value, hull

_COMPARISONS = {
    ">": np.greater,
    ">=": np.greater_equal,
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


@dataclass(frozen=True)
class Compare(Operation):
    """Whether a ∘ b, lane by lane, for numbers that cannot come too near to each other without being equal.

    Integers and other multiples of a common step cannot; of real numbers it must follow from what is declared.
    """

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    sees: ClassVar[Sees] = Sees.POINTWISE

    relation: str

    def __post_init__(self) -> None:
        if self.relation not in _COMPARISONS:
            raise ValueError(f"relation {self.relation!r:.60} is unknown; it must be one of {', '.join(_COMPARISONS)}")

    @property
    def symbol(self) -> str:
        return f"compare[{self.relation}]"

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} {self.relation} {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        return Bool(a.width)

    def problems(self, a: Type, b: Type) -> list[str]:
        return same_width(a, b)

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.typed(Bool(stream.width))

    def step(self, memory: Any, counted: int, a: Value, b: Value) -> tuple[Value | None, Any]:
        return tuple(_compared(self.relation, p, q) for p, q in zip(a, b, strict=True)), None

    def evaluate(self, a: Array, b: Array) -> Array:
        return _COMPARISONS[self.relation](a, b).astype(np.int64).astype(a.dtype)


@dataclass(frozen=True)
class SameSymbol(Operation):
    """1 where two OneHots of the same alternatives are both present and equal: Σ_i a_i·b_i."""

    followed: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} == {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        return Bool()

    def problems(self, a: Type, b: Type) -> list[str]:
        return needs(OneHot, "a OneHot", a, b) + same_width(a, b)

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.typed(Bool(stream.width))

    def evaluate(self, a: Array, b: Array) -> Array:
        return (a * b).sum(axis=-1, keepdims=True)


@dataclass(frozen=True)
class And(Operation):
    """Both flags; a single flag is shared by all lanes of the other operand. Some of a one-hot is one-hot."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    conjunction: ClassVar[bool] = True
    vanishes: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} & {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        width = max(a.width, b.width)
        some_of_one_hot = any(isinstance(t, OneHot) and t.width == width for t in (a, b))
        return OneHot(width) if some_of_one_hot else Bool(width)

    def problems(self, a: Type, b: Type) -> list[str]:
        found = needs((Bool, OneHot), "a Bool or a OneHot", a, b)
        return found if 1 in (a.width, b.width) else found + same_width(a, b)

    def domain(self, stream: Operand, known: Known) -> Domain:
        operands = [known.of(s) for s in stream.inputs]
        widest = max(range(2), key=lambda i: stream.inputs[i].width)
        flags = known.typed(Bool(stream.width))
        totals = np.minimum(operands[0].totals, operands[1].totals)
        if any(map(_at_one_count, stream.inputs, stream.inputs[::-1])):
            totals = np.minimum(totals, 1)
        return replace(flags, l1=min(flags.l1, operands[widest].l1), totals=np.minimum(flags.totals, totals))

    def step(self, memory: Any, counted: int, a: Value, b: Value) -> tuple[Value | None, Any]:
        width = max(len(a), len(b))
        a, b = (v * width if len(v) == 1 else v for v in (a, b))
        return tuple((min(p[0], q[0]), min(p[1], q[1])) for p, q in zip(a, b, strict=True)), None

    def evaluate(self, a: Array, b: Array) -> Array:
        return a * b


@dataclass(frozen=True)
class Or(Operation):
    """Either flag, lane by lane."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def written(self, a: str, b: str) -> str:
        return f"{grouped(a)} | {grouped(b)}"

    def result_type(self, a: Type, b: Type) -> Type:
        return Bool(a.width)

    def problems(self, a: Type, b: Type) -> list[str]:
        return needs((Bool, OneHot), "a Bool or a OneHot", a, b) + same_width(a, b)

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.typed(Bool(stream.width))

    def step(self, memory: Any, counted: int, a: Value, b: Value) -> tuple[Value | None, Any]:
        return tuple((max(p[0], q[0]), max(p[1], q[1])) for p, q in zip(a, b, strict=True)), None

    def evaluate(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)


@dataclass(frozen=True)
class Not(Operation):
    """1 − flag at every position of the sequence."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    sees: ClassVar[Sees] = Sees.POINTWISE

    def written(self, a: str) -> str:
        return f"~{grouped(a)}"

    def result_type(self, a: Type) -> Type:
        return Bool(a.width)

    def problems(self, a: Type) -> list[str]:
        return needs((Bool, OneHot), "a Bool or a OneHot", a)

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.typed(Bool(stream.width))

    def step(self, memory: Any, counted: int, a: Value) -> tuple[Value | None, Any]:
        return tuple((1 - hi, 1 - lo) for lo, hi in a), None

    def evaluate(self, a: Array) -> Array:
        return 1 - a


@dataclass(frozen=True)
class Select(Operation):
    """The second input where the condition holds, else the third."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    sees: ClassVar[Sees] = Sees.POINTWISE
    zero_preserving: ClassVar[bool] = True

    def result_type(self, condition: Type, yes: Type, no: Type) -> Type:
        flags = (Bool, OneHot)
        if isinstance(yes, flags) and isinstance(no, flags):
            whole = isinstance(yes, OneHot) and isinstance(no, OneHot) and condition.width == 1
            return OneHot(yes.width) if whole else Bool(yes.width)
        return of_kinds(lane_by_lane(yes, no, most=Kind.FLAG))

    def problems(self, condition: Type, yes: Type, no: Type) -> list[str]:
        found = needs(Bool, "a Bool condition", condition=condition) + same_width(yes, no)
        if condition.width not in (1, yes.width):
            needed = "one is" if yes.width == 1 else f"1 or {yes.width} are"
            found.append(f"its condition has {condition.width} lanes, and {needed} needed")
        return found

    def domain(self, stream: Operand, known: Known) -> Domain:
        """Either value; with several conditions some lanes may come from each."""
        a, b = (known.of(s) for s in stream.inputs[1:])
        l1 = max(a.l1, b.l1) if stream.inputs[0].width == 1 else a.l1 + b.l1
        domain = known.lanes(np.minimum(a.units, b.units), np.minimum(a.low, b.low), np.maximum(a.high, b.high), l1)
        return replace(domain, totals=raised(a.totals + b.totals, min(a.grain, b.grain), 2))

    def step(self, memory: Any, counted: int, condition: Value, yes: Value, no: Value) -> tuple[Value | None, Any]:
        condition = condition * len(yes) if len(condition) == 1 else condition
        picked = zip(condition, yes, no, strict=True)
        return tuple(y if c == (1, 1) else n if c == (0, 0) else hull(y, n) for c, y, n in picked), None

    def evaluate(self, condition: Array, yes: Array, no: Array) -> Array:
        return no + condition * (yes - no)


def _at_one_count(flag: Operand, equal: Operand) -> bool:
    """Whether the second says that the first held k times so far, lane by lane: then both hold at most once."""
    if not isinstance(equal.operation, Compare) or equal.operation.relation != "==":
        return False
    counts = [s for s in equal.inputs if s.operation.accumulates and s.inputs[0] is flag]
    return bool(counts) and any(s.operation.constants is not None for s in equal.inputs)


def _compared(relation: str, a: Interval, b: Interval) -> Interval:
    """The flag (certainly, possibly)."""
    if relation in (">", ">="):
        return _compared({">": "<", ">=": "<="}[relation], b, a)
    if relation == "<":
        return int(a[1] < b[0]), int(a[0] < b[1])
    if relation == "<=":
        return int(a[1] <= b[0]), int(a[0] <= b[1])
    equal = (int(a[0] == a[1] == b[0] == b[1]), int(a[0] <= b[1] and b[0] <= a[1]))
    return equal if relation == "==" else (1 - equal[1], 1 - equal[0])
