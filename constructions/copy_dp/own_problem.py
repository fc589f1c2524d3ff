"""A dynamic program of one's own as a construction: the same command, verification and card as those of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from compiler.language.alphabet import Alphabet
from compiler.language.stream import Stream
from compiler.language.words import constant, select
from constructions.construction import CircuitFamily, parameter
from constructions.copy_dp.chains import END, numbers
from constructions.copy_dp.local import ASK, Recurrence
from constructions.copy_dp.local_problem import LocalProblem
from constructions.copy_dp.problem import OUTSIDE, DPProblem
from constructions.copy_dp.tables import FixedTable
from verify.arguments import run_own
from verify.tasks.chain import Solver


@dataclass(frozen=True)
class _Own(CircuitFamily):
    """What comes from a file: it has no parameters that a manifest could hold, for the circuit is in circuit.json."""

    name: ClassVar[str] = "circuit"
    registered: ClassVar[bool] = False

    def title(self) -> str:
        """The problem's own name."""
        return self.given.name  # type: ignore[attr-defined]

    def solver(self) -> Solver:
        """Its own transition on integers."""
        return self.given.solver()  # type: ignore[attr-defined]

    def params(self) -> dict[str, Any]:
        """None."""
        return {}


@dataclass(frozen=True)
class OwnProblem(_Own, FixedTable):
    """A dynamic program from a file of one's own."""

    given: DPProblem = parameter("the problem")

    def problem(self) -> DPProblem:
        return self.given


@dataclass(frozen=True)
class OwnLocal(_Own, Recurrence):
    """An m-local dynamic program from a file of one's own."""

    given: LocalProblem = parameter("the problem")

    def terms(self) -> int:
        return self.given.terms

    def entries(self) -> dict[str, int]:
        return {name: int(name) for name in numbers(self.given.largest)}

    def reach(self) -> int:
        return self.given.reach

    def alphabet(self) -> Alphabet:
        names = dict.fromkeys([*numbers(self.terms()), *self.entries()])
        return Alphabet.of(ASK, END, OUTSIDE, number=[*names])

    def following(self, value: Stream, index: Stream, first: Stream) -> Stream:
        """The problem's transition of the last m entries; one before the first is `missing`."""
        given = self.given
        values = [select(index < d, given.missing, value.shift(d - 1)) for d in range(1, given.reach + 1)]
        found = run_own(f"{given.name}: its transition", given.transition, index, values)
        found = constant(found) if isinstance(found, int) else found
        if not isinstance(found, Stream):
            raise ValueError(f"{given.name}: its transition gives {found!r}, and a stream is needed")
        return found

    def marks(self, following: Stream) -> list[tuple[Stream, str]]:
        return [((following < 0) | (following > self.given.largest), OUTSIDE)]


def own_of(what: str) -> tuple[type[OwnProblem | OwnLocal], DPProblem | LocalProblem]:
    """(its construction, the problem) of FILE.py:NAME; ValueError in one sentence where it is none."""
    from constructions.command.show import value_of

    found = value_of(what)
    if isinstance(found, DPProblem):
        return OwnProblem, found
    if isinstance(found, LocalProblem):
        return OwnLocal, found
    raise ValueError(f"{what}: it is {type(found).__name__}, and a DPProblem or a LocalProblem is needed")
