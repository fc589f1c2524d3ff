"""What every pass knows: the target, the floating point format, and what has been found out about the streams."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from compiler.analysis.domains import Domains, DomainsDraft
from compiler.analysis.linear_form import Form, port_form
from compiler.exactness.levels import COUNT, RESET
from compiler.formats import FLOAT32, Format
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream

if TYPE_CHECKING:  # a target's gadgets build blocks in a context
    from compiler.targets.target import Target


@dataclass(frozen=True)
class ColumnLimit:
    """How many state columns a block may have at most (None: any number), and whether the author asked for that.

    What cannot be split keeps its columns where the limit is only the default.
    """

    most: int | None = None
    asked: bool = False


@dataclass(frozen=True)
class Choices:
    """What a strategy or a variant of the driver has the passes do otherwise.

    decides: comparisons and rectifiers that bounds decide become constants.
    folds_masks: conditions are folded into the ramps of what they mask (`passes.fold_masks`).
    sums: a block may hold a direct sum of column groups (`passes.direct_sums`).
    apart: for their sake the keys of memories, too, are 0 where nothing is written.
    """

    decides: bool = False
    folds_masks: bool = False
    sums: bool = False
    apart: bool = False


@dataclass(frozen=True, eq=False)
class Context:
    """target, format: what is compiled for; domains: what streams can hold.

    forms: their linear forms, found once each; columns: how many columns a state may have.
    """

    target: Target
    format: Format
    domains: Domains
    forms: dict[Stream, Form] = field(default_factory=dict, repr=False)
    columns: ColumnLimit = ColumnLimit()
    choices: Choices = Choices()

    @classmethod
    def of(
        cls,
        circuit: Circuit,
        target: Target,
        format: Format = FLOAT32,
        max_d_state: int | None = None,
        choices: Choices = Choices(),
    ) -> Context:
        """The context of a circuit as written; CompileError where the author declared a type that cannot be shown."""
        return replace(cls.empty(circuit, target, format, max_d_state), choices=choices).bounding(circuit)

    @classmethod
    def empty(cls, circuit: Circuit, target: Target, format: Format, max_d_state: int | None) -> Context:
        """The context of a circuit of which nothing has been looked at."""
        columns = ColumnLimit(max_d_state or target.max_d_state, max_d_state is not None)
        return cls(target, format, Domains(circuit.language, circuit.max_length), columns=columns)

    def bounding(self, circuit: Circuit) -> Context:
        """The same context with the domains of this circuit; CompileError where the author declared a type that cannot
        be shown.
        """
        domains = Domains(circuit.language, circuit.max_length)
        domains.all(circuit.streams)
        return replace(self, domains=domains)

    def knowing(self, domains: DomainsDraft) -> Context:
        """The same context with what a pass has found out about the streams that it made."""
        return replace(self, domains=domains.settled())

    def form(self, stream: Stream) -> Form:
        """The stream as Σ matrix · atom(t − lag)."""
        return port_form(stream, self.forms)

    @property
    def counts(self) -> bool:
        """Whether a channel counts since a reset: the target's Δ sees the past, and the format holds what a
        reset adds.
        """
        return self.target.counts and self.format.largest >= COUNT + RESET
