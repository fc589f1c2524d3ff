"""What every pass knows: the target, the floating point format, and what has been found out about the streams."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compiler.analysis.domains import Domains
from compiler.analysis.domains.claims import check_claims
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


@dataclass(frozen=True, eq=False)
class Context:
    """target, format: what is compiled for; domains: what streams can hold.

    forms: their linear forms, found once each; columns: how many columns a state may have;
    decides: whether comparisons and rectifiers that bounds decide become constants.
    """

    target: Target
    format: Format
    domains: Domains
    forms: dict[Stream, Form] = field(default_factory=dict, repr=False)
    columns: ColumnLimit = ColumnLimit()
    decides: bool = False

    @classmethod
    def of(
        cls,
        circuit: Circuit,
        target: Target,
        format: Format = FLOAT32,
        max_d_state: int | None = None,
        decides: bool = False,
    ) -> Context:
        """The context of a circuit as written; CompileError where the author declared a type that cannot be shown."""
        domains = Domains(circuit.language, circuit.max_length)
        check_claims(circuit.streams, domains)
        columns = ColumnLimit(max_d_state or target.max_d_state, max_d_state is not None)
        return cls(target, format, domains, columns=columns, decides=decides)

    def form(self, stream: Stream) -> Form:
        """The stream as Σ matrix · atom(t − lag)."""
        return port_form(stream, self.forms)

    @property
    def counts(self) -> bool:
        """Whether a channel counts since a reset: the target's Δ sees the past, and the format holds what a
        reset adds.
        """
        return self.target.counts and self.format.largest >= COUNT + RESET
