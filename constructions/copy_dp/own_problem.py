"""A DPProblem of one's own as a construction: the same command, verification and card as those of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from compiler.language.circuit import Circuit
from constructions.construction import Construction, parameter
from constructions.copy_dp.chains import PAPER
from constructions.copy_dp.problem import DPProblem
from verify.tasks.chain import ChainTask
from verify.tasks.task import Task


@dataclass(frozen=True)
class OwnProblem(Construction):
    """A dynamic program from a file of one's own."""

    name: ClassVar[str] = "circuit"
    theorem: ClassVar[str] = f"{PAPER}, Theorem 3"
    group: ClassVar[str] = "dp"
    registered: ClassVar[bool] = False

    problem: DPProblem = parameter("the problem")
    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba", kw_only=True)

    @property
    def target(self) -> str:
        return self.arch

    def title(self) -> str:
        """The problem's own name."""
        return self.problem.name

    def circuit(self) -> Circuit:
        return self.problem.circuit(self.dtype)

    def letters(self) -> int:
        return self.problem.alphabet().size

    def tasks(self) -> list[Task]:
        return [ChainTask(self.problem.solver(), self.problem.language())]

    def bound(self) -> dict[str, int]:
        """Theorem 3 copies from the places of the input and of T entries, a column of the state for each."""
        return {"d_state": self.problem.places()}

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
