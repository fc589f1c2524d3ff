"""Random small input languages and flags over them, for tests against every string of a language."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from compiler.language.alphabet import Alphabet
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens
from compiler.language.stream import Stream
from compiler.language.words import count, latch, present

LETTERS = Alphabet.of("a", "b", "c")
LONGEST = 6
letters = Tokens(LETTERS)

Choose = Callable[[int], int]

FLAGS = [
    lambda p, choose: p() & p(),
    lambda p, choose: p() | p(),
    lambda p, choose: ~p(),
    lambda p, choose: p().shift(1 + choose(2)),
    lambda p, choose: present(p()),
    lambda p, choose: latch(p(), p()),
    lambda p, choose: latch(p(), p(), first=True),
    lambda p, choose: p().cumsum() > choose(3),
    lambda p, choose: count(p(), p()) == 1 + choose(2),
]


def language(choose: Choose) -> InputLanguage:
    """At most 3 states and 4 edges, some of them distinct."""
    states = [f"s{i}" for i in range(1 + choose(3))]
    edges = []
    for _ in range(1 + choose(4)):
        members = [name for name in LETTERS.tokens if choose(2)] or ["a"]
        edges.append((states[choose(len(states))], states[choose(len(states))], members, choose(3) == 0))
    return InputLanguage.of(LETTERS, "s0", edges, LONGEST, "random")


def flags(choose: Choose, made: int = 3) -> Callable[[], Stream]:
    """A source of flags: of the token, and made of each other."""
    pool = [letters.is_in(["a"]), letters.is_in(["b"]), letters.is_in(["b", "c"])]

    def pick() -> Stream:
        return pool[choose(len(pool))]

    for _ in range(made):
        pool.append(FLAGS[choose(len(FLAGS))](pick, choose))
    return pick


def every_string(language_: InputLanguage) -> Iterator[np.ndarray]:
    """All its strings, (batch, length) ids for each length."""
    for length in range(1, language_.max_length + 1):
        batch = np.array(list(language_.strings(length)), dtype=np.int64)
        if len(batch):
            yield batch
