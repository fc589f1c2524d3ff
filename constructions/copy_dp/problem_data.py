"""What an author gives of a dynamic program over a table: the fields of a `DPProblem`, which documents them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from compiler.language.stream import Stream

Size = tuple[int, ...]
"""How many letters each input has."""


@dataclass(frozen=True)
class Aggregation:
    """f_A of Theorem 3: what is written behind the last cell, from the values of some cells.

    cells:   their list (None: a value that is `missing`); with lengths from separators a function of n that gives as
        many for every n.
    circuit: their values as streams → the answer as a stream.
    plain:   the same on integers, for whoever verifies.
    """

    cells: Sequence[tuple | None] | Callable[[Size], Sequence[tuple | None]]
    circuit: Callable[[list[Stream]], Stream]
    plain: Callable[[list[int]], int] | None = None


@dataclass(frozen=True)
class ProblemData:
    """The fields of a `DPProblem`, without its circuit."""

    name: str
    letters: Sequence[str]
    inputs: tuple[int | range, ...]
    cells: Sequence[tuple[Hashable, ...]] | Callable[[tuple[int, ...]], Sequence[tuple[Hashable, ...]]]
    reads: Callable[..., list]
    needs: Callable[..., list]
    transition: Callable[[Any, list[Stream], list[Stream]], Stream]
    largest: int
    plain: Callable[[tuple, list[int], list[int]], int] | None = None
    missing: int = 0
    blank: int = -1
    answer: Literal["last", "max", "min"] | Aggregation = "last"
    said: str = ""

    @property
    def varies(self) -> bool:
        """Whether the lengths are read from the separators."""
        return any(isinstance(given, range) for given in self.inputs)
