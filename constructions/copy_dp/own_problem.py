"""A DPProblem of one's own as a construction: the same command, verification and card as those of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from constructions.construction import parameter
from constructions.copy_dp.problem import DPProblem
from constructions.copy_dp.tables import FixedTable
from verify.tasks.chain import Solver


@dataclass(frozen=True)
class OwnProblem(FixedTable):
    """A dynamic program from a file of one's own."""

    name: ClassVar[str] = "circuit"
    registered: ClassVar[bool] = False

    given: DPProblem = parameter("the problem")

    def problem(self) -> DPProblem:
        return self.given

    def title(self) -> str:
        """The problem's own name."""
        return self.given.name

    def solver(self) -> Solver:
        """Its own transition on integers."""
        return self.given.solver()

    def params(self) -> dict[str, Any]:
        """None that a manifest could hold: the circuit itself is in circuit.json."""
        return {}


def problem_of(what: str) -> DPProblem:
    """The problem that FILE.py:NAME is; ValueError in one sentence where it is none."""
    from constructions.show import value_of

    found = value_of(what)
    if not isinstance(found, DPProblem):
        raise ValueError(f"{what}: it is {type(found).__name__}, and a DPProblem is needed")
    return found
