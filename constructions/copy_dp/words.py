"""Edit distance and longest common subsequence: the table of two words, row by row (after paper B, Theorem 3).

Statement. Theorem 3: a dynamic program that meets Assumption 2 has for every T a solution of size O(T), if the answer
is no longer than T. Ours counts entries. Written by rows it needs less: entry (r, c) reads its left neighbour (the
present token), the one above (a latch for each column) and the one before that (the same read, one position earlier),
so it uses O(L) = O(√T) columns and channels. (On Mamba every channel has all columns: its state holds O(T) numbers
again.)

What the paper leaves open is the value of a border: nothing lies above row 0 or left of column 0, so those neighbours
are raised beyond every entry of an edit distance, and 0 of a subsequence. Marks are our choice. In the paper the token
of an entry carries its cell; ours are the values alone, with `;` between rows, and the column is a count since the last
mark.

Circuit. Two counts (row, column) since the marks; one memory keyed by word and place for the letters of both words,
those of the second negative, so that one read at (row, column) gives their difference.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any, ClassVar

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import concatenate, count, latch, maximum, minimum, present, select
from constructions.construction import WithMemory, parameter
from constructions.copy_dp.chains import END, ChainConstruction, Edges, leaving, numbers, repeated, written
from constructions.papers import FREE_LUNCH, OF_PAPER_B
from verify.arguments import at_least
from verify.tasks.chain import Solver
from verify.tasks.solvers.words import EditDistanceSolver, LongestCommonSubsequenceSolver

BAR, ROW = "|", ";"


@dataclass(frozen=True)
class TwoWords(ChainConstruction, WithMemory):
    """Prompts `a b | b c ;`; the table with its borders is written by rows, and its last number is the answer."""

    theorem: ClassVar[str] = f"{FREE_LUNCH}, Theorem 3"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B
    asked: ClassVar[str] = "row"

    length: int = parameter("letters of each word, at most", most=1 << 12, default=8)
    distinct_letters: int = parameter("letters of the alphabet: a, b, c, …", most=26, default=3, option="--letters")

    def __post_init__(self) -> None:
        at_least("length", self.length, 1, "a word has a letter")
        at_least("letters", self.distinct_letters, 1, "a word needs one")

    @abstractmethod
    def entry(self, up: Stream, left: Stream, diagonal: Stream, differ: Stream, top: Stream, start: Stream) -> Stream:
        """The next entry from its neighbours and whether the letters differ; top: in row 0; start: in column 0.

        In row 0 `up` and `diagonal` are 0; in column 0 `left` is 0 and `diagonal` means nothing, nor does `differ`.
        """

    def otherwise(self) -> str:
        """In the proof every entry tells its cell, and is kept."""
        return "by rows, of which one is kept and marks tell the cell"

    def alphabet(self) -> Alphabet:
        return Alphabet.of(BAR, ROW, END, letter=ascii_lowercase[: self.distinct_letters], number=numbers(self.length))

    def edges(self) -> Edges:
        first, in_first = repeated("start", "letter", self.length)
        second, in_second = repeated("second", "letter", self.length)
        row, in_row = repeated("row", "number", self.length + 1)
        between = leaving(first, "second", [BAR]) + leaving(second, "row", [ROW])
        return in_first + in_second + in_row + between + leaving(row[1:], "row", [ROW]) + leaving(row[1:], "end", [END])

    def table(self) -> int:
        return (self.length + 1) ** 2

    def longest(self) -> int:
        return 2 * self.length + 2 + (self.length + 1) * (self.length + 2)

    def prompts(self) -> str:
        return f"two words of at most {self.length} letters over {self.distinct_letters}"

    def scores(self) -> Stream:
        """The next entry, a mark behind the last one of a row, the end behind the last row."""
        x = Tokens(self.alphabet())
        mark, bar, entry, letter = x.is_in([ROW]), x.is_in([BAR]), x.is_in("number"), x.is_in("letter")
        row = (mark.cumsum() - 1).named("row")
        column = count(entry, reset=mark).named("column")
        rows = latch(letter.cumsum(), when=bar).named("length of the first word")
        columns = letter.cumsum() - rows

        top = row <= 0
        value = x.number({name: int(name) for name in numbers(self.length)}, "left")
        above = memory.write(self._place(column - 1), value, when=entry, policy="last", name="above")
        up = above.read(self._place(column))
        differ = self._difference(x, letter, bar, row, column) != 0
        following = self.entry(up, value, up.shift(1), differ, top, mark)
        full = column > columns
        values = {name: int(name) for name in numbers(self.length)}
        rules = [(full & (row >= rows), END), (full, ROW)]
        return written(self.alphabet(), following, values, rules, self.dtype)

    def _place(self, place: Stream) -> Stream:
        return place.one_hot(self.length + 1)

    def _difference(self, x: Tokens, letter: Stream, bar: Stream, row: Stream, column: Stream) -> Stream:
        """Letter `row` of the first word minus letter `column` of the second, as numbers from 1 on.

        One memory for both.
        """
        code = x.number({name: i for i, name in enumerate(ascii_lowercase[: self.distinct_letters], start=1)}, "letter")
        place, word = count(letter, reset=bar), bar.cumsum()
        key = (place + (self.length + 1) * word).one_hot(2 * (self.length + 1))
        signed = select(present(bar), -code, code)
        letters = memory.write(key, signed, when=letter, policy="once", name="letters")
        return letters.read(concatenate(self._place(row), self._place(column)))

    def asks(self) -> dict[str, Any]:
        return {"name": self.name}

    def solver(self) -> Solver:
        return self.textbook(self.length, ascii_lowercase[: self.distinct_letters])


@dataclass(frozen=True)
class EditDistance(TwoWords):
    """The least number of letters put in, dropped or changed."""

    name: ClassVar[str] = "edit-distance"
    textbook: ClassVar[type[Solver]] = EditDistanceSolver

    def entry(self, up: Stream, left: Stream, diagonal: Stream, differ: Stream, top: Stream, start: Stream) -> Stream:
        """min(up + 1, left + 1, diagonal + differ), without neighbours that lie outside; 0 in the corner."""
        far = self.length + 1
        from_left = left + far * (start & ~top) - (start & top)
        return minimum(minimum(up + far * top, from_left), diagonal + differ - 1 + far * top + far * start) + 1


@dataclass(frozen=True)
class LongestCommonSubsequence(TwoWords):
    """The length of the longest subsequence of both words: letters may be left out between."""

    name: ClassVar[str] = "lcs"
    textbook: ClassVar[type[Solver]] = LongestCommonSubsequenceSolver

    def entry(self, up: Stream, left: Stream, diagonal: Stream, differ: Stream, top: Stream, start: Stream) -> Stream:
        """max(up, left, diagonal + 1 where the letters agree): entries outside are 0, and so are the borders."""
        return maximum(maximum(up, left), diagonal + 1 - differ - (self.length + 1) * start)
