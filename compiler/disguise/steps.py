"""The four steps that a disguise is made of, each exact and each with its inverse.

A *leg* is a stretch of one axis of one tensor: `(tensor, axis, first, role)`. The legs of a space are all places
where its coordinates stand, so a change of basis is one list of legs. A step is plain data; a key is a list of steps.
Steps change a dictionary of float32 arrays in place. They compute in float64 and raise DisguiseError where a weight
would not be a float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from compiler.disguise.errors import DisguiseError

Tensors = dict[str, np.ndarray]
Leg = tuple[str, int, int, int]  # tensor, axis, first index, role


@dataclass(frozen=True)
class Step:
    """One change of the weights that leaves the function as it is.

    legs: where the coordinates stand; what a leg's role means, each step says.
    """

    kind: ClassVar[str]

    legs: list[Leg]

    def apply(self, tensors: Tensors) -> None:
        raise NotImplementedError

    def undo(self, tensors: Tensors) -> None:
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class Permute(Step):
    """Coordinate i becomes what coordinate order[i] was, on every leg; roles mean nothing."""

    kind = "permute"

    order: list[int]

    def apply(self, tensors):
        self._gather(tensors, np.array(self.order))

    def undo(self, tensors):
        self._gather(tensors, np.argsort(self.order))

    def _gather(self, tensors: Tensors, order: np.ndarray) -> None:
        for leg in self.legs:
            part = _part(tensors, leg, len(order))
            part[...] = part[order]


@dataclass(frozen=True)
class Scale(Step):
    """Coordinate i times signs[i] · 2^(role · exponents[i]) on every leg."""

    kind = "scale"

    exponents: list[int]
    signs: list[int]

    def apply(self, tensors):
        self._multiply(tensors, 1)

    def undo(self, tensors):
        self._multiply(tensors, -1)

    def _multiply(self, tensors: Tensors, direction: int) -> None:
        for leg in self.legs:
            part = _part(tensors, leg, len(self.exponents))
            factors = np.ldexp(np.array(self.signs, dtype=float), direction * leg[3] * np.array(self.exponents))
            part[...] = _exact(part * factors.reshape(-1, *[1] * (part.ndim - 1)), leg[0])


@dataclass(frozen=True)
class Mix(Step):
    """Coordinate `to` becomes itself plus factor · coordinate `of`.

    Legs of role 1 hold the coordinates' values; legs of role -1 read them, so `of` loses factor · the weight of `to`.
    """

    kind = "mix"

    to: int
    of: int
    factor: float

    def apply(self, tensors):
        self._add(tensors, self.factor)

    def undo(self, tensors):
        self._add(tensors, -self.factor)

    def _add(self, tensors: Tensors, factor: float) -> None:
        for leg in self.legs:
            part = _part(tensors, leg, max(self.to, self.of) + 1)
            into, out_of, sign = (self.to, self.of, factor) if leg[3] > 0 else (self.of, self.to, -factor)
            part[into] = _exact(part[into].astype(float) + sign * part[out_of].astype(float), leg[0])


@dataclass(frozen=True)
class Patch(Step):
    """Some entries become others: of channels that do nothing, or whose work others take over. It has no legs.

    what: what it does, in words; entries: (tensor, flat index, old value, new value).
    """

    kind = "patch"

    what: dict[str, Any]
    entries: list[tuple[str, int, float, float]]

    def apply(self, tensors):
        for name, at, old, new in self.entries:
            _exchange(tensors, name, at, old, new)

    def undo(self, tensors):
        for name, at, old, new in reversed(self.entries):
            _exchange(tensors, name, at, new, old)


KINDS: Mapping[str, type[Step]] = {kind.kind: kind for kind in (Permute, Scale, Mix, Patch)}


def patch_of(before: Tensors, after: Tensors, what: dict[str, Any]) -> Patch:
    """The patch that makes `before` to `after`."""
    entries = []
    for name in sorted(before):
        old, new = before[name].reshape(-1), after[name].reshape(-1)
        for at in np.flatnonzero(old.view(np.int32) != new.view(np.int32)).tolist():
            entries.append((name, at, float(old[at]), float(new[at])))
    return Patch([], what, entries)


def _part(tensors: Tensors, leg: Leg, size: int) -> np.ndarray:
    """A view with the coordinates along its first axis."""
    name, axis, first, _ = leg
    if name not in tensors or tensors[name].ndim <= axis or tensors[name].shape[axis] < first + size:
        raise DisguiseError(f"the key speaks of {name!r:.60}, axis {axis}, which the weights do not have.")
    return np.moveaxis(tensors[name], axis, 0)[first : first + size]


def _exchange(tensors: Tensors, name: str, at: int, old: float, new: float) -> None:
    flat = tensors[name].reshape(-1) if name in tensors else np.zeros(0, dtype=np.float32)
    if not 0 <= at < flat.size:
        raise DisguiseError(f"the key speaks of entry {at} of {name!r:.60}, which the weights do not have.")
    if flat[at] != np.float32(old):
        raise DisguiseError(f"{name} holds {flat[at]:g} at entry {at}, and {old:g} was expected there.")
    flat[at] = new


def _exact(values: np.ndarray, name: str) -> np.ndarray:
    """Float64 numbers as float32, none rounded; 0 without a sign."""
    cast = values.astype(np.float32) + np.float32(0)
    if not np.array_equal(cast.astype(float), values):
        raise DisguiseError(f"a weight of {name} would not be a float32 number.")
    return cast


def applied(steps: Sequence[Step], tensors: Mapping[str, np.ndarray]) -> Tensors:
    """New arrays, changed by the steps in order."""
    return _changed(tensors, [step.apply for step in steps])


def undone(steps: Sequence[Step], tensors: Mapping[str, np.ndarray]) -> Tensors:
    """New arrays, with the steps taken back, the last one first."""
    return _changed(tensors, [step.undo for step in reversed(steps)])


def _changed(tensors: Mapping[str, np.ndarray], changes: Sequence[Callable[[Tensors], None]]) -> Tensors:
    copy = {name: np.array(tensor, dtype=np.float32) for name, tensor in tensors.items()}
    for change in changes:
        change(copy)
    return copy
