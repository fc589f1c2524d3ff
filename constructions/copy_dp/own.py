"""What a dynamic program from a file of one's own has in place of parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from compiler.artifact.files import MANIFEST
from compiler.language.circuit import Circuit
from constructions.construction import CircuitFamily
from verify.tasks.chain import Solver


@dataclass(frozen=True)
class Own(CircuitFamily):
    """What comes from a file: it has no parameters that a manifest could hold, for the circuit is in circuit.json."""

    name: ClassVar[str] = "circuit"
    registered: ClassVar[bool] = False
    stated_in: ClassVar[str] = MANIFEST  # its input language

    def title(self) -> str:
        """The problem's own name."""
        return self.given.name  # type: ignore[attr-defined]

    def circuit(self) -> Circuit:
        """Under the problem's own name."""
        return replace(super().circuit(), name=self.title())  # type: ignore[safe-super]

    def solver(self) -> Solver:
        """Its own transition on integers."""
        return self.given.solver()  # type: ignore[attr-defined]

    def params(self) -> dict[str, Any]:
        """None."""
        return {}
