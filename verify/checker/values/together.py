"""What several values can be at once: all combinations of what they are functions of, at each moment (lemma of joint
values). What stands in the way is left out of no combination, so more may be listed than a sequence has.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce

import numpy as np

from verify.checker.formats import Rejected
from verify.checker.values.bounds import values_of
from verify.checker.values.followed import followed, pointwise
from verify.checker.values.tables import MOST_VALUES, Ramp, Table
from verify.checker.values.values import TOKEN, Value, World, kept
from verify.checker.values.windows import Letters, TooLarge, added, exact_float, exact_product, join

MOST_FLAGS = 48  # whose combinations fit into a float64


def on_together(world: World, flags: Sequence[Value], what: str) -> set[frozenset[int]]:
    """The sets of flags that can be 1 at once; Rejected where one is no flag, or there are too many to look at."""
    if len(flags) > MOST_FLAGS:
        raise Rejected(f"{what} is moved by {len(flags)} flags, and the checker looks at {MOST_FLAGS} at most")
    try:
        found = _codes(world, tuple(flags))
    except TooLarge:
        try:
            rows = _reached(world, tuple(flags))
        except TooLarge as reason:
            raise Rejected(f"{what}: {reason}") from reason
        found = {int(code) for code in rows @ 2.0 ** np.arange(len(flags))} if _of_flags(rows) else None
    if found is None:
        raise Rejected(f"{what} is moved by a number that is not 0 or 1")
    return {frozenset(i for i in range(len(flags)) if code >> i & 1) for code in found}


def _codes(world: World, flags: Sequence[Value]) -> set[int] | None:
    """The sets of flags as numbers, 2^i for the flag i; None where one is no flag."""
    found: set[int] = set()
    for cases in at_all_moments(world, flags):
        if not all(_of_flags(case.table) for case in cases):
            return None
        codes = [join(case, _number(2.0**i), exact_product) for i, case in enumerate(cases)]
        found |= {int(code) for code in np.unique(reduce(added, codes, _number(0.0)).table).tolist()}
    return found


def _of_flags(table: np.ndarray) -> bool:
    return bool(((table == 0.0) | (table == 1.0)).all())


@kept
def _reached(world: World, values: tuple[Value, ...]) -> np.ndarray:
    """(moments, values): what they are at once, of states that are reached (lemma of states together)."""
    return followed(world, values).attained()


def exclusive(world: World, values: Sequence[Value], what: str) -> bool:
    """Whether at most one of the values is other than 0 at each position."""
    try:
        for cases in at_all_moments(world, values):
            live = [case.map(lambda x: (x != 0.0).astype(float)) for case in cases]
            if reduce(added, live, _number(0.0)).table.max() > 1.0:
                return False
    except TooLarge:
        try:
            return bool((np.count_nonzero(_reached(world, tuple(values)), axis=1) <= 1).all())
        except TooLarge as reason:
            raise Rejected(f"{what}: {reason}") from reason
    return True


def vanishes(world: World, value: Value) -> bool | None:
    """Whether a function of letters and moved states is 0 at every position (lemma of states together); None where
    that is too much to go through.
    """
    try:
        return not _reached(world, (value,)).any()
    except TooLarge:
        return None


def heights_of(world: World, value: Value, what: str) -> set[Fraction]:
    """What it can be other than 0. What its parts are at once is looked at where each by itself leaves several."""
    known = values_of(world, value)
    if known is not None and len(set(known) - {0}) <= 1:
        return set(known) - {0}
    try:
        found = [np.unique(case.table) for (case,) in at_all_moments(world, [value])]
    except TooLarge as reason:
        raise Rejected(f"{what}: {reason}") from reason
    return {Fraction(x) for x in np.unique(np.concatenate(found)).tolist() if x}


def moved_in(world: World, value: Value) -> bool:
    """Whether it is a function of letters and of moved states alone, one at least."""
    kinds, pending, seen = set(), [value], set()
    while pending:
        for number, _ in pending.pop().ramps:
            inner = pointwise(world.roots[number])
            pending += inner if number not in seen else []
            kinds |= set() if inner else {world.roots[number].kind}
            seen.add(number)
    return kinds == {"moved"}


def at_all_moments(world: World, values: Sequence[Value]) -> list[list[Letters]]:
    """The values far from the start and at the first positions, over classes of what they are made of."""
    last = max((_reach(world, value) for value in values), default=0)
    return [[_at(world, value, t, 0) for value in values] for t in (None, *range(1, last + 1))]


@kept
def _reach(world: World, value: Value) -> int:
    """How far back it looks, short of what states hold."""
    found = 0
    for root, lag in value.terms:
        inner = pointwise(world.roots[root]) if root != TOKEN else []
        found = max(found, lag + max((_reach(world, v) for v in inner), default=0))
    return found


def _at(world: World, value: Value, t: int | None, past: int) -> Letters:
    """The value `past` positions back, at position t (None: far from the start)."""
    if t is not None and t - past < 1:
        return _number(0.0)
    total = _number(exact_float(value.const))
    for (root, lag), component in value.terms.items():
        total = added(total, _component(world, root, component, t, past + lag))
    return total


def _component(world: World, number: int, component: Table | Ramp, t: int | None, place: int) -> Letters:
    if t is not None and t - place < 1:
        return _number(exact_float(component.start[place - t]))
    if isinstance(component, Table):
        return _over(number, place, component.dense()[world.language.used])
    root = world.roots[number]
    inner = pointwise(root)
    if not inner:
        if root.hi - root.lo >= MOST_VALUES:
            raise TooLarge(f"a number of {root.hi - root.lo + 1} values")
        points = root.values or range(root.lo, root.hi + 1)
        return _over(number, place, np.array([exact_float(component.at(x)) for x in points]))
    if root.kind == "form":
        x = _at(world, inner[0], t, place)
    else:
        scale = _number(exact_float(root.parts[0]))
        a, b = (_at(world, v, t, place) for v in inner)
        x = join(join(a, b, exact_product), scale, exact_product)
    distinct, at = np.unique(x.table, return_inverse=True)
    known = [exact_float(component.at(min(max(int(v), root.lo), root.hi))) for v in distinct.tolist()]
    return Letters(x.axes, np.array(known)[at.reshape(-1)].reshape(x.table.shape))


def _over(number: int, place: int, values: np.ndarray) -> Letters:
    """A function of one root at one place."""
    distinct, labels = np.unique(values, return_inverse=True)
    return Letters({(number, place): labels.reshape(-1)}, distinct)


def _number(x: float) -> Letters:
    return Letters({}, np.array(x))
