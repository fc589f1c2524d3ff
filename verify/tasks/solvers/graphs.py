"""Shortest distances in a DAG by trying every path, and matrix-chain costs by trying every way to set brackets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from verify.tasks.chain import Solver


class FixedLength(Solver):
    """Prompts of `length` letters and `;`."""

    def __init__(self, letters: Sequence[str], length: int):
        self.letters, self.length = tuple(letters), length

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for letters in product(self.letters, repeat=self.length):
            yield (*letters, ";")

    def count(self) -> int:
        return len(self.letters) ** self.length

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        return (*(self.letters[i] for i in rng.integers(len(self.letters), size=self.length)), ";")

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "the first letter everywhere", (*(self.letters[0],) * self.length, ";")
        yield "the last letter everywhere", (*(self.letters[-1],) * self.length, ";")

    def describe(self) -> str:
        return f"{self.name}, {self.length} letters over {len(self.letters)}"


class DagSolver(FixedLength):
    """Edges 01 02 12 03 13 23 …, `-` for none.

    The chain has the distance of each node from node 0, too far to reach: n·L + 1 − L.
    """

    name = "shortest-path"

    def __init__(self, nodes: int, lengths: int):
        super().__init__(["-", *(f"e{n}" for n in range(1, lengths + 1))], nodes * (nodes - 1) // 2)
        self.nodes, self.far = nodes, (nodes - 1) * lengths + 1

    def chain(self, prompt: Sequence[str]) -> list[str]:
        edges: dict[tuple[int, int], int] = {}
        letters = iter(prompt)
        for b in range(self.nodes):
            for a in range(b):
                letter = next(letters)
                if letter != "-":
                    edges[a, b] = int(letter[1:])
        lengths: dict[int, list[int]] = {node: [] for node in range(self.nodes)}
        paths = [(0, 0)]
        while paths:
            node, length = paths.pop()
            lengths[node].append(length)
            paths += [(b, length + edges[node, b]) for b in range(self.nodes) if (node, b) in edges]
        return [*(str(min(lengths[node], default=self.far)) for node in range(self.nodes)), "."]


class MatrixChainSolver(FixedLength):
    """The cost of each partial product, short ones first."""

    name = "matrix-chain"

    def __init__(self, matrices: int, largest: int):
        super().__init__([f"d{n}" for n in range(1, largest + 1)], matrices + 1)
        self.matrices = matrices

    def chain(self, prompt: Sequence[str]) -> list[str]:
        dims = [int(name[1:]) for name in prompt[:-1]]
        spans = [
            dims[i : i + size + 1] for size in range(1, self.matrices + 1) for i in range(self.matrices - size + 1)
        ]
        return [*(str(min(self._costs(span))) for span in spans), "."]

    def _costs(self, dims: list[int]) -> list[int]:
        """Of every way to bracket the product."""
        if len(dims) == 2:
            return [0]
        found = []
        for cut in range(1, len(dims) - 1):
            here = dims[0] * dims[cut] * dims[-1]
            found += [here + a + b for a in self._costs(dims[: cut + 1]) for b in self._costs(dims[cut:])]
        return found
