"""Dynamic token selection: the value of the key with the largest score (after paper D, Lemma 3.3).

Statement, as we restore it (its formulas are lost). Tokens (k_j, v_j), a query q, |k_j| = |q| = 1 and <k_j, q> largest
at j* by a gap δ: the network gives v_{j*} within ε. Here keys and queries are finitely many, values are integers, and
it gives v_{j*} itself.

The scores of n keys for m queries take finitely many values s. Which (key, query) pairs meet is a rectifier of what is
stored and of the query; level s is reached where one of score s meets, and wins where no higher level is reached; its
values are the answer. Keys: angles 2πi/n (of one coordinate, d' = 1 here, compared by their distance around the
circle: unit vectors of d' = 2), the integer points of x² + y² = size (d' = 2), the ±1 vectors of `size` entries (any
d', 2^{d'} of them).

Conditions. Two are conditions of the lemma as we read it: keys of one length, or the largest score is not the nearest
key, and a gap. Of the gap we need less: keys of one score must carry one value. n features are needed for n keys at any
precision (rank), where the softmax form takes (2A + 1)^{d'}.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from constructions.construction import parameter
from constructions.papers import OF_PAPER_D, TOKEN_SELECTION
from constructions.token_selection.base import Selecting, at_most_one, digits, read_digits
from verify.arguments import at_least
from verify.obstructions import Capacity, Obstruction, of_recall, recall_bits
from verify.tasks.selection import Selection
from verify.tasks.task import Task


@dataclass(frozen=True)
class TokenSelection(Selecting):
    name: ClassVar[str] = "token-selection"
    theorem: ClassVar[str] = f"{TOKEN_SELECTION}, Lemma 3.3"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_D

    keys: Literal["angle", "plane", "signs"] = parameter(
        "unit vectors: by their angle, in the plane, or of any d'", default="angle"
    )
    size: int = parameter("angles; or x² + y² of the points; or entries of a ±1 vector", most=1 << 10, default=8)
    values: int = parameter("number of values", most=1 << 10, default=4)
    length: int = parameter("tokens in a sequence, the query included", most=1 << 20, default=16)

    def __post_init__(self) -> None:
        at_least("size", self.size, 1, "there must be a key")
        at_least("values", self.values, 1, "a key needs a value")
        at_least("length", self.length, 2, "a key and a query take so much")
        if self.keys == "signs" and self.size > 10:
            raise ValueError(f"size = {self.size} makes 2^{self.size} keys of signs; at most 10 entries are tried")
        if not len(self.points()):
            squares = [x * x for x in range(int(self.size**0.5) + 2)]
            works = min(a + b for a in squares for b in squares if a + b > self.size)
            raise ValueError(
                f"size = {self.size} is no sum of two squares, so no integer point has x² + y² = {self.size}; size = "
                f"{works} works"
            )

    def points(self) -> np.ndarray:
        """(n × d') integers: angles as multiples of 2π/n, or vectors."""
        if self.keys == "angle":
            return np.arange(self.size)[:, None]
        if self.keys == "plane":
            reach = range(-int(self.size**0.5) - 1, int(self.size**0.5) + 2)
            return np.array([(x, y) for x in reach for y in reach if x * x + y * y == self.size]).reshape(-1, 2)
        return np.array(list(product((-1, 1), repeat=self.size)))

    def scores(self) -> np.ndarray:
        """(n × n) integers that order keys for each query as their inner products do."""
        points = self.points()
        if self.keys == "angle":
            apart = np.abs(points - points.T)
            return -np.minimum(apart, self.size - apart)
        return points @ points.T

    def letters(self) -> int:
        return len(self.points()) * (self.values + 1) + self.values

    def circuit(self) -> Circuit:
        count = len(self.points())
        pairs = [f"k{i}=v{v}" for i in range(count) for v in range(self.values)]
        alphabet = Alphabet.of(pair=pairs, q=count, v=self.values)
        x = Tokens(alphabet)
        edges = [("start", "pairs", "pair"), ("pairs", "pairs", "pair"), ("pairs", "asked", "q")]
        text = f"keys with values out of {count} and {self.values}, then a query"
        language = InputLanguage.of(alphabet, "start", edges, self.max_length or self.length, text)
        return Circuit(self.name, read_digits(self._selected(x, count), alphabet, "v"), language)

    def _selected(self, x: Tokens, count: int) -> Stream:
        """The digits of the value at the highest level that is reached."""
        bits = digits(self.values)
        width = 1 + bits.shape[1]  # whether the key is there, and the digits of its value
        table = np.kron(np.eye(count), np.hstack([np.ones((self.values, 1)), bits]))
        stored = x.rows("pair", table, "written").cumsum().named("stored")
        query = x.one_hot("q", name="query")
        met = self._met(stored, query, count, width)
        scores = self.scores()
        levels = np.unique(scores)[::-1]
        pairs = np.array([scores.reshape(-1) == s for s in levels]).astype(float)
        lanes = at_most_one(sparse.kron(pairs, sparse.eye_array(width), format="csr") @ met)  # (level, lane)
        reached = np.kron(np.eye(len(levels)), np.eye(1, width)) @ lanes
        higher = np.tril(np.ones((len(levels), len(levels))), -1)
        wins = (reached - higher @ reached).relu().named("wins")
        digit = np.kron(np.eye(len(levels)), np.eye(width)[1:]) @ lanes
        chosen = (digit + np.kron(np.eye(len(levels)), np.ones((width - 1, 1))) @ wins - 1).relu()
        return (np.kron(np.ones((1, len(levels))), np.eye(width - 1)) @ chosen).named("selected")

    @staticmethod
    def _met(stored: Stream, query: Stream, count: int, width: int) -> Stream:
        """Lane (key, query, i) is 1 where the query is asked and lane i of the key was ever written."""
        held = (1 - stored).relu()
        keys = sparse.kron(sparse.eye_array(count), np.kron(np.ones((count, 1)), np.eye(width)), format="csr")
        queries = np.kron(np.ones((count, 1)), np.kron(np.eye(count), np.ones((width, 1))))
        return (queries @ query - keys @ held).relu().named("met")

    def tasks(self) -> list[Task]:
        return [Selection(self.keys, self.size, self.values, self.length)]

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "points": self.keys, "size": self.size}

    def asks_where(self) -> str:
        return "where the nearest keys have one value"

    def information_bits(self) -> float:
        return recall_bits(len(self.points()), self.values, self.length - 1)

    def by_hand(self) -> dict[str, int]:
        """The exact form of II.5 has a feature for each key and each digit, and one that says that it is there."""
        return {"D": len(self.points()) * (digits(self.values).shape[1] + 2)}

    def obstructions(self, has: Capacity) -> list[Obstruction]:
        """O1 and O2: where each query is one of the keys, selection is recall."""
        count = len(self.points())
        return of_recall(count, self.values, has, count, pairs=min(count, self.length - 1))
