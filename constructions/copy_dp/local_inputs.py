"""An m-local dynamic program over the letters of its prompt: an entry for each letter (paper B, Theorem 4).

Statement. As in `local`: each entry is a function of the m tokens before it. Letter i of a prompt of L letters stands
L + 1 tokens before entry i, so a program that reads its letters is m-local for an m above L only, and O(m) is O(L).

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
    """An m-local dynamic program over letters, from a file of one's own."""

    theorem: ClassVar[str] = f"{FREE_LUNCH}, Theorem 4"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B
    a_column_each: ClassVar[str] = "place back to the farthest entry or letter that is read"

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

    def longest(self) -> int:
        return 2 * self.table() + 2

    def bound(self) -> dict[str, int]:
        """Theorem 4 copies from O(m) places: ours are those of the entries before, and back to the letters."""
        back = max((self.table() + 1 - offset for offset in self.given.reads), default=0)
        return {"d_state": max(self.given.reach, back)}

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
