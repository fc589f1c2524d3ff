"""Count-in-row: how long is the run of ones that ends here? (paper C, Definition 1, read causally)

Token ids: 0 and 1 are the digits of the input, 2 + n answers n; runs longer than `largest` are answered by it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product

import numpy as np

from verify.arguments import at_least, at_most
from verify.tasks.task import Batch, Task

ANSWERS = 2  # id of the answer 0


def run_lengths(digits: Sequence[int]) -> list[int]:
    """y_i = Σ_j Π_{k=j..i} [x_k = 1], by looking back from every position."""
    lengths = []
    for i in range(len(digits)):
        j = i
        while j >= 0 and digits[j] == 1:
            j -= 1
        lengths.append(i - j)
    return lengths


@dataclass(frozen=True)
class CountInRow(Task):
    """Binary sequences of `length` digits, asked at every position; counts are capped at `largest`.

    ones: the probability of a one; fair coins (1/2) hardly ever give a long run.
    """

    length: int
    largest: int
    ones: float = 0.9

    name = "count-in-row"

    def __post_init__(self):
        at_least("length", self.length, 1, "a sequence has at least one digit")
        at_least("largest", self.largest, 1, "some run must be counted")
        at_least("ones", self.ones, 0, "it is a probability")
        at_most("ones", self.ones, 1, "it is a probability")

    def answers(self, digits: Sequence[int]) -> list[int]:
        return [ANSWERS + min(n, self.largest) for n in run_lengths(digits)]

    def draw(self, rng: np.random.Generator, count: int) -> Batch:
        """Independent digits."""
        digits = (rng.random((count, self.length)) < self.ones).astype(np.int64)
        return Batch.of((row, self.answers(row)) for row in digits.tolist())

    def rows(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        """Every binary sequence."""
        for digits in product((0, 1), repeat=self.length):
            yield digits, self.answers(digits)

    def exhaustive_count(self) -> int:
        """2 ** length."""
        return 2**self.length

    def adversarial(self) -> Iterator[Batch]:
        """Long runs, resets at every distance, and resets in a row."""
        patterns = {
            "ones only": [1],
            "zeros only": [0],
            "one and zero in turn": [1, 0],
            "two zeros between runs": [1, 1, 1, 0, 0],
            "a zero once in a while": [0] + [1] * max(1, self.length // 3),
        }
        for case, pattern in patterns.items():
            digits = list(islice(cycle(pattern), self.length))
            yield Batch.of([(digits, self.answers(digits))], case)
        growing = [digit for n in range(self.length) for digit in (*[1] * n, 0)][: self.length]
        yield Batch.of([(growing, self.answers(growing))], "runs of every length")
        last = [1] * (self.length - 1) + [0]
        yield Batch.of([(last, self.answers(last))], "reset at the very end")

    def describe(self) -> str:
        """The domain and its parameters."""
        return f"{self.length} digits, {100 * self.ones:g} % ones, counts up to {self.largest}"
