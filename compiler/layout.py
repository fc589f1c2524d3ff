"""The layout of a model: which coordinate stands where in its tensors, so that every weight explains itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from compiler.ir.coordinate import Coordinate

if TYPE_CHECKING:
    from torch import Tensor


ROW = "row"  # the kind of an axis of several parts, which are told in the names


@dataclass(frozen=True, eq=False)
class Axis:
    """One dimension of a tensor. kind: "lane", "channel", …; places: the coordinate of each index that has one.

    padding: what stands at all other indices; size: how many there are.
    """

    kind: str
    size: int
    places: Mapping[int, Coordinate] = field(repr=False)
    padding: str = "padding, which no number uses"

    def at(self, index: int) -> Coordinate:
        """The coordinate at an index; IndexError beyond the size."""
        if not 0 <= index < self.size:
            raise IndexError(f"index {index} is outside the {self.size} places of the axis of {self.kind}s")
        return self.places.get(index) or Coordinate(f"{self.kind} {index}", text=self.padding)

    @property
    def names(self) -> list[str]:
        """The name at every index, "" for padding."""
        return [self.places[i].name if i in self.places else "" for i in range(self.size)]


class MadeWhenRead(Mapping[int, Coordinate]):
    """The coordinates of the indices 0 … count − 1, each made when it is asked for: a vocabulary has many."""

    def __init__(self, count: int, made: Callable[[int], Coordinate]):
        self.count, self.made = count, made

    def __getitem__(self, index: int) -> Coordinate:
        if not 0 <= index < self.count:
            raise KeyError(index)
        return self.made(index)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.count))

    def __len__(self) -> int:
        return self.count


def axis(kind: str, size: int, coordinates: Sequence[Coordinate], at: np.ndarray | None = None, **options) -> Axis:
    """An axis with these coordinates at these indices (in order from 0 if none are given; −1: nowhere)."""
    where = range(len(coordinates)) if at is None else np.asarray(at).tolist()
    return Axis(kind, size, {i: c for i, c in zip(where, coordinates, strict=True) if i >= 0}, **options)


def joined(*parts: Axis) -> Axis:
    """Several axes one after the other; kinds are told in the names."""
    places, start = {}, 0
    for part in parts:
        for i in range(part.size):
            at = part.at(i)
            places[start + i] = replace(at, name=f"{part.kind} {at.name}")
        start += part.size
    return Axis(ROW, start, places)


def numbers(kind: str, size: int, text: Callable[[int], str]) -> Axis:
    """An axis whose places have no stream: taps, ranks."""
    return Axis(kind, size, {i: Coordinate(f"{kind} {i}", text=text(i)) for i in range(size)})


def taps_axis(count: int) -> Axis:
    """The taps of a convolution, the present position last."""
    back = lambda i: f"{count - 1 - i} position{'s' if count - 1 - i > 1 else ''} back"
    return numbers("tap", count, lambda i: back(i) if i < count - 1 else "the present position")


def one_channel() -> Axis:
    """The axis of what a convolution of each channel by itself reads: that channel alone."""
    return numbers("input", 1, lambda i: "")


@dataclass(frozen=True)
class Explanation:
    """What one weight is.

    name: its row and column; meaning: what these say; gadget, operation, source: who put it there ("" for padding).
    """

    tensor: str
    index: tuple[int, ...]
    name: str
    meaning: str
    gadget: str
    operation: str
    source: str

    def __str__(self) -> str:
        where = f"{self.tensor}[{', '.join(map(str, self.index))}]"
        by = " ".join(part for part in (self.gadget, self.operation and f"for {self.operation}", self.source) if part)
        return f"{where}: {self.name}: {self.meaning}" + (f" [{by}]" if by else "")


@dataclass(frozen=True, eq=False)
class Layout:
    """The axes of every tensor, by its name."""

    axes: Mapping[str, tuple[Axis, ...]]

    def explain(self, tensor: str, index: Sequence[int]) -> Explanation:
        """What the weight at an index is. KeyError for an unknown tensor, IndexError for an index outside it."""
        if tensor not in self.axes:
            raise KeyError(f"there is no tensor {tensor!r}; the tensors are {', '.join(sorted(self.axes))}")
        axes = self.axes[tensor]
        if len(index) != len(axes):
            raise IndexError(f"{tensor} has {len(axes)} dimensions, and the index has {len(index)}")
        found = [axis.at(int(i)) for axis, i in zip(axes, index, strict=True)]
        author = next((c for c in found if c.gadget), None) or next((c for c in found if c.source), found[0])
        return Explanation(
            tensor,
            tuple(int(i) for i in index),
            " × ".join(_named(a, c) for a, c in zip(axes, found, strict=True)),
            "; ".join(str(c) for c in found if c.meaning),
            author.gadget,
            author.operation,
            author.source,
        )

    def prefixed(self, prefix: str) -> Layout:
        """The same layout with longer tensor names."""
        return Layout({f"{prefix}{name}": axes for name, axes in self.axes.items()})

    def __or__(self, other: Layout) -> Layout:
        return Layout({**self.axes, **other.axes})


def _named(axis: Axis, place: Coordinate) -> str:
    """Such as "lane one" or "tap 0", whose name says its kind."""
    return place.name if axis.kind == ROW or place.name.startswith(axis.kind) else f"{axis.kind} {place.name}"


@dataclass(frozen=True, eq=False)
class Emission:
    """A block as a module's tensors, and what stands where in them."""

    tensors: dict[str, Tensor]
    layout: Layout
