"""Induction heads: what followed the last time (after paper A, Lemma 3, Appendix C.2).

Statement. y_t = x_{j+1} for the latest j < t with x_j = x_t, and a blank where x_t is new.
One Mamba-Δᵀ layer (Δ varies along the state) does it with d = 2V and N = V (Lemma 3). Beyond
the paper: one *unmodified* Mamba layer does it with d_inner = V⌈log2(V+1)⌉ + V + 1 and N = 1,
and two Mamba-2 layers do.

Conditions. Before the first position there is no previous token, and nothing may be written
there: the paper pads with 0 (104). Left unsaid: the blank must win where nothing is stored. Its (109) has
softplus(0) = 0; log 2 would fade the keys that must be kept, so Δ needs a shift.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import bits, signs
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_nearest, readout_or_blank
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import decode
from constructions.construction import Construction, parameter
from constructions.papers import SELECTIVITY
from verify.arguments import at_least
from verify.bounds import induction_heads_bound, induction_heads_information_bits
from verify.certificates import Certificate
from verify.tasks.induction import Induction
from verify.tasks.task import Task

if TYPE_CHECKING:
    from compiler.artifact.model import Stack
    from compiler.compiled import Compiled

BLANK = "×"


@dataclass(frozen=True)
class InductionHeads(Construction):
    name: ClassVar[str] = "induction-heads"
    theorem: ClassVar[str] = f"{SELECTIVITY}, Lemma 3"
    mixers: ClassVar[tuple[str, ...]] = ("mamba-delta-t",)

    vocab: int = parameter("number of tokens", default=20)
    arch: Literal["mamba", "mamba2", "mamba-delta-t", "gated-deltanet", "gated-deltanet-qwen"] = parameter(
        "which mixer", default="mamba"
    )
    codes: bool = parameter("previous tokens as codes: dt_rank = ⌈log2 V⌉ + 1 rather than V", default=False)
    length: int = parameter("tokens in a sequence", most=1 << 24, default=100)
    max_length: int = parameter("longest sequence that the guarantee covers", default=2**40, kw_only=True)

    def __post_init__(self):
        at_least("vocab", self.vocab, 1, "there must be a token to recall")

    @property
    def target(self) -> str:
        return self.arch

    def letters(self) -> int:
        """The blank and the tokens."""
        return 1 + self.vocab

    def circuit(self) -> Circuit:
        """The token at t − 1 is the key, the token at t its value; the token at t asks."""
        alphabet = Alphabet.of(BLANK, v=self.vocab)
        x = Tokens(alphabet)
        text = f"every sequence of the {self.vocab} tokens"
        language = InputLanguage.of(alphabet, "any", [("any", "any", "v")], self.max_length, text)
        return Circuit(self.name, self.lemma_3(x) if self.arch == "mamba-delta-t" else self.latches(x), language)

    def latches(self, x: Tokens) -> Stream:
        """A latch for each token and value bit: values as ⌈log2(V+1)⌉ bits, zeros for the blank."""
        token, book = x.one_hot("v", name="token"), bits(self.vocab)
        recalled = memory.write(self.previous(x), x.code("v", book, "value"), policy="last", name="recalled").read(
            token
        )
        return readout_nearest(recalled, book, x.alphabet, "v", BLANK)

    def lemma_3(self, x: Tokens) -> Stream:
        """Lemma 3's memory: one-hot values under one-hot keys, V channels for each, V columns. Ours are the skip D of
        the blank and the shift of Δ.
        """
        token = x.one_hot("v", name="token")
        recalled = memory.write(self.previous(x), token, policy="last", name="recalled").read(token)
        return readout_or_blank(recalled, token, x.alphabet, "v", BLANK)

    def previous(self, x: Tokens) -> Stream:
        """The token at t − 1: one-hot lanes, or decoded from ⌈log2 V⌉ signs."""
        if not self.codes:
            return x.one_hot("v", name="token").shift(1)
        book = signs(self.vocab)
        return decode(x.code("v", book, "code").shift(1), book)

    def tasks(self) -> list[Task]:
        return [Induction(self.vocab, self.length)]

    def asks(self) -> dict[str, Any]:
        return {"name": self.name}

    def certificate(self, stack: Stack, compiled: Compiled) -> Certificate | None:
        """Every answer of the circuit after Lemma 3, at every length, from the weights of its own mixer."""
        from verify.certificates.columns import certify_columns

        if self.arch != "mamba-delta-t":
            return None
        return certify_columns(stack, compiled.source.alphabet.ids("v"), compiled.source.alphabet.index(BLANK))

    def information_bits(self) -> float:
        return induction_heads_information_bits(self.vocab, self.max_length)

    def beyond(self) -> str:
        codes = "previous tokens as codes" if self.codes else ""
        return ", ".join(filter(None, (super().beyond(), codes)))

    def otherwise(self) -> str:
        """The lemma's layer has no skip, and softplus no shift."""
        return "with a skip D and a shift of Δ" if self.arch == "mamba-delta-t" else ""

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """Of one Mamba-Δᵀ layer; Lemma 3 is about no other."""
        bound = induction_heads_bound(self.vocab)
        sizes = {"d_model": bound.d_model, "d_inner": bound.d_inner, "d_state": bound.d_state, "layers": bound.layers}
        return sizes, "Lemma 3, d = 2V and N = V"
