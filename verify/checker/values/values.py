"""What a number of the model is, as a function of the input sequence: a normal form with exact facts.

A value is  const + the sum of components, each a function of one *root* k positions back. Roots are the letter
(`TOKEN`) and integers: sums that a rectifier bent (`form`), and states and products (`states.py`). Equal roots are
one root, so functions of one root are added and bent exactly, however many lanes carry them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, wraps
from math import ceil, floor, gcd
from typing import Any, TypeVar, cast

import numpy as np

from verify.checker.formats import Format, Rejected, exponent
from verify.checker.values.effort import spend
from verify.checker.values.exact import above, below, number
from verify.checker.values.language import Language
from verify.checker.values.tables import Ramp, Table, digest, ramp_sum, table_sum

Component = Table | Ramp
Along = np.ndarray  # (2, edges): bounds of a number at the positions where a path takes each edge
Facts = tuple[int, int, tuple[int, ...] | None]  # lo, hi and the values, of a root

TOKEN = -1
Key = tuple[int, int]  # (root, lag)
ZERO = Fraction(0)
Function = TypeVar("Function", bound=Callable)
_NOTHING = object()


def kept(function: Function) -> Function:
    """The function, each answer of which is found once: it stands among the facts of the world, the first operand."""

    @wraps(function)
    def answer(world: Any, *operands: Any) -> Any:
        place = function, named(operands)
        found = world.facts.get(place, _NOTHING)  # asked once, for a key of many parts is hashed anew each time
        if found is _NOTHING:
            found = world.facts[place] = function(world, *operands)
        return found

    return cast(Function, answer)


def named(part: Any) -> Any:
    """What tells an operand from others: the key of a value or a component, by itself or within tuples."""
    return tuple(map(named, part)) if isinstance(part, tuple) else getattr(part, "key", part)


@dataclass(frozen=True, eq=False)
class Root:
    """An integer lo ≤ x ≤ hi, one of `values` if these are known.

    kind and parts say what it is: "form" (a sum of components), or an operation on values. exact: up to this x the
    module's number is x itself; beyond it is only known to be at least `exact` (a count that outgrew its format).
    along: bounds at each edge of the input language.
    """

    id: int
    kind: str
    lo: int
    hi: int
    values: tuple[int, ...] | None
    parts: tuple
    exact: int | None
    along: Along

    @cached_property
    def ends(self) -> tuple[list[tuple[int, int]], np.ndarray]:
        """(the distinct bounds along the edges, which of them each edge has)."""
        found, at = np.unique(self.along, axis=1, return_inverse=True)
        return [(floor(lo), ceil(hi)) for lo, hi in found.T.tolist()], at.reshape(-1)


class Value:
    """const + the sum of the components; compared by `key`.

    upto: None where the module's number is this value. Else it is so while its one inexact root x is at most `upto`,
    and beyond it lies on the far side of the value at `upto`, whichever way the component slopes.
    """

    def __init__(self, const: Fraction, terms: Mapping[Key, Component], upto: int | None = None):
        self.const = const
        self.terms = dict(sorted(terms.items()))
        self.upto = upto

    @cached_property
    def key(self) -> str:
        """The same for equal values of one world only, and short: thousands of values are looked up by it."""
        return digest((self.const, tuple((k, c.key) for k, c in self.terms.items())))

    @cached_property
    def unit(self) -> int:
        """The largest e with every value a multiple of 2^e; 0 for the constant 0."""
        return min([c.unit for c in self.terms.values()] + ([exponent(self.const)] if self.const else []), default=0)

    @property
    def constant(self) -> bool:
        return not self.terms

    @property
    def zero(self) -> bool:
        return not self.terms and not self.const

    @cached_property
    def normalised(self) -> tuple[Fraction, Value]:
        """(scale, shape) with value = scale · shape, the same shape for proportional values that are not constant."""
        scale = divisor_of(self)
        return scale, divided(self, scale)

    @cached_property
    def tables(self) -> dict[int, Table]:
        """The functions of a letter, by lag."""
        return {lag: c for (_, lag), c in self.terms.items() if isinstance(c, Table)}

    @cached_property
    def ramps(self) -> dict[Key, Ramp]:
        """The functions of integers."""
        return {key: c for key, c in self.terms.items() if isinstance(c, Ramp)}


@dataclass(eq=False)
class World:
    """The language, the float format and all roots met so far. together: whether running sums are also bounded as the
    running sum of all that they add, which is a root of its own."""

    language: Language
    format: Format
    roots: list[Root] = field(default_factory=list)
    known: dict[tuple, Root] = field(default_factory=dict)
    facts: dict[tuple, Any] = field(default_factory=dict)  # what `kept` functions found
    zeros: dict[Key, tuple[Key, Value]] = field(default_factory=dict)  # by latch: (running sum, a value that is 0)
    blocks: list[int] = field(default_factory=list)  # how many roots there were behind each block of the weights
    together: bool = True

    def met(self, kind: str, parts: tuple) -> Root | None:
        """The root with this kind and parts, if there is one, so that its facts need not be found again."""
        return self.known.get((kind, named(parts), None))

    def root(self, kind: str, facts: Facts, parts: tuple, exact: int | None = None, along: Along | None = None) -> Root:
        """The root with this kind, parts and limit; new ones get the next number."""
        key = kind, named(parts), exact
        if key not in self.known:
            lo, hi, values = facts
            everywhere = np.repeat([[below(lo)], [above(hi)]], len(self.language.edges), axis=1)
            along = everywhere if along is None else tighter(along, everywhere)
            lo, hi = max(lo, floor(along[0].min())), min(hi, ceil(along[1].max()))
            values = None if values is None else tuple(v for v in values if lo <= v <= hi)
            root = Root(len(self.roots), kind, lo, hi, values, parts, exact, along)
            self.roots.append(root)
            self.known[key] = root
        return self.known[key]


def constant(x: Fraction | int) -> Value:
    return Value(Fraction(x), {})


def of_letters(dense: np.ndarray) -> Value:
    """The value of a lane that the embedding fills."""
    return normal({(TOKEN, 0): Table(dense)}, ZERO)


def of_root(root: Root, scale: Fraction) -> Value:
    """scale · x."""
    ends = sorted({root.lo, root.hi})
    return normal({(root.id, 0): Ramp(ends, [scale * x for x in ends])}, ZERO)


def multiple(world: World, value: Value) -> tuple[Fraction, Root | None]:
    """(w, root) where the value is w · a root at this position; (0, None) where it is none."""
    ((key, ramp),) = value.ramps.items() if len(value.terms) == len(value.ramps) == 1 else [((TOKEN, 0), None)]
    if ramp is None or key[1] or len(ramp.xs) != 2 or value.const + ramp.at(ramp.xs[0]) != ramp.slopes[0] * ramp.xs[0]:
        return ZERO, None
    return ramp.slopes[0], world.roots[key[0]]


def normal(terms: Mapping[Key, Component], const: Fraction) -> Value:
    """Components that are 0 at the first letter or the least integer, and none that is 0 throughout."""
    found: dict[Key, Component] = {}
    for key, component in _positions_at_one_lag(terms).items():
        const += component.first
        moved = component.affine(Fraction(1), -component.first)
        if not moved.zero:
            found[key] = moved
    return Value(const, found)


def _positions_at_one_lag(terms: Mapping[Key, Component]) -> Mapping[Key, Component]:
    """Tables that do not tell letters apart are functions of the position: all move to the largest lag of a table."""
    tables = {lag: c for (_, lag), c in sorted(terms.items()) if isinstance(c, Table)}
    if len(tables) < 2:
        return terms
    top, last = tables.popitem()
    moved: set[Key] = set()
    for lag, table in tables.items():
        if not len(table.ids):
            letter = Fraction(table.base)
            past = Table(np.full(table.size, table.base), (letter,) * (top - lag) + table.start)
            last = table_sum([(Fraction(1), last), (Fraction(1), past)])
            moved.add((TOKEN, lag))
    return {key: c for key, c in terms.items() if key not in moved} | {(TOKEN, top): last}


def combine(terms: Iterable[tuple[Fraction, Value]], const: Fraction = ZERO) -> Value:
    """const + the sum of weight · value, exactly."""
    tables: dict[Key, list[tuple[Fraction, Table]]] = {}
    ramps: dict[Key, list[tuple[Fraction, Ramp]]] = {}
    for weight, value in terms:
        if weight:
            lengths = ((len(c.xs) if isinstance(c, Ramp) else 1) + len(c.start) // 4 for c in value.terms.values())
            spend(1 + sum(lengths))
            const += weight * value.const
            for key, component in value.terms.items():
                if isinstance(component, Table):
                    tables.setdefault(key, []).append((weight, component))
                else:
                    ramps.setdefault(key, []).append((weight, component))
    added: dict[Key, Component] = {k: table_sum(parts) for k, parts in tables.items()}
    return normal(added | {k: ramp_sum(parts) for k, parts in ramps.items()}, const)


def scaled(value: Value, weight: Fraction) -> Value:
    return value if weight == 1 and value.upto is None else combine([(weight, value)])


def later(world: World, value: Value, k: int) -> Value:
    """The value k positions back; before the sequence it is 0."""
    if k < 0:
        raise Rejected(f"a value {k} positions back would be one to come")
    if not k or k >= world.language.length:
        return constant(0) if k else value
    parts = [_reached(world, root, lag + k, c.later(k)) for (root, lag), c in value.terms.items()]
    if value.const:
        parts.append(((TOKEN, k), _placed(world, (value.const, *(ZERO,) * k))))
    result = combine((Fraction(1), Value(ZERO, dict([part]))) for part in parts)
    result.upto = value.upto
    return result


def _reached(world: World, root: int, lag: int, component: Component) -> tuple[Key, Component]:
    """A component; where no sequence reaches as far back, only its start is seen: it is a function of the position."""
    last = world.language.length - 1
    if lag <= last:
        return (root, lag), component
    return (TOKEN, last), _placed(world, component.start[lag - last - 1 :])


def level_of(world: World, base: Fraction, lag: int, start: tuple[Fraction, ...]) -> Value:
    """The window that is `base` where something stands `lag` positions back, and has these values before."""
    if not lag:
        return constant(base)
    return normal({(TOKEN, lag): _placed(world, (base, *start))}, ZERO)


def _placed(world: World, seen: tuple[Fraction, ...]) -> Table:
    """seen[0] whatever the letter is; the others are its start."""
    return Table(np.full(world.language.tokens, number(seen[0])), seen[1:])


def tighter(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.stack([np.maximum(a[0], b[0]), np.minimum(a[1], b[1])])


def divisor_of(value: Value) -> Fraction:
    """The greatest common divisor of the constant and all numbers of the components, with the sign of the first."""
    numbers = [value.const]
    for component in value.terms.values():
        if isinstance(component, Table):
            numbers += [
                Fraction(float(v))
                for v in (component.letter_values if len(component.letter_values) < 64 else _gcd_of(component))
            ]
            numbers += component.start
        else:
            numbers += [*component.ys, *component.slopes, *component.start]
    unit = min(exponent(x) for x in numbers if x)
    grain = Fraction(2) ** unit
    common = gcd(*(int(x / grain) for x in numbers if x))
    return common * grain * _sign(next(iter(value.terms.values())))


def _gcd_of(table: Table) -> list[float]:
    e = table.unit
    whole = np.ldexp(table.letter_values, -e)
    if np.abs(whole).max() >= 2.0**53:
        raise Rejected("a function of a token needs more than the 53 bits that the checker carries")
    return [float(np.ldexp(float(np.gcd.reduce(np.abs(whole).astype(np.int64))), e))]


def _sign(component: Component) -> int:
    """The sign of the first number that is not 0."""
    if isinstance(component, Ramp):
        return 1 if next((y for y in (*component.ys, *component.start) if y), 1) > 0 else -1
    nonzero = component.vals[component.vals != 0] if not component.base else component.dense()[component.dense() != 0]
    if len(nonzero):
        return 1 if nonzero[0] > 0 else -1
    return 1 if next((s for s in component.start if s), 1) > 0 else -1


def divided(value: Value, divisor: Fraction) -> Value:
    """value / divisor, a divisor of all its numbers."""
    return Value(value.const / divisor, {k: c.over(divisor) for k, c in value.terms.items()})
