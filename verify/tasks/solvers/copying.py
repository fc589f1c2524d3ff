"""Copying a string behind a separator (Jelassi et al.'s task): `x1 x0 |` is answered `x1 x0 .`.

By n-grams strings begin with `^`, and some cannot be told apart: `has_conflict` says which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from verify.tasks.chain import Solver
from verify.tasks.solvers.words import drawn_word, number_of_words, words


class CopySolver(Solver):
    """Strings of at most `longest` of the letters."""

    name = "copy"

    def __init__(self, longest: int, letters: Sequence[str]):
        self.longest, self.letters = longest, tuple(letters)

    def chain(self, prompt: Sequence[str]) -> list[str]:
        return [*prompt[: list(prompt).index("|")], "."]

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for word in words(self.letters, self.longest):
            yield (*word, "|")

    def count(self) -> int:
        return number_of_words(len(self.letters), self.longest)

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        return (*drawn_word(rng, self.letters, self.longest), "|")

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        turns = tuple(self.letters[i % len(self.letters)] for i in range(self.longest))
        yield "nothing to copy", ("|",)
        yield "one token", (self.letters[-1], "|")
        yield "as long as it may be, all alike", (*(self.letters[-1],) * self.longest, "|")
        yield "as long as it may be, tokens in turn", (*turns, "|")

    def describe(self) -> str:
        return f"copies of at most {self.longest} tokens over {len(self.letters)}"


class NgramCopySolver(CopySolver):
    """Strings of exactly `length` letters, copied as they are; n: tokens of a context, for `has_conflict`."""

    name = "copy-ngram"

    def __init__(self, length: int, letters: Sequence[str], n: int):
        super().__init__(length, letters)
        self.n = n

    def chain(self, prompt: Sequence[str]) -> list[str]:
        return [*prompt[1:-1], "."]

    def prompts(self) -> Iterator[tuple[str, ...]]:
        for word in product(self.letters, repeat=self.longest):
            yield ("^", *word, "|")

    def count(self) -> int:
        return len(self.letters) ** self.longest

    def draw(self, rng: np.random.Generator) -> tuple[str, ...]:
        return ("^", *(self.letters[i] for i in rng.integers(len(self.letters), size=self.longest)), "|")

    def corners(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        yield "all alike", ("^", *(self.letters[-1],) * self.longest, "|")

    def describe(self) -> str:
        return f"copies of {self.longest} tokens over {len(self.letters)} by their {self.n}-grams"


def has_conflict(word: Sequence[str], n: int) -> bool:
    """Whether two equal contexts of a string, of its last n tokens or all so far, are followed by different tokens."""
    followed: dict[tuple[str, ...], str] = {}
    padded = ["^", *word, "|"]
    for t in range(1, len(padded)):
        context = tuple(padded[max(0, t - n) : t])
        if followed.setdefault(context, padded[t]) != padded[t]:
            return True
    return False


def one_continuation(tokens: Sequence[str], n: int) -> list[bool]:
    """At each position: whether what stood behind the context that ends there was, so far, one and the same letter or
    `|` each time. A context is the last n letters, or all since `^` or `|` where these are fewer.
    """
    followed: dict[tuple[str, ...], set[str]] = {}
    context: tuple[str, ...] | None = None
    tail: tuple[str, ...] = ()
    found, begun = [], False
    for token in tokens:
        if context is not None and token not in ("^", "."):
            followed.setdefault(context, set()).add(token)
        separator = token in ("^", "|", ".")
        begun = token != "." if separator else begun
        tail = () if separator else (*tail, token)[-n:]
        context = tail if begun or len(tail) == n else None
        found.append(context is not None and len(followed.get(context, ())) == 1)
    return found


def has_repeat(word: Sequence[str], n: int) -> bool:
    """Whether some n tokens stand in a string twice."""
    grams = [tuple(word[i : i + n]) for i in range(len(word) - n + 1)]
    return len(set(grams)) < len(grams)
