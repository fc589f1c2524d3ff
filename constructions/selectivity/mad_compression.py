"""Compression of the MAD suite: the state behind one token tells every token before it.

Statement (beyond the papers). A memory keeps each token under its place, the count of tokens so far, and a place token
reads it. What is kept at the aggregation token has n·⌈log2 V⌉ bits or more, and any model must keep n·log2 V.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import ClassVar, Literal

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens
from compiler.language.words import count
from constructions.construction import Construction, WithMemory, parameter
from constructions.papers import FREE_LUNCH, OF_PAPER_B
from verify.arguments import at_least
from verify.tasks.mad_memory import Compression
from verify.tasks.task import Task


@dataclass(frozen=True)
class MadCompression(WithMemory, Construction):
    name: ClassVar[str] = "mad-compression"
    theorem: ClassVar[str] = f"MAD suite; {FREE_LUNCH}, after Theorem 2"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    n: int = parameter("tokens to keep", most=1 << 10, default=31)
    vocab: int = parameter("tokens that are kept and the aggregation token", default=16)
    questions: int = parameter("places that are asked for", most=1 << 12, default=31)
    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba")
    max_length: int = parameter("longest sequence that the promise covers", default=4096, kw_only=True)

    def __post_init__(self) -> None:
        at_least("n", self.n, 1, "there must be a token to keep")
        at_least("vocab", self.vocab, 2, "a token and the aggregation token are needed")
        at_least("questions", self.questions, 1, "something is asked")
        at_least("max_length", self.max_length, self.n + 1 + self.questions, "a sequence takes so much")

    @property
    def target(self) -> str:
        return self.arch

    def letters(self) -> int:
        return self.vocab + self.n

    def circuit(self) -> Circuit:
        """Tokens under their places; a place token reads its own."""
        alphabet = Alphabet.of(x=self.vocab - 1, other=["|", *(f"p{i}" for i in range(self.n))])
        x = Tokens(alphabet)
        token, is_token = x.one_hot("x", name="token"), x.is_in("x")
        place = (count(is_token, reset=x.is_in(["|"])) - 1).one_hot(self.n).named("place")
        text = memory.write(place, token, when=is_token, policy="once", name="text")
        asked = x.one_hot([f"p{i}" for i in range(self.n)], name="asked")
        return Circuit(self.name, readout_one_hot(text.read(asked), alphabet, "x"), self.language(alphabet))

    def language(self, alphabet: Alphabet) -> InputLanguage:
        """At most n tokens, the aggregation token, places."""
        places = tuple(f"p{i}" for i in range(self.n))
        text = [(f"t{i}", f"t{i + 1}", "x") for i in range(self.n)]
        edges = [*text, *((f"t{i}", "asked", ("|",)) for i in range(self.n + 1)), ("asked", "asked", places)]
        return InputLanguage.of(alphabet, "t0", edges, self.max_length, "tokens, the aggregation token, places")

    def tasks(self) -> list[Task]:
        return [Compression(self.n, self.vocab - 1, self.n + 1 + self.questions)]

    def information_bits(self) -> float:
        """Every token may have been any."""
        return self.n * log2(self.vocab - 1)
