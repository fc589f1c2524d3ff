"""What the constructions of this paper share: a prompt, a chain that the model writes after it, and how it ends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import decide, readout_integer, readout_one_hot
from compiler.language.stream import Stream
from constructions.construction import Construction, parameter
from constructions.copy_dp.sizes import OUTSIDE, with_our_constant
from verify.tasks.chain import ChainTask, Solver
from verify.tasks.task import Task

END = "."
_PARABOLA = 512  # of larger values float32 does not hold the squares and the rules above them
Edges = list[tuple]  # as InputLanguage.of takes them


@dataclass(frozen=True)
class ChainConstruction(Construction):
    """A problem whose chain ends with `.`; the language holds prompts and what the model itself writes after them."""

    group: ClassVar[str] = "dp"
    asked: ClassVar[str] = "chain"  # the state of `edges` behind a whole prompt
    a_column_each: ClassVar[str] = "entry of the table"  # what has a column of the state each, in `stated_bound`

    arch: Literal["mamba", "mamba2"] = parameter("which mixer", default="mamba", kw_only=True)
    max_length: int = parameter(
        "longest sequence that the promise covers (0: the longest prompt with its chain)", default=0, kw_only=True
    )

    @property
    def target(self) -> str:
        return self.arch

    @abstractmethod
    def alphabet(self) -> Alphabet:
        """The tokens of prompts and chains."""

    @abstractmethod
    def edges(self) -> Edges:
        """The input language from state "start" to state "end"."""

    @abstractmethod
    def longest(self) -> int:
        """Tokens of the longest prompt with its chain."""

    def longest_sequence(self) -> int:
        return self.longest()

    @abstractmethod
    def scores(self) -> Stream:
        """The next token's scores."""

    @abstractmethod
    def solver(self) -> Solver:
        """The problem in plain Python."""

    @abstractmethod
    def prompts(self) -> str:
        """What a prompt is, in words."""

    @abstractmethod
    def table(self) -> int:
        """T: how many entries the largest table has."""

    def letters(self) -> int:
        return self.alphabet().size

    def stated_bound(self) -> tuple[dict[str, int], str]:
        """Theorem 3 copies from O(T) places: ours are the entries, a column of the state for each."""
        if self.theorem in OUTSIDE:
            return {}, ""
        return {"d_state": self.table()}, with_our_constant(self.theorem, self.a_column_each)

    def language(self) -> InputLanguage:
        """Prompts, and the model's own continuation of each; after the end nothing but the end comes."""
        text = f"{self.prompts()}, and what the model itself writes after it"
        edges = [*self.edges(), ("end", "end", [END])]
        length = self.max_length or self.longest()
        return InputLanguage.of(self.alphabet(), "start", edges, length, text, self.asked)

    def circuit(self) -> Circuit:
        return Circuit(self.name, self.scores(), self.language(), end=END)

    def tasks(self) -> list[Task]:
        return [ChainTask(self.solver(), self.language())]


def repeated(source: str, members: str | Sequence[str], most: int) -> tuple[list[str], Edges]:
    """Up to `most` of these tokens, counted by states: (the states after 0, 1, … of them, the edges between them).

    Counting in states rather than by a loop is what bounds how often a token can stand there.
    """
    states = [source, *(f"{source}.{i}" for i in range(1, most + 1))]
    return states, [(a, b, members) for a, b in zip(states, states[1:], strict=False)]


def leaving(states: Iterable[str], target: str, members: Sequence[str]) -> Edges:
    """From each of the states to the target."""
    return [(state, target, members) for state in states]


def numbers(largest: int) -> list[str]:
    """Number tokens 0 … largest."""
    return [str(i) for i in range(largest + 1)]


def written(
    alphabet: Alphabet, number: Stream, values: dict[str, int], rules: Sequence[tuple[Stream, str]], dtype: str
) -> Stream:
    """The token of the first rule whose flag holds, else the token whose value is the number.

    A parabola over the values is free, but squares them: with v values its scores take 2·log2(v) bits, and rules above
    them some more. Large values, and formats of fewer bits than float32, get a lane for each value instead, which
    costs a block.
    """
    least, most = min(values.values()), max(values.values())
    if dtype == "float32" and max(-least, most) <= _PARABOLA:
        return decide(rules, otherwise=readout_integer(number, alphabet, values))
    lanes = np.zeros((alphabet.size, most - least + 1))
    for name, value in values.items():
        lanes[alphabet.index(name), value - least] = 1
    return decide(rules, otherwise=readout_one_hot(lanes @ (number - least).one_hot(most - least + 1), alphabet))
