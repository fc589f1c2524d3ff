"""Memorization of the MAD suite: facts stored in the weights, as a table, for no sequence holds them.

Statement (beyond the papers). The value of a key is a linear map of its one-hot, and the insert token sees the key one
place behind it. The facts are drawn from the seed: a checkpoint is right for one map and for no other, since two maps
label the same sequence differently. Any exact model tells K·log2 V bits by its weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import ClassVar, Literal

import numpy as np

from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens
from constructions.construction import Construction, parameter
from verify.arguments import at_least
from verify.tasks.mad_memory import Memorization, random_map
from verify.tasks.task import Task


@dataclass(frozen=True)
class MadMemorization(Construction):
    name: ClassVar[str] = "mad-memorization"
    theorem: ClassVar[str] = "MAD suite"

    vocab: int = parameter("tokens in all: keys, values and the insert token", most=1 << 16, default=256)
    length: int = parameter("tokens in a sequence, all in pairs: of 9 there are 8", most=1 << 24, default=32)
    arch: Literal["mamba", "mamba2", "s4d", "gated-deltanet", "gated-deltanet-qwen"] = parameter(
        "which mixer", default="mamba"
    )
    max_length: int = parameter("longest sequence that the promise covers", default=4096, kw_only=True)

    def __post_init__(self) -> None:
        at_least("vocab", self.vocab, 3, "a key, a value and the insert token are needed")
        at_least("length", self.length, 2, "a key and the insert token take so much")
        at_least("max_length", self.max_length, self.length, "the task has sequences of this length")

    @property
    def target(self) -> str:
        return self.arch

    @property
    def keys(self) -> int:
        return (self.vocab - 1) // 2

    def facts(self) -> tuple[int, ...]:
        """The value of each key, by the seed."""
        return random_map(self.keys, self.vocab - 1 - self.keys, self.seed)

    def letters(self) -> int:
        return self.vocab

    def circuit(self) -> Circuit:
        """The key before the present token, through the table."""
        values = self.vocab - 1 - self.keys
        alphabet = Alphabet.of(k=self.keys, v=values, other=["|"])
        table = np.zeros((alphabet.size, self.keys))
        table[self.keys + np.array(self.facts()), range(self.keys)] = 1
        known = table @ Tokens(alphabet).one_hot("k", name="key").shift(1)
        return Circuit(self.name, readout_one_hot(known, alphabet), self.language(alphabet))

    def language(self, alphabet: Alphabet) -> InputLanguage:
        """A key and the insert token, again and again."""
        edges = [("key", "insert", "k"), ("insert", "key", ("|",))]
        return InputLanguage.of(alphabet, "key", edges, self.max_length, "keys, each before the insert token")

    def tasks(self) -> list[Task]:
        return [Memorization(self.facts(), self.vocab - 1 - self.keys, self.length // 2 * 2)]

    def information_bits(self) -> float:
        """The value of the key before: keys of one value need no two states. The facts are bits of the weights."""
        return log2(len(set(self.facts())))
