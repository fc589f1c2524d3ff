"""A dynamic program of one's own as a construction: the same command, verification and card as ours."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.language.alphabet import Alphabet
from compiler.language.stream import Stream
from constructions.construction import parameter
from constructions.copy_dp.chains import END, numbers
from constructions.copy_dp.local import ASK, Recurrence
from constructions.copy_dp.local_entry import entry_of, outside
from constructions.copy_dp.local_inputs import OwnLocalOnLetters
from constructions.copy_dp.local_problem import LocalProblem
from constructions.copy_dp.own import Own
from constructions.copy_dp.problem import OUTSIDE, DPProblem
from constructions.copy_dp.tables import FixedTable


@dataclass(frozen=True)
class OwnProblem(Own, FixedTable):
    """A dynamic program from a file of one's own."""

    given: DPProblem = parameter("the problem")

    def problem(self) -> DPProblem:
        return self.given

    def otherwise(self) -> str:
        """In the proof the token of an entry tells its cell."""
        return "with cells that are counted, and not in the tokens"


@dataclass(frozen=True)
class OwnLocal(Own, Recurrence):
    """An m-local dynamic program from a file of one's own."""

    given: LocalProblem = parameter("the problem")

    def terms(self) -> int:
        return self.given.lengths[-1]

    def entries(self) -> dict[str, int]:
        return {name: int(name) for name in numbers(self.given.largest)}

    def reach(self) -> int:
        return self.given.reach

    def alphabet(self) -> Alphabet:
        names = dict.fromkeys([*numbers(self.terms()), *self.entries()])
        return Alphabet.of(ASK, END, OUTSIDE, number=[*names])

    def following(self, value: Stream, index: Stream, first: Stream) -> Stream:
        """The problem's transition of the last m entries; one before the first is `missing`."""
        return entry_of(self.given, index, value)

    def marks(self, following: Stream) -> list[tuple[Stream, str]]:
        return [(outside(self.given, following), OUTSIDE)]


def own_of(what: str) -> tuple[type[OwnProblem | OwnLocal | OwnLocalOnLetters], DPProblem | LocalProblem]:
    """(its construction, the problem) of FILE.py:NAME; ValueError in one sentence where it is none."""
    from constructions.command.show import value_of
    from constructions.command.stdout import stdout_lent

    with stdout_lent(aside=True):  # before options are read, so with --json or without
        found = value_of(what)
    if isinstance(found, DPProblem):
        return OwnProblem, found
    if isinstance(found, LocalProblem):
        return OwnLocalOnLetters if found.letters else OwnLocal, found
    raise ValueError(f"{what}: it is {type(found).__name__}, and a DPProblem or a LocalProblem is needed")
