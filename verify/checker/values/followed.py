"""Functions of letters and moved states over all that is reached (lemma of states together).

The states are taken into one machine layer by layer, as they move each other. Behind each layer what nothing tells
apart that is still read is one state: so a group that is followed by several layers is a machine of the size of the
group, and not of the product of the layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from verify.checker.values.apart import told_apart
from verify.checker.values.joint import LETTER, STATE, Joint
from verify.checker.values.tables import Ramp, Table
from verify.checker.values.values import TOKEN, Root, Value, World
from verify.checker.values.windows import (
    Letters,
    TooLarge,
    added,
    alike,
    exact_float,
    exact_product,
    join,
    numbered,
    ramped,
)

_LARGE = 1 << 12  # numbers of a function, beyond which it is written over as few classes as it has


@dataclass(frozen=True, eq=False)
class Followed:
    """joint: the machine of all states; found: what each value is at its moments, in the order in which they were
    given; kinds: a letter of each kind."""

    joint: Joint
    found: list[Letters]
    kinds: np.ndarray

    def attained(self) -> np.ndarray:
        """(moments, values): the distinct rows of numbers that the values are at once."""
        return self.joint.attained(self.found)


def followed(world: World, values: Sequence[Value], late: Sequence[Root] = ()) -> Followed:
    """late: states that are taken in last. TooLarge where a value is a function of anything but letters and moved
    states, or where too many are together."""
    following = _Following(world, values, {root.id for root in late})
    following.meet_functions()
    for root in following.states:
        following.meet(root)
        following.meet_functions()
        following.merge()
    return Followed(following.joint, [following.sums[value.key] for value in values], following.kinds)


class _Following:
    """sums: what is known of each value that is still read: the sum of those components whose roots were met."""

    def __init__(self, world: World, values: Sequence[Value], late: set[int]):
        self.world, self.targets = world, {value.key for value in values}
        self.waiting = dict.fromkeys(_needed(world, values))  # roots that were not met, in order
        order = _order(world, list(self.waiting), late)
        self.states = [world.roots[i] for i in order if world.roots[i].kind == "moved"]
        read = {value.key: value for value in (*values, *(v for i in self.waiting for v in inner(world.roots[i])))}
        self.readers: dict[int, dict[int, list[str]]] = {}  # by root and lag, the values that read it
        for key, value in read.items():
            for root, lag in value.terms:
                self.readers.setdefault(root, {}).setdefault(lag, []).append(key)
        self.read = read
        self.kinds = _kinds(world, [t for v in read.values() for t in v.tables.values()])
        self.joint = Joint.of_paths(world.language, self.kinds)
        self.sums = {key: Letters({}, np.array(exact_float(value.const))) for key, value in read.items()}
        for key, value in read.items():
            if (TOKEN, 0) in value.terms:
                self._add(key, Letters({LETTER: np.arange(len(self.kinds))}, value.tables[0].dense()[self.kinds]))
        self._behind(TOKEN, Letters({LETTER: np.arange(len(self.kinds))}, np.arange(len(self.kinds)) + 0.0))

    def meet_functions(self) -> None:
        """Meet all roots that are functions of those that were met."""
        for i in list(self.waiting):
            root = self.world.roots[i]
            known = all(n not in self.waiting for value in inner(root) for n, _ in value.terms)
            if root.kind != "moved" and known:
                self.meet(root)

    def meet(self, root: Root) -> None:
        """Add what is read of a root to the sums that read it."""
        found = self._state(root) if root.kind == "moved" else self._pointwise(root)
        del self.waiting[root.id]
        for key in self.readers[root.id].get(0, []):
            component = self.read[key].terms[root.id, 0]
            self._add(key, found.map(partial(ramped, cast(Ramp, component))))
        self._behind(root.id, found)

    def merge(self) -> None:
        """Take together what nothing that is still read tells apart."""
        live = self.targets | {v.key for i in self.waiting for v in inner(self.world.roots[i])}
        self.sums = {key: total for key, total in self.sums.items() if key in live}
        self.joint, some = self.joint.least(list(self.sums.values()))
        self._renamed(some)

    def _add(self, key: str, part: Letters) -> None:
        total = added(self.sums[key], part)
        self.sums[key] = _small(total) if total.table.size > _LARGE else total

    def _pointwise(self, root: Root) -> Letters:
        if root.kind == "form":
            return self.sums[root.parts[0].key]
        scale, *factors = root.parts
        a, b = (self.sums[factor.key] for factor in factors)
        return join(a, b, exact_product).map(lambda x: exact_product(x, np.array(exact_float(scale))))

    def _state(self, root: Root) -> Letters:
        """The number of the state: its flags exclude each other, so their sum with numbers says which move it is."""
        moves, flags = root.parts
        which = count = Letters({}, np.array(0.0))
        for i, (when,) in enumerate(flags, 1):
            which = added(which, self.sums[when.key].map(partial(exact_product, np.array(float(i)))))
            count = added(count, self.sums[when.key])
        if not np.isin(self.joint.attained([count]), (0.0, 1.0)).all():
            raise TooLarge("the moves of a state do not exclude each other")
        ramps = [self.read[key].terms[root.id, lag] for lag, keys in self.readers[root.id].items() for key in keys]
        outputs = [tuple(cast(Ramp, ramp).at(state) for ramp in ramps) for state in range(root.hi + 1)]
        classes, some = told_apart(outputs, moves.each)
        every = np.array([range(len(some)), *([classes[move[state]] for state in some] for move in moves.each)])
        found = self._taken_in(self._at_next(self.joint.everywhere(which)), every, 0)
        return Letters(found.axes, np.array(some) + 0.0)

    def _at_next(self, which: np.ndarray) -> np.ndarray:
        """By state and letter, what stands at the moment behind it."""
        ahead = self.joint.following
        return np.where(ahead < 0, 0.0, which[ahead, np.arange(len(self.kinds))]).astype(np.int64)

    def _taken_in(self, codes: np.ndarray, moves: np.ndarray, start: int) -> Letters:
        """The state of one more machine, which is from now on a part of the joint state."""
        self.joint, own, other = self.joint.beside(codes, moves, start)
        self._renamed(own)
        return Letters({STATE: other}, np.arange(moves.shape[1]) + 0.0)

    def _renamed(self, own: np.ndarray) -> None:
        """own: for each of the new states one of the old ones, which is the same for all that was found."""
        for key, total in self.sums.items():
            if STATE in total.axes:
                some, labels = numbered(total.axes[STATE][own])
                self.sums[key] = Letters({**total.axes, STATE: labels}, total.table.take(some, axis=0))

    def _behind(self, root: int, found: Letters) -> None:
        """What is read of a root at earlier positions: a line of its last values, each a state; before the first
        position there is a mark that says how far."""
        lags = self.readers.get(root, {})
        last = max(lags, default=0)
        if not last:
            return
        values = np.unique(found.table)
        count = len(values)
        held = found.map(lambda x: np.searchsorted(values, x) + 0.0)
        put = np.repeat(np.arange(count + last + 1)[:, None], count + last + 1, axis=1)
        line = self._taken_in(self._at_next(self.joint.everywhere(held)), put, count)
        for lag in range(1, last + 1):
            codes = np.broadcast_to(line.axes[STATE][:, None], self.joint.following.shape)
            line = self._taken_in(codes, put, count + lag)
            for key in lags.get(lag, []):
                component = self.read[key].terms[root, lag]
                marks = [exact_float(x) for x in component.start] + [0.0] * (last + 1 - lag)
                if isinstance(component, Table):
                    told = component.dense()[self.kinds[values.astype(int)]]
                else:
                    told = ramped(component, values)
                self._add(key, Letters(line.axes, np.array([*told, *marks])))


def _small(function: Letters) -> Letters:
    """The same function over as few classes as it has."""
    axes, table = dict(function.axes), function.table
    for at, axis in enumerate(sorted(axes)):
        labels = alike(np.moveaxis(table, at, 0))  # numbered as they come
        axes[axis], table = labels[axes[axis]], table.take(np.unique(labels, return_index=True)[1], axis=at)
    return Letters(axes, table)


def pointwise(root: Root) -> list[Value]:
    """What a root is a function of at one position; nothing of a state."""
    return [part for part in root.parts if isinstance(part, Value)] if root.kind in ("form", "product") else []


def inner(root: Root) -> list[Value]:
    """What a root is a function of at one position, or what moves it."""
    if root.kind == "moved":
        return [when for (when,) in root.parts[1]]
    return pointwise(root)


def _needed(world: World, values: Sequence[Value]) -> list[int]:
    found: set[int] = set()
    pending = list(values)
    while pending:
        for number, _ in pending.pop().ramps:
            if number not in found:
                root = world.roots[number]
                if root.kind not in ("moved", "form", "product"):
                    raise TooLarge(f"what a {root.kind} holds is no moved state")
                found.add(number)
                pending += inner(root)
    return sorted(found)


def _order(world: World, roots: Sequence[int], late: set[int]) -> list[int]:
    """By how many states stand one behind the other, so that what moves in step is met together; the late ones last."""
    depths = {TOKEN: 0}
    for i in roots:
        below = [depths[root] for value in inner(world.roots[i]) for root, _ in value.terms]
        depths[i] = max(below, default=0) + (world.roots[i].kind == "moved")
    return sorted(roots, key=lambda i: (i in late, depths[i], i))


def _kinds(world: World, tables: Sequence[Table]) -> np.ndarray:
    """A letter of each kind: of one kind are letters that no table and no edge tells apart."""
    label = np.zeros(world.language.tokens, dtype=np.int64)
    told = {table.key: table.dense() for table in tables}
    for row in (*told.values(), *(edge.letters for edge in world.language.edges)):
        values = np.unique(row, return_inverse=True)[1].reshape(-1)
        label = np.unique(label * (int(values.max()) + 1) + values, return_inverse=True)[1].reshape(-1)
    used = world.language.used
    first = np.unique(label[used], return_index=True)[1]
    return used[first]
