"""Functions of the last few letters, in a form that is the same for equal functions, however they were computed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from hashlib import blake2b
from math import ceil, floor, prod
from typing import Any

import numpy as np

from verify.checker.formats import array_exponent, exponent
from verify.checker.values.effort import spend
from verify.checker.values.exact import is_float, product_unit, within
from verify.checker.values.tables import Ramp, Table, digest
from verify.checker.values.values import TOKEN, Root, Value, World, kept

_MOST_ENTRIES = 1 << 20
_ENTRIES_OF_A_STEP = 1 << 8  # of a table that is formed: all of them together are some gigabytes at most
_SORTED_OF_A_STEP, _NUMBERS_OF_A_STEP = 1 << 9, 4  # that are sorted, or found as fractions, in the time of a step
_SILENT = np.errstate(over="ignore", invalid="ignore")  # what overflows is refused
_FEW = 4  # as many numbers for each label are looked up, not sorted


class TooLarge(Exception):
    """A function of several letters has too many cases to write down."""


class Letters:
    """A function of the letters at some lags: per lag a class of each letter, and a table over the classes."""

    def __init__(self, axes: dict[Any, np.ndarray], table: np.ndarray):
        self.axes, self.table = axes, table
        check_cases(len(axes), table.size)
        spend(table.size // _ENTRIES_OF_A_STEP)

    @property
    def nothing(self) -> bool:
        """Whether it is the number 0, over no classes."""
        return not self.axes and not self.table

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Letters:
        return Letters(self.axes, function(self.table))

    def key(self) -> str:
        """The same for equal functions: classes merged where nothing tells them apart, numbered by first letters."""
        axes, table = [], self.table
        if not table.any():
            return _key([], np.array(0.0))
        for place, lag in enumerate(sorted(self.axes)):
            labels = alike(table.swapaxes(place, 0))[self.axes[lag]]
            labels, first = _by_first(labels)
            pick = self.axes[lag][first]
            table = table.take(pick, axis=place)
            axes.append((lag, labels))
        for place, (_, labels) in reversed(list(enumerate(axes))):
            if labels.max() == 0:
                table = table.take(0, axis=place)
                axes.pop(place)
        return _key(axes, table)


def check_cases(letters: int, cases: int) -> None:
    """TooLarge where a function of so many letters has more cases than are written down."""
    if cases > _MOST_ENTRIES:
        raise TooLarge(f"a function of {letters} letters has {cases} cases")


def _by_first(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels ≥ 0 numbered by where each stands first, and these places in order."""
    first = np.full(int(labels.max()) + 1, len(labels))
    first[labels[::-1]] = np.arange(len(labels))[::-1]  # of several the last is kept, the first in the array
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[labels], first[order[: np.count_nonzero(first < len(labels))]]


def _key(axes: list[tuple[int, np.ndarray]], table: np.ndarray) -> str:
    held = blake2b((table + 0.0).tobytes(), digest_size=16)
    for _, labels in axes:
        held.update(labels.astype(np.int32).tobytes())
    return digest(([lag for lag, _ in axes], table.shape, held.hexdigest()))


def alike(rows: np.ndarray) -> np.ndarray:
    """A number for each row, the same for equal ones."""
    numbers: dict[bytes, int] = {}
    return np.array([numbers.setdefault((row + 0.0).tobytes(), len(numbers)) for row in rows])


def join(a: Letters, b: Letters, function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Letters:
    """function(a, b), elementwise."""
    if not a.axes or not b.axes:
        return Letters(a.axes | b.axes, function(a.table, b.table))
    axes: dict[int, np.ndarray] = {}
    pick_a: list[np.ndarray | None] = []
    pick_b: list[np.ndarray | None] = []
    classes: list[int] = []
    for lag in sorted(a.axes.keys() | b.axes.keys()):
        if lag in a.axes and lag in b.axes:
            width = int(b.axes[lag].max()) + 1
            pairs, labels = numbered(a.axes[lag].astype(np.int64) * width + b.axes[lag])
            axes[lag] = narrow(labels, len(pairs))
            classes.append(len(pairs))
            pick_a.append(pairs // width)
            pick_b.append(pairs % width)
        else:
            axes[lag] = a.axes[lag] if lag in a.axes else b.axes[lag]
            classes.append(int(axes[lag].max()) + 1)
            pick_a.append(None if lag in b.axes else np.arange(classes[-1]))
            pick_b.append(None if lag in a.axes else np.arange(classes[-1]))
    check_cases(len(axes), prod(classes))
    return Letters(axes, function(_spread(a.table, pick_a), _spread(b.table, pick_b)))


def numbered(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct whole numbers ≥ 0 of an array, in order, and the place of each entry among them."""
    most = int(labels.max(initial=0)) + 1
    if most > _FEW * len(labels):
        found, at = np.unique(labels, return_inverse=True)
        return found, at.reshape(-1)
    met = np.zeros(most, dtype=bool)
    met[labels] = True
    return np.flatnonzero(met), (np.cumsum(met) - 1)[labels]


def narrow(labels: np.ndarray, count: int) -> np.ndarray:
    """The same labels 0 … count − 1 in the smallest type: a proof may hold thousands of rows of one for each letter."""
    return labels.astype(np.min_scalar_type(count - 1))


def _spread(table: np.ndarray, picks: list) -> np.ndarray:
    for place, pick in enumerate(picks):
        table = np.expand_dims(table, place) if pick is None else table.take(pick, axis=place)
    return table


def is_window(world: World, value: Value) -> bool:
    """Whether the value is a function of the last few letters."""
    return all(key[0] == TOKEN or is_window_root(world, world.roots[key[0]]) for key in value.terms)


@kept
def is_window_root(world: World, root: Root) -> bool:
    if root.kind == "form":
        return is_window(world, root.parts[0])
    return root.kind == "product" and is_window(world, root.parts[1]) and is_window(world, root.parts[2])


def reach(world: World, value: Value) -> int:
    """The largest lag of a window."""
    found = 0
    for (root, lag), _ in value.terms.items():
        inner = [] if root == TOKEN else [p for p in world.roots[root].parts if isinstance(p, Value)]
        found = max(found, lag + max((reach(world, v) for v in inner), default=0))
    return found


def letters_of(world: World, value: Value, t: int | None, past: int = 0) -> Letters:
    """The value `past` positions back as a function of letters, at position t (None: far from the start)."""
    if t is not None and t - past < 1:
        return _number(0.0)
    total = _number(exact_float(value.const))
    for (root, lag), component in value.terms.items():
        total = added(total, _component(world, root, lag, component, t, past))
    return total


def _component(world: World, root: int, lag: int, component: Table | Ramp, t: int | None, past: int) -> Letters:
    place = past + lag
    if t is not None and t - place < 1:
        return _number(exact_float(component.start[place - t]))
    if isinstance(component, Table):
        values, labels = component.classes()
        return Letters({place: narrow(labels, len(values))}, values)
    made = world.roots[root]
    if made.kind == "form":
        inner = letters_of(world, made.parts[0], t, place)
    else:
        scale, a, b = made.parts
        inner = join(letters_of(world, a, t, place), letters_of(world, b, t, place), exact_product)
        inner = inner.map(lambda x: exact_product(x, np.array(exact_float(scale))))
    return inner.map(lambda x: ramped(component, x))


def ramped(ramp: Ramp, x: np.ndarray) -> np.ndarray:
    """A function of an integer at each number of an array."""
    distinct, at = np.unique(x, return_inverse=True)
    spend(x.size // _SORTED_OF_A_STEP + len(distinct) // _NUMBERS_OF_A_STEP)
    inside = [exact_float(ramp.at(int(min(max(v, ramp.xs[0]), ramp.xs[-1])))) for v in distinct.tolist()]
    return np.array(inside)[at.reshape(-1)].reshape(x.shape)


def ends_of(world: World, value: Value, t: int | None, past: int = 0) -> tuple[Letters, Letters]:
    """Bounds of any value as functions of letters: as `letters_of`, what is no function of letters at its bounds."""
    if t is not None and t - past < 1:
        return _number(0.0), _number(0.0)
    lo = hi = _number(exact_float(value.const))
    for (root, lag), component in value.terms.items():
        low, high = _component_ends(world, root, lag, component, t, past)
        lo, hi = added(lo, low), added(hi, high)
    return lo, hi


def _component_ends(
    world: World, root: int, lag: int, component: Table | Ramp, t: int | None, past: int
) -> tuple[Letters, Letters]:
    before = t is not None and t - past - lag < 1
    if before or isinstance(component, Table) or is_window_root(world, world.roots[root]):
        return (_component(world, root, lag, component, t, past),) * 2
    if world.roots[root].kind != "form":
        low, high = (_number(exact_float(end)) for end in component.inside)
        return low, high
    lo, hi = ends_of(world, world.roots[root].parts[0], t, past + lag)
    low = join(lo, hi, lambda p, q: _within_ramp(component, p, q)[0])
    return low, join(lo, hi, lambda p, q: _within_ramp(component, p, q)[1])


def _within_ramp(ramp: Ramp, lo: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """(2, …): the least and the largest value between lo and hi."""
    both = np.stack(np.broadcast_arrays(lo, hi))
    distinct, at = np.unique(both.reshape(2, -1), axis=1, return_inverse=True)
    spend(both.size // _SORTED_OF_A_STEP + distinct.shape[1] // _NUMBERS_OF_A_STEP)
    found = [ramp.between(floor(a), ceil(b)) for a, b in distinct.T.tolist()]
    return np.array([[exact_float(y) for y in ends] for ends in found]).T[:, at.reshape(-1)].reshape(both.shape)


def _number(x: float) -> Letters:
    return Letters({}, np.array(x))


def times(a: list[Letters], b: list[Letters]) -> list[Letters]:
    return [join(x, y, exact_product) for x, y in zip(a, b, strict=True)]


def plus(a: list[Letters], b: list[Letters], weight: Fraction) -> list[Letters]:
    factor = np.array(exact_float(weight))
    scaled = b if weight == 1 else [y.map(lambda q: exact_product(q, factor)) for y in b]
    return [added(x, y) for x, y in zip(a, scaled, strict=True)]


def added(a: Letters, b: Letters) -> Letters:
    """a + b."""
    if a.nothing or b.nothing:
        return b if a.nothing else a
    return join(a, b, exact_add)


def exact_float(x: Fraction) -> float:
    if not is_float(x):
        raise TooLarge(f"{x} needs more than the 53 bits that the checker carries")
    return float(x)


@_SILENT
def exact_add(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """p + q, refused where float64 might round."""
    units = [e for e in (array_exponent(p), array_exponent(q)) if e is not None]
    return _within(p + q, min(units, default=0))


def exact_difference(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return exact_add(p, -q)


@_SILENT
def exact_product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return _within(p * q, product_unit(p, q))


def _within(result: np.ndarray, unit: int) -> np.ndarray:
    if not within(result, unit):
        raise TooLarge("a function of several letters needs more than the 53 bits that the checker carries")
    return result


def pieces(world: World, value: Value, depth: int) -> list[Letters]:
    """The value far from the start, and at positions 1 … depth."""
    return [letters_of(world, value, t) for t in (None, *range(1, depth + 1))]


def window_key(parts: list[Letters]) -> tuple[str, ...]:
    """The same for equal windows, whatever their depth."""
    keys = [p.key() for p in parts]
    while len(keys) > 1 and keys[-1] == keys[0]:
        keys.pop()
    return tuple(keys)


def unit_of(parts: list[Letters]) -> tuple[Fraction, list[Letters]]:
    """(scale, parts / scale): a power of two with the sign of the first entry that is not 0, in the order of the
    letters.
    """
    for part in parts:
        table = part.table
        for place, lag in enumerate(sorted(part.axes)):
            table = table.take(part.axes[lag][:64], axis=place)
        found = table.reshape(-1)[table.reshape(-1) != 0]
        if len(found):
            scale = Fraction(2) ** exponent(found[0]) * (1 if found[0] > 0 else -1)
            return scale, [times([p], [Letters({}, np.array(exact_float(1 / scale)))])[0] for p in parts]
    return Fraction(1), parts


def ended(parts: list[Letters]) -> list[Letters] | None:
    """What a window adds up to (lemma of differences): a window f, f(t) - f(t - 1) being this one and f(0) = 0."""
    far, *early = parts
    total, found = _number(0.0), []
    for piece in early:
        total = added(piece, _back(total, 1))
        found.append(total)
    last, always = max(far.axes, default=0), _number(0.0)
    for i in range(last):  # letters that stood before those that f sees are taken to be letter 0
        always = added(always, _back(_first_before(far, last - i), i))
    step = join(join(far, _back(always, 1), exact_add), always, exact_difference)
    level = join(join(far, _back(total, 1), exact_add), always, exact_difference).table
    if step.table.any() or (level != level.flat[0]).any():
        return None
    return [always.map(lambda x: exact_add(x, np.array(level.flat[0]))), *found]


def _back(window: Letters, k: int) -> Letters:
    """The window k positions back."""
    return Letters({lag + k: labels for lag, labels in window.axes.items()}, window.table)


def _first_before(window: Letters, lag: int) -> Letters:
    """The window where the letters from this lag on are letter 0."""
    table, axes = window.table, dict(window.axes)
    for place, own in reversed(list(enumerate(sorted(window.axes)))):
        if own >= lag:
            table = np.take(table, axes.pop(own)[0], axis=place)
    return Letters(axes, table)
