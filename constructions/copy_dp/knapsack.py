"""The 0/1 knapsack: rows of best values, one for each item.

Statement. After Theorem 3, with a table of n·(C + 1) entries.

Two entries are enough for each, as its Assumption 2 asks, but which ones depends on the input: entry (i, c) needs entry
(i − 1, c − w), and w is data. Block 2 of the proof finds places from the size and the state alone. It compiles because
a query may depend on data. The row above is kept in place, one
latch for each column, which is right only because rows are written from the full capacity downwards: then c − w still
holds the row above. Upwards it would hold the present row, and items would be taken twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import count, latch, present
from constructions.construction import WithMemory, parameter
from constructions.copy_dp.chains import END, ChainConstruction, Edges, leaving, numbers, repeated, written
from constructions.copy_dp.sizes import PLACES_OF_THE_INPUT
from constructions.papers import OF_PAPER_B
from verify.arguments import at_least
from verify.tasks.chain import Solver
from verify.tasks.solvers.knapsack import KnapsackSolver

BAR, ROW = "|", ";"


@dataclass(frozen=True)
class Knapsack(ChainConstruction, WithMemory):
    """The best value of some of the items within a capacity: `2 3 | 4 5 | 4 ;` has weights, values and the capacity."""

    name: ClassVar[str] = "knapsack"
    asked: ClassVar[str] = "row"
    theorem: ClassVar[str] = PLACES_OF_THE_INPUT
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    items: int = parameter("items, at most", most=64, default=3)
    capacity: int = parameter("the largest capacity, and weight", most=1 << 10, default=6)
    values: int = parameter("the largest value of an item", most=1 << 10, default=5)

    def __post_init__(self) -> None:
        for what in ("items", "capacity", "values"):
            at_least(what, getattr(self, what), 1, "a knapsack has one")

    def largest(self) -> int:
        """The largest entry."""
        return self.items * self.values

    def alphabet(self) -> Alphabet:
        return Alphabet.of(BAR, ROW, END, number=numbers(max(self.capacity, self.largest())))

    def edges(self) -> Edges:
        """As many values as weights: states of their own for each number of items."""
        weights, edges = repeated("start", numbers(self.capacity), self.items)
        for items, state in enumerate(weights):
            values, of_values = repeated(f"values of {items}", numbers(self.values), items)
            edges += [(state, values[0], [BAR]), *of_values, (values[-1], "capacity", [BAR])]
        edges += [("capacity", "known", numbers(self.capacity)), ("known", "row", [ROW])]
        row, in_row = repeated("row", numbers(self.largest()), self.capacity + 1)
        return edges + in_row + leaving(row[1:], "row", [ROW]) + leaving(row[1:], "end", [END])

    def table(self) -> int:
        return self.items * (self.capacity + 1)

    def longest(self) -> int:
        return 2 * self.items + 4 + self.items * (self.capacity + 2) + 1

    def prompts(self) -> str:
        return f"weights of at most {self.items} items, as many values, and a capacity of at most {self.capacity}"

    def scores(self) -> Stream:
        x = Tokens(self.alphabet())
        number, bar, mark = x.is_in("number"), x.is_in([BAR]), x.is_in([ROW])
        value = x.number({n: int(n) for n in x.alphabet.tokens if n.isdecimal()}, "value")
        asked, part = present(mark), bar.cumsum()
        place, column = count(number, reset=bar).named("item"), count(number, reset=mark).named("column")
        row = mark.cumsum().named("row")
        items = latch(place.shift(1), when=bar & (part <= 1)).named("items")
        capacity = latch(value.shift(1), when=mark & ~asked.shift(1)).named("capacity")
        item = (place - 1).one_hot(self.items)
        present_item = (row - 1).one_hot(self.items)
        weight = memory.write(item, value, when=number & (part <= 0), policy="once", name="weights").read(present_item)
        worth = memory.write(item, value, when=number & (part >= 1) & (part <= 1), policy="once", name="values").read(
            present_item
        )

        best = memory.write(self._column(column - 1), value, when=asked & number, policy="last", name="above")
        without, within = best.read(self._column(column)), best.read(self._column(column + weight))
        too_heavy = column + weight > capacity
        entry = without + (within + worth - without - (self.largest() + self.values) * too_heavy).relu()
        rules = [((row >= items) & (column >= 1), END), (column > capacity, ROW)]
        values = {name: int(name) for name in numbers(self.largest())}
        return written(x.alphabet, entry, values, rules, self.dtype)

    def _column(self, place: Stream) -> Stream:
        return place.one_hot(self.capacity + 1)

    def solver(self) -> Solver:
        return KnapsackSolver(self.items, self.capacity, self.values)
