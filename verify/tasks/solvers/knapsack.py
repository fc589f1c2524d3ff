"""The 0/1 knapsack: prompts `2 3 | 4 5 | 4 ;` of weights, values and a capacity; rows from the full capacity down to 0.

Row i has the best value of the first i items within c, c − 1, …, 0; of the last row only its first entry, the answer,
is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from verify.tasks.chain import Solver


class KnapsackSolver(Solver):
    """At most `items` items of weight 0 to `capacity` and value 0 to `worth`, and capacities up to `capacity`."""

    name = "knapsack"

    def __init__(self, items: int, capacity: int, worth: int):
        self.items, self.capacity, self.worth = items, capacity, worth

    def chain(self, prompt: Sequence[str]) -> list[str]:
        weights, values, rest = (
            [int(n) for n in part.split()] for part in " ".join(prompt).removesuffix(";").split("|")
        )
        cap = rest[0]
        best, rows = [0] * (cap + 1), []
        for weight, value in zip(weights, values, strict=True):
            best = [max(best[c], best[c - weight] + value) if weight <= c else best[c] for c in range(cap + 1)]
            rows.append([str(best[c]) for c in range(cap, -1, -1)])
        rows = [*rows[:-1], [str(best[cap])]]
        return " ; ".join(" ".join(row) for row in rows).split() + ["."]

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for n in range(self.items + 1):
            for weights in product(range(self.capacity + 1), repeat=n):
                for values in product(range(self.worth + 1), repeat=n):
                    for cap in range(self.capacity + 1):
                        yield self._prompt(weights, values, cap)

    def count(self) -> int:
        kinds = (self.capacity + 1) * (self.worth + 1)
        return (self.capacity + 1) * sum(kinds**n for n in range(self.items + 1))

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        n = int(max(rng.integers(self.items + 1), rng.integers(self.items + 1)))
        weights = rng.integers(1, 1 + max(1, self.capacity // int(rng.integers(1, 5))), size=n).clip(max=self.capacity)
        return self._prompt(weights, rng.integers(self.worth + 1, size=n), int(rng.integers(self.capacity + 1)))

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        n, cap, worth = self.items, self.capacity, self.worth
        yield "no item", self._prompt((), (), cap)
        yield "no room", self._prompt((1,) * n, (worth,) * n, 0)
        yield "everything fits", self._prompt((0,) * n, (worth,) * n, cap)
        yield "one item at a time", self._prompt((cap,) * n, range(n) if n <= worth else (worth,) * n, cap)
        yield "items that weigh one", self._prompt((1,) * n, (worth,) * n, cap)

    def describe(self) -> str:
        return f"knapsacks of at most {self.items} items, capacity {self.capacity}, values to {self.worth}"

    def _prompt(self, weights, values, cap: int) -> tuple[str, ...]:
        return (*map(str, weights), "|", *map(str, values), "|", str(cap), ";")
