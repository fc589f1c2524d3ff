"""A local dynamic program over the letters of its prompt: an entry for each letter (after paper B, Theorem 4).

Statement (beyond the papers). Theorem 4 is about programs whose entries are functions of the m output tokens before
them. Letters are no output tokens, so a program that reads some is m-local for no m. Here an entry is a function of the
m entries before it and of letters at fixed places around its own.

Circuit. The letters stand in a memory under their places, written once; each letter that an entry needs is one read at
the entry's index and an offset. The last m entries are the present token and those before it, as in `local`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.arguments import spanned
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import count, latch, present
from constructions.construction import WithMemory, parameter
from constructions.copy_dp.chains import END, ChainConstruction, Edges, leaving, numbers, repeated, written
from constructions.copy_dp.local import ASK
from constructions.copy_dp.local_entry import entry_of, outside
from constructions.copy_dp.local_problem import LocalProblem
from constructions.copy_dp.own import Own
from constructions.copy_dp.problem import OUTSIDE
from constructions.papers import FREE_LUNCH, OF_PAPER_B


@dataclass(frozen=True)
class OwnLocalOnLetters(Own, ChainConstruction, WithMemory):
    """A local dynamic program over letters, from a file of one's own."""

    theorem: ClassVar[str] = f"{FREE_LUNCH}, after Theorem 4, with letters of the prompt, which m-locality leaves out"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    given: LocalProblem = parameter("the problem")

    def entries(self) -> dict[str, int]:
        """The tokens of entries and their numbers."""
        return {name: int(name) for name in numbers(self.given.largest)}

    def alphabet(self) -> Alphabet:
        return Alphabet.of(ASK, END, OUTSIDE, letter=list(self.given.letters), number=[*self.entries()])

    def edges(self) -> Edges:
        lengths = self.given.lengths
        prompt, in_prompt = repeated("start", "letter", lengths[-1])
        chain, in_chain = repeated("chain", "number", lengths[-1])
        asked = leaving([prompt[n] for n in lengths], "chain", [ASK])
        return [*in_prompt, *asked, *in_chain, *leaving([chain[n] for n in lengths], "end", [END])]

    def prompts(self) -> str:
        lengths = self.given.lengths
        return f"{spanned(lengths)} letter{'s' * (lengths[-1] != 1)} of {' '.join(self.given.letters)}"

    def table(self) -> int:
        return self.given.lengths[-1]

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """Theorem 4's programs read no letters."""
        return {}, ""

    def longest(self) -> int:
        return 2 * self.table() + 2

    def scores(self) -> Stream:
        x, given, size = Tokens(self.alphabet()), self.given, self.table()
        letter, entry, mark = x.is_in("letter"), x.is_in("number"), x.is_in([ASK])
        place = letter.cumsum().named("place")
        asked, length = present(mark), latch(place, when=mark).named("length")
        index = count(entry, reset=mark).named("index")
        rank = x.number({name: i + 1 for i, name in enumerate(given.letters)}, "letter")
        text = memory.write((place - 1).one_hot(size), rank, when=letter, policy="once", name="letters")
        read = [text.read((index + offset).one_hot(size)) for offset in given.reads]
        letters = [rank - 1 + (given.blank + 1) * (rank < 1) for rank in read]
        value = x.number(self.entries(), "value")
        following = entry_of(given, index, value, letters)
        rules = [(asked & (index >= length), END), (outside(given, following), OUTSIDE)]
        return written(x.alphabet, following, self.entries(), rules, self.dtype)
