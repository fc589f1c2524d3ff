"""What all MQAR tasks share: the alphabet, its checks, and labels from the oracle."""

from collections.abc import Sequence
from dataclasses import dataclass

from verify.arguments import at_least
from verify.tasks.mqar.oracle import mqar_oracle
from verify.tasks.task import IGNORED, Task

NEUTRAL = 0
"""The filler token `_`, neither key nor value."""


@dataclass(frozen=True)
class MqarTask(Task):
    """Sequences of `length` tokens over one neutral filler, `kappa` keys and `vocab` values."""

    kappa: int
    vocab: int
    length: int

    def __post_init__(self):
        at_least("kappa", self.kappa, 1, "a pair needs a key")
        at_least("vocab", self.vocab, 1, "a pair needs a value")
        at_least("length", self.length, 1, "a sequence has at least one token")

    @property
    def keys(self) -> range:
        """Token ids of the keys."""
        return range(1, self.kappa + 1)

    @property
    def values(self) -> range:
        """Token ids of the values."""
        return range(self.kappa + 1, self.kappa + self.vocab + 1)

    @property
    def alphabet_size(self) -> int:
        """How many token ids there are: filler, keys, values."""
        return 1 + self.kappa + self.vocab

    def oracle_labels(self, tokens: Sequence[int], write: str, start: int = 0) -> list[int]:
        """The oracle's answers as labels; IGNORED before `start` and where there is no answer."""
        answers = mqar_oracle(tokens, self.kappa, self.vocab, write)
        asked = [IGNORED if answer is None else answer for answer in answers[start:]]
        return [IGNORED] * min(start, len(answers)) + asked
