"""Copying and selective copying of the MAD suite: at the i-th blank behind the copy token, the i-th token.

Statement (beyond the papers). The place of a token is the count of tokens so far; a memory keeps each under its place,
and the count of blanks since the copy token reads it. Blanks are counted before it too, where nobody asks. One circuit
for both forms, on the suite's ids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens
from compiler.language.words import count, present
from constructions.construction import Construction, WithMemory, parameter
from constructions.papers import FREE_LUNCH, OF_PAPER_B
from verify.arguments import at_least
from verify.tasks.mad import MadCopying as CopyTask
from verify.tasks.task import Task


@dataclass(frozen=True)
class MadCopying(WithMemory, Construction):
    name: ClassVar[str] = "mad-copying"
    theorem: ClassVar[str] = f"MAD suite; {FREE_LUNCH}, after Theorem 2"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_B

    n: int = parameter("tokens to copy", most=1 << 12, default=16)
    vocab: int = parameter("tokens in all: those that are copied, the blank and the copy token", default=16)
    length: int = parameter("tokens in a sequence", most=1 << 16, default=256)
    selective: bool = parameter("blanks among the tokens", default=False)
    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba")
    max_length: int = parameter("longest sequence that the promise covers", default=4096, kw_only=True)

    def __post_init__(self) -> None:
        at_least("n", self.n, 1, "there must be a token to copy")
        at_least("vocab", self.vocab, 3, "a token, the blank and the copy token are needed")
        at_least("length", self.length, 2 * self.n + 1, "tokens, copy token and as many blanks take so much")

    @property
    def target(self) -> str:
        return self.arch

    def letters(self) -> int:
        return self.vocab

    def circuit(self) -> Circuit:
        """Tokens under their places; at most n are kept, and one copy is asked for."""
        alphabet = Alphabet.of(x=self.vocab - 2, other=["_", "|"])
        x = Tokens(alphabet)
        token, kept, ask = x.one_hot("x", name="token"), x.is_in("x"), x.is_in(["|"])
        place = count(kept, reset=ask).named("place")
        asked = count(x.is_in(["_"]), reset=ask).named("asked")
        writes = kept & ~present(ask)
        text = memory.write((place - 1).one_hot(self.n), token, when=writes, policy="once", name="text")
        scores = readout_one_hot(text.read((asked - 1).one_hot(self.n)), alphabet, "x")
        return Circuit(self.name, scores, self.language(alphabet))

    def language(self, alphabet: Alphabet) -> InputLanguage:
        """Tokens and blanks, one copy token, blanks."""
        edges = [("text", "text", "x"), ("text", "text", ("_",)), ("text", "copy", ("|",)), ("copy", "copy", ("_",))]
        text = "tokens among blanks, the copy token, blanks"
        return InputLanguage.of(alphabet, "text", edges, self.max_length, text)

    def tasks(self) -> list[Task]:
        return [CopyTask(self.n, self.vocab - 2, self.length, self.selective)]
