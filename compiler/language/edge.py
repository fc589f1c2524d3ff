"""The edges of an input language."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from compiler.language.arguments import instance, truth


@dataclass(frozen=True)
class Edge:
    """In state `source` a token of `tokens` may come and leads to `target`.

    distinct: no token is taken twice along this edge in one sequence.
    """

    source: str
    target: str
    tokens: frozenset[int]
    distinct: bool = False

    def __post_init__(self) -> None:
        for what, state in (("source", self.source), ("target", self.target)):
            instance(state, str, f"the {what} of an edge", "the name of a state")
        instance(self.tokens, frozenset, "the tokens of an edge", "a frozenset of token ids")
        if set(map(type, self.tokens)) != {int}:  # one by one only where there is something to find
            for token in self.tokens:
                instance(token, Integral, "a token of an edge", "its id (InputLanguage.of takes names)")
        truth(self.distinct, "distinct")
