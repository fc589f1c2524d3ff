"""Which sequences of a task are run: all, or as many as a budget allows, the hard ones first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from verify.tasks.task import Batch, HardCase, Task

EXHAUSTIVE_LIMIT = 20_000
_NUMBERS_PER_BATCH = 1 << 22  # beyond, fresh pages take as long as the arithmetic
_SCORES_OF_AUTO = 1 << 31
_PRODUCTS_OF_AUTO = 1 << 40  # about half a minute of one core
BUDGET = "2^31 scores and 2^40 multiplications"


@dataclass(frozen=True)
class Cost:
    """What one position takes. scores: of how many tokens; products: multiplications of all models that are run;
    widest: numbers that are held at most, which bound a batch (0: the scores)."""

    scores: int
    products: int = 0
    widest: int = 0

    @property
    def affordable(self) -> int:
        """How many positions are within the budget."""
        return min(_SCORES_OF_AUTO // self.scores, _PRODUCTS_OF_AUTO // max(1, self.products))


@dataclass(frozen=True)
class Chosen:
    """What is run of a task: how many sequences in which batches, how many hard ones are left out, and how many random
    ones were asked for and are not drawn."""

    count: int
    batches: Iterator[Batch]
    left_out: int = 0
    not_drawn: int = 0


def chosen_batches(task: Task, mode: str, samples: int, seed: int, cost: Cost, adversarial: bool = True) -> Chosen:
    """Adversarial cases first, then every sequence or random ones.

    mode: "exhaustive", "random", "none", or "auto": exhaustive up to 20,000 sequences, else adversarial and random ones
    within the budget of 2^31 scores and 2^40 multiplications, and one random one in any case. A promise about random
    inputs leaves the adversarial cases out.
    """
    if mode == "none":
        return Chosen(0, iter(()))
    size = rows_of_a_batch(task, cost)
    cases = list(task.hard_cases()) if adversarial else []
    every = mode == "exhaustive" or (mode == "auto" and task.exhaustive_count() <= EXHAUSTIVE_LIMIT)
    positions = cost.affordable
    within = mode == "auto" and not every
    rows = spread(cases, max(0, positions - task.length)) if within else [range(case.count) for case in cases]
    run = (case.batch(which) for case, which in zip(cases, rows, strict=True) if len(which))
    count = sum(map(len, rows))
    left_out = sum(case.count for case in cases) - count
    if every:
        return Chosen(count + task.exhaustive_count(), chain(split(run, size), task.exhaustive(batch_size=size)))
    drawn = samples
    if mode == "auto":
        samples = min(samples, task.most_random)
        left = positions - sum(case.length * len(which) for case, which in zip(cases, rows, strict=True))
        drawn = min(samples, max(1, left // task.length))
    batches = chain(split(run, size), task.random(drawn, seed, batch_size=size))
    return Chosen(count + drawn, batches, left_out, samples - drawn)


def rows_of_a_batch(task: Task, cost: Cost) -> int:
    """How many sequences are run at once."""
    return max(1, _NUMBERS_PER_BATCH // (task.length * (cost.widest or cost.scores)))


def affordable(task: Task, samples: int, cost: Cost, share: float) -> int:
    """How many of these random sequences are within a share of the budget, one at least."""
    return min(samples, max(1, int(share * cost.affordable) // task.length))


def spread(cases: Sequence[HardCase], positions: int) -> list[Sequence[int]]:
    """Which sequences of each case are run, so that all together have no more positions than this.

    Every case gets an equal share, and what short ones leave over goes to the longer: the first, the last, and evenly
    between. Where that is less than one of each, the shortest get one.
    """
    rows: list[Sequence[int]] = [range(0)] * len(cases)
    order = sorted(range(len(cases)), key=lambda i: (cases[i].length * cases[i].count, i))
    left = positions - sum(case.length for case in cases)  # beyond the one of each case
    for done, i in enumerate(order):
        length = cases[i].length
        if left < 0:
            share = int(length <= positions)
            positions -= length * share
        else:
            share = min(cases[i].count, 1 + left // (len(cases) - done) // length)
            left -= (share - 1) * length
        rows[i] = np.linspace(0, cases[i].count - 1, share).round().astype(int).tolist()
    return rows


def split(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """The same sequences in batches of at most so many."""
    for batch in batches:
        for start in range(0, len(batch), size):
            rows = slice(start, start + size)
            yield Batch(batch.tokens[rows], batch.labels[rows], batch.case)
