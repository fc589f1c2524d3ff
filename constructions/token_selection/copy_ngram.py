"""Copying by n-grams: what stood behind the last n tokens before (after paper D, Theorem 3.1).

Statement. `^ x_1 … x_N |` is continued by x_1 … x_N: the last n tokens are looked up, and what followed is written. It
is wrong exactly where some context has two continuations, which for uniform tokens happens with probability at most
N²|V|^{−n}/2, so n = ⌈ln(N²/(2ε))/ln |V|⌉ gives ε (this bound is ours: the paper's is lost). `copy` by places is right
on every string, in a smaller state.

Not legible in the text that we read (the proof is missing), and needed in any case. A context ends at the last
separator, `^` and `|` alike, or the first tokens of the copy match nothing. The key of a position is the context before
it, or each position matches itself. Contexts are one-hot, (|V|^{n+1} − 1)/(|V| − 1) of them; random ±1 features take F
≈ (28/3)(2N + 1) ln(2Nd/ε') (`relu_gadgets.random_features`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.operations import Constant
from compiler.language.output import readout_one_hot
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.types import Bool
from compiler.language.words import concatenate
from constructions.construction import parameter
from constructions.papers import OF_PAPER_D, TOKEN_SELECTION
from constructions.token_selection.base import Selecting, digits
from verify.arguments import at_least
from verify.bounds import repeated_ngram_bound
from verify.lemma_bounds import random_feature_sizes, random_features
from verify.obstructions import Capacity, Obstruction, copy_bits, of_copy
from verify.tasks.chain import ChainTask
from verify.tasks.solvers.copying import NgramCopySolver, one_continuation
from verify.tasks.task import Task

BEGIN, BAR, END = "^", "|", "."
MOST_CONTEXTS = 1 << 13
LOST = 0.01  # ε' of the random features that `by_hand` counts


@dataclass(frozen=True)
class CopyNgram(Selecting):
    name: ClassVar[str] = "copy-ngram"
    theorem: ClassVar[str] = f"{TOKEN_SELECTION}, Theorem 3.1"
    mixers: ClassVar[tuple[str, ...]] = OF_PAPER_D

    n: int = parameter("tokens of a context", most=64, default=3)
    vocab: int = parameter("tokens that are copied: x0, x1, …", most=1 << 12, default=4)
    length: int = parameter("tokens of a string", most=1 << 16, default=8)

    def __post_init__(self) -> None:
        at_least("n", self.n, 1, "a context has a token")
        at_least("vocab", self.vocab, 1, "there must be a token to copy")
        at_least("length", self.length, 1, "there must be something to copy")
        if self.contexts() > MOST_CONTEXTS:
            raise ValueError(
                f"n = {self.n} has more than {MOST_CONTEXTS:,} contexts over {self.vocab} tokens, which is the most; "
                f"`construct copy` is exact with {self.length} places"
            )

    def contexts(self) -> int:
        """How many strings of up to n tokens there are; beyond the most that are taken, counted no further."""
        found = longer = 1
        for _ in range(self.n):
            longer *= self.vocab
            found += longer
            if found > MOST_CONTEXTS:
                break
        return found

    def letters(self) -> int:
        return 3 + self.vocab

    def circuit(self) -> Circuit:
        alphabet = Alphabet.of(BEGIN, BAR, END, x=self.vocab)
        x = Tokens(alphabet)
        seen = self._lagged(x)
        key, query = (self._contexts(seen, lag).named(name) for lag, name in ((1, "key"), (0, "query")))
        written = [*(f"x{v}" for v in range(self.vocab)), BAR]
        read = memory.write(key, x.one_hot(written, name="value"), name="followers").read(query)
        said = [END if token == BAR else token for token in written]
        edges = [("start", "text", [BEGIN]), ("text", "text", "x"), ("text", "copy", [BAR])]
        edges += [("copy", "copy", "x"), ("copy", "end", [END]), ("end", "end", [END])]
        text = "strings between ^ and |, and what the model itself writes after them"
        language = InputLanguage.of(alphabet, "start", edges, self.max_length or self.longest_sequence(), text, "copy")
        return Circuit(self.name, readout_one_hot(read, alphabet, said), language, end=END)

    def longest_sequence(self) -> int:
        """`^`, the string, `|`, the copy and its end."""
        return 2 * self.length + 3

    def _lagged(self, x: Tokens) -> Stream:
        """Lane (lag, i): token x_i that many positions back; lane (lag, vocab): a separator there. Lags 0 … n + 1."""
        table = np.eye(self.vocab + 1)[[*range(self.vocab), self.vocab, self.vocab]]
        here = x.rows([*(f"x{v}" for v in range(self.vocab)), BEGIN, BAR], table, "token or separator")
        return concatenate(*(here.shift(lag) for lag in range(self.n + 2)))

    def _contexts(self, seen: Stream, lag: int) -> Stream:
        """Which context ends `lag` positions back: up to n tokens, fewer where a separator stands before them."""
        rows, counts = [], []
        for m in range(self.n + 1):
            for word in product(range(self.vocab), repeat=m):
                lanes = [(lag + i) * (self.vocab + 1) + token for i, token in enumerate(word)]
                lanes += [(lag + m) * (self.vocab + 1) + self.vocab] if m < self.n else []
                rows.append(lanes)
                counts.append(len(lanes) - 1)
        at = [(i, lane) for i, lanes in enumerate(rows) for lane in lanes]
        matrix = sparse.csr_array((np.ones(len(at)), tuple(zip(*at, strict=True))), shape=(len(rows), seen.width))
        missing = Stream(Constant(tuple(map(Fraction, counts))))
        return (matrix @ seen - missing).relu().retyped(Bool(len(rows)))

    def tasks(self) -> list[Task]:
        solver = NgramCopySolver(self.length, [f"x{v}" for v in range(self.vocab)], self.n)
        return [ChainTask(solver, self.circuit().token_language)]

    def promise(self) -> str:
        """Wrong on strings in which a context has two continuations, and only there."""
        return "random"

    def expected_failure(self) -> float:
        return repeated_ngram_bound(self.length, self.vocab, self.n)

    def asks(self) -> dict[str, Any]:
        return {"name": self.name, "n": self.n, "matches": "alike"}

    def asks_where(self) -> str:
        return "where a context has had one continuation"

    def asked_at(self, tokens: np.ndarray) -> np.ndarray:
        names = [BEGIN, BAR, END, *(f"x{v}" for v in range(self.vocab))]
        return np.array(one_continuation([names[token] for token in tokens.tolist()], self.n), dtype=bool)

    def information_bits(self) -> float:
        """Strings that are copied part at `|`; 0 where the bound on failures leaves none."""
        lost = self.expected_failure()
        return copy_bits(self.length, self.vocab, lost) if lost < 1 else 0.0

    def by_hand(self) -> dict[str, int]:
        """D of random ±1 features, F·d + n(V + 1): F = (28/3)(2N + 1) ln(2Nd/ε') by Bernstein, ε' = 0.01, d signs of a
        word or of the separator, and the query's n one-hot letters.
        """
        letters = self.vocab + 1
        d = digits(letters).shape[1]
        features = random_features(self.length, d, LOST)
        return {"M": 2, "D": random_feature_sizes(self.n, letters, d, features, 2 * self.length + 2)["D"]}

    def obstructions(self, has: Capacity) -> list[Obstruction]:
        """O1 for the strings that are copied, where the bound on failures leaves any; no filter has to tell all places
        apart.
        """
        lost = self.expected_failure()
        return of_copy(self.length, self.vocab, has, error=lost)[:1] if lost < 1 else []
