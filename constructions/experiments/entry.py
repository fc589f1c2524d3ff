"""What an experiment is: rows that say what the paper found, what is built in its place, or why nothing can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from constructions.construction import CircuitFamily
from constructions.experiments.impossible import Impossible

if TYPE_CHECKING:
    from constructions.experiments.controls import Control

Detail = Literal["", "stages", "decay"]


@runtime_checkable
class Measured(Protocol):
    """A construction on a machine of ours that no checkpoint has; it measures itself."""

    name: str
    target: str
    dtype: str

    def told(self) -> str:
        """Its parameters in a few words."""
        ...

    def measure(self, samples: int, seed: int) -> dict[str, Any]:
        """Entries of a Row: `accuracy`, `bit_exact`, `used`, …; CompileError where it cannot be built."""
        ...


@dataclass(frozen=True)
class Entry:
    """One row of an experiment.

    built:    what of ours stands in this row, None where nothing does.
    model:    the paper's model, or what we call the row; "" where the construction says it all.
    paper:    what the paper reports of it, as it stands there; of figures, which our text lacks, what we expect.
    room:     the paper's (d, N), 0 where it leaves one open: whether what is built fits in.
    cannot:   the theorem that no weights of the paper's model answer everything; `built` then stands instead of it.
    absent:   why nothing is built.
    controls: what is trained beside it.
    detail:   what is kept of the built model for a picture: its stages (Table 3), or its exp(ΔA) (Figure 1).
    """

    built: CircuitFamily | Measured | None = None
    model: str = ""
    paper: str = ""
    room: tuple[int, int] = (0, 0)
    cannot: Impossible | None = None
    absent: str = ""
    controls: tuple[Control, ...] = ()
    detail: Detail = ""


@dataclass(frozen=True)
class Experiment:
    """title: what it is, and where in which paper; note: what the paper's numbers are, and what ours leave out by name.

    entries: the rows, made when they are asked for; axis: the parameter that a picture runs over, "" where it has none.
    mode: how built models are run; written: whether they also write chains from saved checkpoints.
    """

    title: str
    entries: Callable[[], Iterable[Entry]]
    note: str = ""
    axis: str = ""
    mode: Literal["random", "exhaustive"] = "random"
    written: bool = False
