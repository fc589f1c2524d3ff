"""Matrix-chain order and shortest paths in a DAG: tables over a fixed set of cells, after Theorem 3.

Statement. Theorem 3, for one size: cells in a fixed order, each of which needs earlier cells and letters by its place
alone.

What the paper leaves open is the value of a dependency that does not exist, which reads as “some special token” (A.3,
block 3): ours is 0 in a matrix chain, and in a graph the length of a path that there is not. The size is fixed: of a
matrix chain that grows, an entry would need ever more entries, against Assumption 2. A matrix chain multiplies three
numbers of the input. The paper bounds numbers by a polynomial of the size and multiplies with an error (Lemma 1). Ours
lie in a declared range, and the products are exact on it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar, Literal

from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.stream import Stream
from compiler.language.words import minimum
from constructions.construction import Construction, WithMemory, parameter
from constructions.copy_dp.problem import Cell, DPProblem
from constructions.copy_dp.sizes import ONE_SIZE, with_our_constant
from constructions.papers import FREE_LUNCH, OF_PAPER_B
from verify.arguments import at_least
from verify.tasks.chain import ChainTask, Solver
from verify.tasks.solvers.graphs import DagSolver, MatrixChainSolver
from verify.tasks.task import Task

NO_EDGE = "-"


@dataclass(frozen=True)
class FixedTable(WithMemory, Construction):
    """A DPProblem with a solver."""

    theorem: ClassVar[str] = f"{FREE_LUNCH}, Theorem 3"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B
    group: ClassVar[str] = "dp"

    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba", kw_only=True)
    max_length: int = parameter(
        "longest sequence that the promise covers (0: a prompt with its chain)", default=0, kw_only=True
    )

    @abstractmethod
    def problem(self) -> DPProblem:
        """The table."""

    @abstractmethod
    def solver(self) -> Solver:
        """The problem in plain Python, apart from the table's own description."""

    @property
    def target(self) -> str:
        return self.arch

    def language(self) -> InputLanguage:
        language = self.problem().language()
        return language.with_length(self.max_length) if self.max_length else language

    def longest_sequence(self) -> int:
        return self.problem().language().max_length

    def circuit(self) -> Circuit:
        return replace(self.problem().circuit(self.dtype), language=self.language())

    def letters(self) -> int:
        return self.problem().alphabet().size

    def tasks(self) -> list[Task]:
        return [ChainTask(self.solver(), self.language())]

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """Theorem 3 copies from O(T) places: ours are those of the input and the entries, a column for each."""
        source = with_our_constant(self.theorem, "place of the input and entry of the table")
        return {"d_state": self.problem().places()}, source


@dataclass(frozen=True)
class ShortestPath(FixedTable):
    """Shortest distances from node 0 in a DAG: `- ` or a length for each pair of nodes, in the order 01 02 12 03 …"""

    name: ClassVar[str] = "shortest-path"
    theorem: ClassVar[str] = ONE_SIZE
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    nodes: int = parameter("nodes 0 … n − 1; edges lead to larger ones", most=12, default=4)
    lengths: int = parameter("the largest length of an edge", most=64, default=3)

    def __post_init__(self) -> None:
        at_least("nodes", self.nodes, 2, "a path leads somewhere")
        at_least("lengths", self.lengths, 1, "an edge has a length")

    def problem(self) -> DPProblem:
        pairs = {pair: i for i, pair in enumerate((a, b) for b in range(self.nodes) for a in range(b))}
        far = self.unreachable()

        def transition(cell: Cell, letters: list[Stream], values: list[Stream]) -> Stream:
            ways = [value + self._length(letter, far) for letter, value in zip(letters, values, strict=True)]
            return reduce(minimum, ways, far - cell.table(lambda node: far * (node == 0)))

        return DPProblem(
            name=self.name,
            letters=[NO_EDGE, *(f"e{n}" for n in range(1, self.lengths + 1))],
            inputs=(len(pairs),),
            cells=[(node,) for node in range(self.nodes)],
            reads=lambda node: [(0, pairs.get((a, node), -1)) for a in range(self.nodes - 1)],
            needs=lambda node: [(a,) if a < node else None for a in range(self.nodes - 1)],
            transition=transition,
            largest=far,
            missing=far,
            blank=0,
            said=f"a length, or {NO_EDGE} for no edge, of each of {' '.join(f'{a}-{b}' for a, b in pairs)}; "
            f"{far} is written for a node that no path reaches",
        )

    def unreachable(self) -> int:
        """What is written for a node that no path reaches: one more than the longest path can take."""
        return (self.nodes - 1) * self.lengths + 1

    def _length(self, letter: Stream, far: int) -> Stream:
        """The letter's length, `far` where there is no edge."""
        return letter + far * (letter <= 0)

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "nodes": self.nodes}

    def solver(self) -> Solver:
        return DagSolver(self.nodes, self.lengths)


@dataclass(frozen=True)
class MatrixChain(FixedTable):
    """The fewest multiplications of a chain of matrices: `d2 d1 d3 ;` are a 2 × 1 and a 1 × 3 matrix."""

    name: ClassVar[str] = "matrix-chain"
    theorem: ClassVar[str] = ONE_SIZE
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    matrices: int = parameter("how many matrices", most=6, default=3)
    largest: int = parameter("the largest dimension", most=16, default=3)

    def __post_init__(self) -> None:
        at_least("matrices", self.matrices, 2, "a product has two factors")
        at_least("largest", self.largest, 1, "a matrix has a row")

    def problem(self) -> DPProblem:
        most = (self.matrices - 1) * self.largest**3
        beyond = most + 1
        cells = [(i, i + span) for span in range(self.matrices) for i in range(self.matrices - span)]

        def transition(cell: Cell, dims: list[Stream], values: list[Stream]) -> Stream:
            outer = (dims[0] + 1) * (dims[1] + 1)
            ways = []
            for k in range(self.matrices - 1):
                impossible = cell.table(lambda i, j, k=k: beyond * (k >= j - i))
                ways.append(values[2 * k] + values[2 * k + 1] + outer * (dims[2 + k] + 1) + impossible)
            return reduce(minimum, ways, beyond - cell.table(lambda i, j: beyond * (i == j)))

        def needs(i: int, j: int) -> list:
            splits = [((i, i + k), (i + k + 1, j)) if k < j - i else (None, None) for k in range(self.matrices - 1)]
            return [cell for pair in splits for cell in pair]

        return DPProblem(
            name=self.name,
            letters=[f"d{n}" for n in range(1, self.largest + 1)],
            inputs=(self.matrices + 1,),
            cells=cells,
            reads=lambda i, j: [
                (0, i if i < j else -1),  # one matrix by itself costs nothing, whatever its sizes
                (0, j + 1 if i < j else -1),
                *((0, i + k + 1 if k < j - i else -1) for k in range(self.matrices - 1)),
            ],
            needs=needs,
            transition=transition,
            largest=most,
        )

    def solver(self) -> Solver:
        return MatrixChainSolver(self.matrices, self.largest)
