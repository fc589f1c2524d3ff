"""Fuzzy in-context recall of the MAD suite: keys are words of key_size tokens, values of one to value_size.

Statement (beyond the papers). A key is a run of key_size key tokens, so its digits are the last tokens, 0 where they
are no keys; its number is latched at every key token. The i-th token of a value is kept under (number, i − 1), and
the same two, with the count of value tokens since the last key, read it. One circuit for each size of keys, up to
four: the digits of a shorter key may be those of an earlier key.

Condition. A key has one value in a sequence, as the suite has it; of others the first token at each place counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import bits
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_nearest
from compiler.language.source import Tokens
from compiler.language.words import count, latch
from constructions.construction import Construction, WithMemory, parameter
from constructions.papers import OF_RECALL, SELECTIVITY
from verify.arguments import at_least, at_most
from verify.tasks.fuzzy import FuzzyRecall as FuzzyTask
from verify.tasks.task import Task


@dataclass(frozen=True)
class FuzzyRecall(WithMemory, Construction):
    name: ClassVar[str] = "fuzzy-recall"
    theorem: ClassVar[str] = f"MAD suite; {SELECTIVITY}, after Theorem 2"
    mixers: ClassVar[tuple[str, ...]] = ("mamba", "mamba2", "s4d")

    vocab: int = parameter("tokens in all: keys, values, the padding and the prefix", default=10)
    key_size: int = parameter("tokens of a key", default=2)
    value_size: int = parameter("tokens of a value, at most", default=3)
    length: int = parameter("tokens in a sequence", most=1 << 20, default=64)
    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba")
    max_length: int = parameter("longest sequence that the promise covers", default=4096, kw_only=True)

    def __post_init__(self) -> None:
        for name, size in (("key_size", self.key_size), ("value_size", self.value_size)):
            at_least(name, size, 1, "a word has a token")
        at_most("key_size", self.key_size, 4, "a block's convolution sees the present token and three earlier ones")
        least = max(2 + 2 * self.key_size, 1 + 2 * self.value_size)
        at_least("vocab", self.vocab, least, "the tokens of a key, and those of a value, are distinct")

    @property
    def target(self) -> str:
        return self.arch

    @property
    def keys(self) -> int:
        return (self.vocab - 2) // 2

    def letters(self) -> int:
        return self.vocab

    def circuit(self) -> Circuit:
        """The value tokens by the number of the present key and their place in its value."""
        values, base = self.vocab - 2 - self.keys, self.keys + 1
        alphabet = Alphabet.of(k=self.keys, v=values, other=["_", "|"])
        x, book = Tokens(alphabet), bits(values)
        digits = np.zeros((1, alphabet.size))
        digits[0, list(alphabet.ids("k"))] = np.arange(1, base)
        token, is_key, is_value = x.one_hot(name="token"), x.is_in("k"), x.is_in("v")
        digit = digits @ token
        number = sum((base**i * digit.shift(i) for i in range(1, self.key_size)), start=digit)
        key = latch(number, when=is_key).named("key")
        place = count(is_value, reset=is_key).named("place")
        slots = base**self.key_size * self.value_size
        address = (key + base**self.key_size * place).one_hot(slots).named("address")
        text = memory.write(address.shift(1), x.code("v", book), is_value, policy="first", name="text")
        scores = readout_nearest(text.read(address), book, alphabet, "v", "_")
        return Circuit(self.name, scores, self.language(alphabet))

    def language(self, alphabet: Alphabet) -> InputLanguage:
        return InputLanguage.everything(alphabet, self.max_length)

    def tasks(self) -> list[Task]:
        return [FuzzyTask(self.keys, self.vocab - 2 - self.keys, self.key_size, self.value_size, self.length)]

    def beyond(self) -> str:
        """The theorems' memories add up all that is written under a key."""
        return ", ".join(filter(None, (super().beyond(), "a key keeps its first value")))

    def nearest(self) -> str:
        """The theorem of recall on its mixer."""
        return f"MAD suite; {SELECTIVITY}, after Theorem {OF_RECALL[self.arch]}"
