"""In-context recall of the MAD suite, with or without noise tokens: the memory of the first write, on the suite's ids.

Statement (beyond the papers). A key keeps the value that it was first shown with, and a read at the key gives it: MQAR
with write policy "first" (Theorem 2's memory with a mask), over an alphabet of keys, values, noise and the prefix.
Noise and prefix are neither keys nor values, so nothing is written at them.

Condition. A key has one value in a sequence, as the suite has it; of others the first counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import balanced
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout
from compiler.language.source import Tokens
from constructions.construction import Construction, WithMemory, parameter
from constructions.papers import OF_RECALL, SELECTIVITY
from verify.arguments import at_least
from verify.tasks.mad import InContextRecall as RecallTask
from verify.tasks.task import Task


@dataclass(frozen=True)
class InContextRecall(WithMemory, Construction):
    name: ClassVar[str] = "in-context-recall"
    theorem: ClassVar[str] = f"MAD suite; {SELECTIVITY}, after Theorem 2"
    mixers: ClassVar[tuple[str, ...]] = ("mamba", "mamba2", "s4d")

    vocab: int = parameter("tokens in all: keys, values, noise and the prefix", default=16)
    noise: int = parameter("noise tokens among them", default=0)
    share: float = parameter("share of pairs that are noise", default=0.0)
    every: bool = parameter("ask for every key that was shown before (no prefix then)", default=False)
    length: int = parameter("tokens in a sequence", most=1 << 24, default=128)
    arch: Literal["mamba", "mamba2", "s4d"] = parameter("which mixer", default="mamba")

    def __post_init__(self) -> None:
        at_least("noise", self.noise, 0, "there is no less than none")
        at_least("vocab", self.vocab, self.noise + 3 - self.every, "a key, a value and the prefix are needed")
        if not 0 <= self.share < 1:
            raise ValueError(f"share = {self.share} is no share of the pairs; it must be at least 0 and below 1")
        if self.share and not self.noise:
            raise ValueError(f"share = {self.share} needs noise tokens, and noise = 0; take noise = 1 at least")

    @property
    def target(self) -> str:
        return self.arch

    @property
    def keys(self) -> int:
        return (self.vocab - self.noise - (not self.every)) // 2

    @property
    def values(self) -> int:
        return self.vocab - self.noise - (not self.every) - self.keys

    def letters(self) -> int:
        return self.vocab

    def circuit(self) -> Circuit:
        """The first value of each key."""
        prefix = [] if self.every else ["|"]
        noise = [f"n{i}" for i in range(self.noise)]
        alphabet = Alphabet.of(k=self.keys, v=self.values, other=[*noise, *prefix])
        x, book = Tokens(alphabet), balanced(self.values)
        key, value = x.one_hot("k", name="key"), x.code("v", book, "value")
        is_pair = x.is_in("k").shift(1) & x.is_in("v")
        recalled = memory.write(key.shift(1), value, is_pair, "first", "recalled").read(key)
        scores = readout(recalled, book, alphabet, "v")
        return Circuit(self.name, scores, InputLanguage.everything(alphabet, self.max_length))

    def tasks(self) -> list[Task]:
        return [RecallTask(self.keys, self.values, self.noise, self.length, self.share, self.every)]

    def asks(self) -> dict[str, Any]:
        return {"name": "mqar", "write": "first"}

    def beyond(self) -> str:
        """The theorems' memories add up all that is written under a key."""
        return ", ".join(filter(None, (super().beyond(), "a key keeps its first value")))

    def nearest(self) -> str:
        """The theorem of recall on its mixer."""
        return f"MAD suite; {SELECTIVITY}, after Theorem {OF_RECALL[self.arch]}"
