"""KEEP n-th: remember one token for ever (after paper A, Corollary 2; n = 1 is KEEP FIRST).

Statement. y_t = x_n for every t ≥ n, by an S6 layer on input with a positional encoding. The paper
takes the difference of two bases, whose steps are large before n (32a) and before n − 1 (32b), and
0 from then on. Ours is one step, large up to position n and 0 from then on. Here the position is
counted in the model (Proposition 1), so that stock language models do it too: block 1 counts, block
2 latches while the count is at most n.

Before n. Appendix D.2 asks from n on only; before n ours answers x_t.

True on paper, not on floats. A float32 count stops at 2^24: only tests that a saturated count still
passes may be asked of it (`exactness/saturation.py`); then the answer is right at every length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import balanced
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout
from compiler.language.source import Tokens
from compiler.language.stream import constant
from compiler.language.words import latch
from constructions.construction import Construction, parameter
from constructions.papers import SELECTIVITY
from verify.arguments import at_least
from verify.bounds import keep_nth_information_bits
from verify.tasks.keep import Keep
from verify.tasks.task import Task

_COUNTED = "with the position of Proposition 1"


@dataclass(frozen=True)
class KeepNth(Construction):
    name: ClassVar[str] = "keep-nth"
    theorem: ClassVar[str] = f"{SELECTIVITY}, Corollary 2"
    mixers: ClassVar[tuple[str, ...]] = ("mamba",)

    n: int = parameter("which token to keep (1: the first)", default=5)
    vocab: int = parameter("number of tokens", default=128)
    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba")
    length: int = parameter("tokens in a sequence (0: 50, or n where that is more)", most=1 << 24, default=0)
    max_length: int = parameter(
        "longest sequence that the promise covers (0: 2^40, for mamba2 2^20)", default=0, kw_only=True
    )

    def __post_init__(self):
        if self.n < 1:
            raise ValueError(f"n = {self.n} is no position; the first one is n = 1")
        at_least("vocab", self.vocab, 1, "there must be a token to keep")
        if self.length:
            at_least("length", self.length, self.n, "the token to keep must stand in the sequence")

    @property
    def target(self) -> str:
        return self.arch

    def letters(self) -> int:
        """The tokens, which are the answers as well."""
        return self.vocab

    def circuit(self) -> Circuit:
        """A latch that is open while the count of positions is at most n."""
        alphabet = Alphabet.of(v=self.vocab)
        book = balanced(self.vocab)
        position = constant(1).cumsum().named("position")
        kept = latch(Tokens(alphabet).code("v", book, "token"), when=position <= self.n).named("kept")
        return Circuit(self.name, readout(kept, book, alphabet, "v"), InputLanguage.everything(alphabet, self.reach))

    @property
    def reach(self) -> int:
        """The longest sequence.

        In Mamba-2 the gated norm sees the count times 2^27, which its ballast bears up to 2^22.5 tokens at least.
        """
        return self.max_length or (2**20 if self.arch == "mamba2" else 2**40)

    def tasks(self) -> list[Task]:
        return [Keep(self.n, self.vocab, self.length or max(50, self.n))]

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "n": self.n}

    def information_bits(self) -> float:
        """The token, or how many came before it."""
        return keep_nth_information_bits(self.n, self.vocab, self.reach)

    def otherwise(self) -> str:
        """The corollary's layer is given the position, and takes the difference of two bases; here a block before it
        counts.
        """
        return f"{_COUNTED}, by one step and not by two"

    def former_statements(self) -> tuple[str, ...]:
        """Earlier versions told of the position alone."""
        return (*super().former_statements(), self._built_with(_COUNTED))
