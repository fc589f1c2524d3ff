"""Associative recall: the value that stood behind the key (after paper D, Theorem 3.2).

Statement. k_1 v_1 … k_l v_l q ends with v_i where k_i = q, by a network of the paper's class. As in the paper every
input is answered. Its sizes are stated there and lost in the text that we read. Ours: sizes written out, scores exact,
and unmodified Mamba, Mamba-2 and S4D-as-Mamba.

Conditions. Equal keys must carry equal values (their digits are or-ed elsewhere): we take this to be the condition in
brackets of the paper's task, whose formulas are lost. D and S grow with the number of keys here, for the state must
hold a value for each.
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
from verify.obstructions import Capacity, Obstruction, of_recall, recall_bits
from verify.tasks.selection import Recall
from verify.tasks.task import Task


@dataclass(frozen=True)
class AssociativeRecall(Selecting):
    name: ClassVar[str] = "recall"
    theorem: ClassVar[str] = f"{TOKEN_SELECTION}, Theorem 3.2"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_D

    keys: int = parameter("number of keys", most=1 << 14, default=8)
    values: int = parameter("number of values", most=1 << 20, default=8)
    pairs: int = parameter("pairs before the question, at most", most=1 << 20, default=8)
    distinct: bool = parameter("no key stands twice before the question", default=False)

    def __post_init__(self) -> None:
        at_least("keys", self.keys, 1, "a pair needs a key")
        at_least("values", self.values, 1, "a pair needs a value")
        at_least("pairs", self.pairs, 1, "there must be something to recall")
        if self.distinct and self.pairs > self.keys:
            raise ValueError(f"pairs = {self.pairs} cannot have distinct keys out of {self.keys}; at most {self.keys}")

    def letters(self) -> int:
        return self.keys + self.values

    def circuit(self) -> Circuit:
        """The token at t − 1 is the key, the digits of the token at t its value; what was written twice counts once."""
        alphabet = Alphabet.of(k=self.keys, v=self.values)
        x = Tokens(alphabet)
        key, value = x.one_hot("k", name="key"), x.rows("v", digits(self.values), "value")
        recalled = memory.write(key.shift(1), value, name="recalled").read(key)
        bits = recalled if self.distinct else at_most_one(recalled)
        edges = [("pairs", "value", "k", self.distinct), ("value", "pairs", "v"), ("pairs", "asked", "k")]
        text = f"pairs of {'distinct ' * self.distinct}keys and values, then a key"
        language = InputLanguage.of(alphabet, "pairs", edges, self.max_length or 2 * self.pairs + 1, text)
        return Circuit(self.name, read_digits(bits, alphabet, "v"), language)

    def tasks(self) -> list[Task]:
        return [Recall(self.keys, self.values, self.pairs, self.distinct)]

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "matches": "alike"}

    def asks_where(self) -> str:
        return "where the pairs of a key so far have one value"

    def information_bits(self) -> float:
        return recall_bits(self.keys, self.values, self.pairs)

    def by_hand(self) -> dict[str, int]:
        return recall_by_hand(self.keys, self.values)

    def obstructions(self, has: Capacity) -> list[Obstruction]:
        """O1 and O2; the read-out gates one bank for each key: as many products."""
        return of_recall(self.keys, self.values, has, self.keys, pairs=min(self.keys, self.pairs))
