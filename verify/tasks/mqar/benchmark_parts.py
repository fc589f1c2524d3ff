"""The parts of a sequence in the benchmark's layout: how many pairs, slots for queries and fillers, and where."""

from collections.abc import Sequence
from dataclasses import dataclass

from verify.arguments import at_least, at_most, one_of
from verify.tasks.mqar.family import NEUTRAL, MqarTask
from verify.tasks.task import IGNORED

FILLERS = ("neutral", "vocabulary")


@dataclass(frozen=True)
class BenchmarkParts(MqarTask):
    """[k1 v1 .. kn vn | every key once more, at even offsets], asked at those n query slots only.

    pairs: n; keys are distinct, values are distinct.
    power: slot i = 0, 1, .. is taken with probability proportional to power * (i + 1)**(power - 1), without
        replacement, the first pair choosing first: a small power asks early and late queries are rare.
    filler: what stands elsewhere in the second part: the neutral token, or uniform tokens of the whole alphabet, keys
        and values included ("vocabulary", the benchmark's default), which rebinds keys at random. The label stays the
        value of the context, which is the answer of the write policy "first".
    """

    pairs: int
    power: float = 0.01
    filler: str = "neutral"

    def __post_init__(self):
        super().__post_init__()
        one_of("filler", self.filler, FILLERS)
        at_least("pairs", self.pairs, 1, "a query needs a pair")
        at_most("pairs", self.pairs, self.kappa, f"keys are distinct and kappa = {self.kappa}")
        at_most("pairs", self.pairs, self.vocab, f"values are distinct and vocab = {self.vocab}")
        needed = 4 * self.pairs
        at_least(
            "length", self.length, needed, f"pairs = {self.pairs} take {2 * self.pairs} positions and as many for slots"
        )
        if not self.power > 0:
            raise ValueError(
                f"power = {self.power} is not positive, so it is no power law; 0.01 is the benchmark's power."
            )

    @property
    def context(self) -> int:
        """Length of the first part."""
        return 2 * self.pairs

    @property
    def slots(self) -> int:
        """How many positions of the second part may hold a query."""
        return (self.length - self.context) // 2

    @property
    def noise(self) -> tuple[int, ...]:
        """The token ids that may stand between queries."""
        return tuple(range(self.alphabet_size)) if self.filler == "vocabulary" else (NEUTRAL,)

    def assemble(
        self, keys: Sequence[int], values: Sequence[int], slots: Sequence[int], noise: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """(tokens, labels): the pairs, then keys[i] asked in slots[i], then `noise` over the free positions in
        order.
        """
        tokens = [token for pair in zip(keys, values) for token in pair]
        asked = {2 * slot: pair for slot, pair in zip(slots, zip(keys, values))}
        free = iter(noise)
        labels = [IGNORED] * len(tokens)
        for offset in range(len(noise) + len(asked)):
            key, value = asked[offset] if offset in asked else (next(free), IGNORED)
            tokens.append(key)
            labels.append(value)
        return tokens, labels
