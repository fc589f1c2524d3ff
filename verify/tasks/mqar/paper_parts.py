"""The parts of a sequence in the paper's layout: how many pairs, queries and fillers, and where."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

from verify.arguments import at_least, at_most, one_of
from verify.tasks.mqar.family import NEUTRAL, MqarTask
from verify.tasks.mqar.oracle import POLICIES

NEUTRAL_SHARE = {"neutral": 1.0, "values": 0.0, "mixed": 0.5}
"""Filler -> the share of noise that is the neutral token; the rest is uniform over the values."""
NOISE = {
    "neutral": "neutral (the paper: random values)",
    "values": "random values, as in the paper",
    "mixed": "neutral or random values (the paper: random values)",
}
"""Filler -> what stands between the queries, in words."""

_UNSET = cast(int, None)  # `__post_init__` puts the default in its place


@dataclass(frozen=True)
class PaperParts(MqarTask):
    """[k1 v1 .. kn vn | queries interwoven with noise], asked at the queries only.

    pairs: n, by default kappa; the keys of the context are a random subset in random order, so distinct.
    queries: how many positions of the second part hold a query, by default `pairs`; where they stand is uniform.
    filler: noise is the neutral token ("neutral"), a uniform value as in the paper ("values"), or a fair coin's choice
        of the two ("mixed").
    repeat_queries: False, each key is queried at most once, as in the layout (46) of Theorems 2-4; True, queries
        are drawn with repetition, and (query, noise value) then rebinds a key under the policies "last" and "sum".
    rebind: context keys are drawn uniformly with repetition (App. D.3). Each distinct key is still queried at most once
        unless repeat_queries, so a sequence with few distinct keys has fewer queries than `queries`.
    write: the policy that decides the label; a query without an answer under it is IGNORED ("sum" after two writes).
    """

    filler: str = "values"
    pairs: int = _UNSET
    queries: int = _UNSET
    repeat_queries: bool = False
    rebind: bool = False
    write: str = "first"

    def __post_init__(self):
        super().__post_init__()
        one_of("filler", self.filler, tuple(NEUTRAL_SHARE))
        one_of("write", self.write, tuple(POLICIES))
        # The defaults become numbers here, once, so that no other method has to know about None.
        object.__setattr__(self, "pairs", self.kappa if self.pairs is None else self.pairs)
        object.__setattr__(self, "queries", self.pairs if self.queries is None else self.queries)
        at_least("pairs", self.pairs, 1, "a query needs a pair")
        at_least("queries", self.queries, 1, "a sequence asks something")
        if not self.rebind:
            at_most("pairs", self.pairs, self.kappa, f"the context keys are distinct and kappa = {self.kappa}")
        if not self.repeat_queries:
            at_most("queries", self.queries, self.pairs, f"each of pairs = {self.pairs} is queried at most once")
        needed = 2 * self.pairs + self.queries
        at_least(
            "length", self.length, needed, f"pairs = {self.pairs} and queries = {self.queries} take {needed} positions"
        )

    @property
    def tail(self) -> int:
        """Length of the second part, queries and noise."""
        return self.length - 2 * self.pairs

    @cached_property
    def noise(self) -> tuple[int, ...]:
        """The token ids that may stand between queries."""
        values = tuple(self.values)
        return {"neutral": (NEUTRAL,), "values": values, "mixed": (NEUTRAL, *values)}[self.filler]
