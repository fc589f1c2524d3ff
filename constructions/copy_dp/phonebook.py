"""Phonebook look-up with answers of several tokens (paper B, Section 4.3.2: "Bob: 111111; …").

Statement. After Theorem 2, associative recall by COPY: a name leads to a place, the place to the tokens behind it.

Conditions that its words on the experiment leave unsaid. Names are distinct, or the last entry would have to win. A
name that is not in the book leads to no place; then the end is written at once. Numbers may have different lengths: `;`
ends them. A book is as long as its tokens, however many entries that are; digits behind the last place are not kept.

Circuit. A memory keyed by name holds the place of each entry, one keyed by place holds the digits. The name that was
asked for is latched, so that place + 1 + (digits written so far) is the next place to copy from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens
from compiler.language.stream import Stream, constant
from compiler.language.words import count, latch, present
from constructions.construction import WithMemory, parameter
from constructions.copy_dp.chains import END, ChainConstruction, Edges, leaving, repeated
from constructions.copy_dp.sizes import AFTER_COPY
from constructions.papers import OF_PAPER_B
from verify.arguments import at_least
from verify.tasks.chain import Solver
from verify.tasks.solvers.recall import DIGITS, PhonebookSolver

ENTRY, ASK = ";", "?"


@dataclass(frozen=True)
class Phonebook(ChainConstruction, WithMemory):
    name: ClassVar[str] = "phonebook"
    theorem: ClassVar[str] = AFTER_COPY
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B
    group: ClassVar[str] = ""

    names: int = parameter("names that there are: n0, n1, …", most=1 << 12, default=8)
    entries: int = parameter("entries of a book, at most", most=1 << 8, default=5)
    digits: int = parameter("digits of a number, at most", most=1 << 8, default=4)

    def __post_init__(self) -> None:
        for what in ("names", "entries", "digits"):
            at_least(what, getattr(self, what), 1, "a phonebook has one")
        if self.entries > self.names:
            raise ValueError(f"entries = {self.entries} is more than there are names; names = {self.entries} would do")

    def alphabet(self) -> Alphabet:
        return Alphabet.of(ENTRY, ASK, END, n=self.names, digit=DIGITS)

    def edges(self) -> Edges:
        """One edge for all names of the book, which takes none twice."""
        number, in_number = repeated("number", "digit", self.digits)
        chain, in_chain = repeated("chain", "digit", self.digits)
        asked = [("start", "ask", [ASK]), ("ask", "chain", "n")]
        book = [("start", "number", "n", True), *in_number, *leaving(number[1:], "start", [ENTRY])]
        return [*book, *asked, *in_chain, *leaving(chain, "end", [END])]

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """The theorem copies from named places; here a memory has a column for each name that there is, too."""
        return {}, ""

    def table(self) -> int:
        """The tokens of the longest book."""
        return self.entries * (self.digits + 2)

    def longest(self) -> int:
        return self.table() + 2 + self.digits + 1

    def prompts(self) -> str:
        """States can count entries or use names up, not both: short numbers leave room for more than `entries`."""
        return (
            f"a book of distinct names with numbers of 1 to {self.digits} digits, of whose tokens the first "
            f"{self.table()} are kept (any {self.entries} entries fit), and one name asked for"
        )

    def scores(self) -> Stream:
        x = Tokens(self.alphabet())
        name, asked = x.one_hot("n", name="name"), present(x.is_in([ASK]))
        place, written = (
            constant(1).cumsum().named("place"),
            count(x.is_in("digit"), reset=x.is_in([ASK])).named("written"),
        )
        start = memory.write(name, place, when=x.is_in("n") & ~asked, policy="once", name="places").read(
            latch(name, when=x.is_in("n"))
        )
        text = memory.write(
            self._place(place), x.one_hot("digit", name="digit"), when=~asked, policy="once", name="text"
        )
        return self._readout(text.read(self._place(start + 1 + written)), x.alphabet)

    def _place(self, place: Stream) -> Stream:
        return (place - 1).one_hot(self.table())

    def _readout(self, digit: Stream, alphabet: Alphabet) -> Stream:
        """The digit that was copied: 2 on its lane; the end has 1, and wins where there is none."""
        ends = np.zeros((1, alphabet.size))
        lanes = np.zeros((alphabet.size, len(DIGITS)))
        lanes[list(alphabet.ids("digit")), range(len(DIGITS))] = 2
        ends[0, alphabet.index(END)] = 1
        return readout_one_hot(lanes @ digit + ends.T @ constant(1), alphabet)

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "entries": self.entries}

    def solver(self) -> Solver:
        return PhonebookSolver(self.names, self.entries, self.digits)
