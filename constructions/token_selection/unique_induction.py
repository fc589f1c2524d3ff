"""Induction heads with one match: the token behind the earlier place of the present token (after paper D, Theorem D.1).

Statement, as we read it (its formulas are lost). x_1 … x_N with a unique j < N such that x_j = x_N: the answer is
x_{j+1}. It is recall with every token a key and a value, so the same two layers do it; `induction-heads` (paper A)
finds the latest of several matches instead.

Conditions. Several earlier matches are fine where the same token follows each; elsewhere their digits are or-ed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from constructions.construction import parameter
from constructions.papers import OF_PAPER_D, TOKEN_SELECTION
from constructions.token_selection.base import Selecting, at_most_one, digits, read_digits, recall_by_hand
from verify.arguments import at_least
from verify.obstructions import Capacity, Obstruction, of_unique_induction, unique_induction_bits
from verify.tasks.selection import UniqueInduction as UniqueInductionTask
from verify.tasks.task import Task


@dataclass(frozen=True)
class UniqueInduction(Selecting):
    name: ClassVar[str] = "unique-induction"
    theorem: ClassVar[str] = f"{TOKEN_SELECTION}, Theorem D.1"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_D

    vocab: int = parameter("number of tokens", most=1 << 14, default=8)
    length: int = parameter("tokens in a sequence", most=1 << 20, default=16)

    def __post_init__(self) -> None:
        at_least("vocab", self.vocab, 1, "there must be a token to recall")
        at_least("length", self.length, 2, "a token is asked for behind an earlier one of its kind")

    def letters(self) -> int:
        return self.vocab

    def circuit(self) -> Circuit:
        alphabet = Alphabet.of(v=self.vocab)
        x = Tokens(alphabet)
        token, value = x.one_hot("v", name="token"), x.rows("v", digits(self.vocab), "value")
        recalled = memory.write(token.shift(1), value, name="recalled").read(token)
        language = InputLanguage.everything(alphabet, self.max_length or self.length)
        return Circuit(self.name, read_digits(at_most_one(recalled), alphabet, "v"), language)

    def tasks(self) -> list[Task]:
        return [UniqueInductionTask(self.vocab, self.length)]

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "matches": "alike"}

    def asks_where(self) -> str:
        return "where the earlier places of a token have one follower"

    def information_bits(self) -> float:
        return unique_induction_bits(self.vocab, self.length)

    def by_hand(self) -> dict[str, int]:
        """As for recall with |V| keys and |V| values."""
        return recall_by_hand(self.vocab, self.vocab)

    def obstructions(self, has: Capacity) -> list[Obstruction]:
        """O1 and O2; the read-out gates one bank for each key: as many products."""
        return of_unique_induction(self.vocab, self.length, has)
