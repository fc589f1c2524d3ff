"""What every pass knows: the target, the floating point format, and what has been found out about the streams."""

from __future__ import annotations

from dataclasses import dataclass, replace

from compiler.analysis.domains import Domains, DomainsDraft
from compiler.analysis.domains.claims import check_claims
from compiler.formats import FLOAT32, Format
from compiler.language.circuit import Circuit
from compiler.lowering.facts import Facts
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
class Context(Facts):
    """The facts, and what passes decide by.

    columns: how many columns a state may have.
    """

    target: Target
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
        check_claims(circuit.streams, domains)
        return replace(self, domains=domains)

    def knowing(self, domains: DomainsDraft) -> Context:
        """The same context with what a pass has found out about the streams that it made."""
        return replace(self, domains=domains.settled())
