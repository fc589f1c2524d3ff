"""What every pass knows: the target, the floating point format, and what has been found out about the streams."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.analysis.domains import Domains
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


@dataclass(frozen=True, eq=False)
class Context(Facts):
    """The facts, and what passes decide by.

    columns: how many columns a state may have; decides: whether comparisons and rectifiers that bounds decide become
    constants.
    """

    target: Target
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
