"""What a user may get wrong in alphabets, codebooks and input languages: each mistake gets one sentence."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from compiler.driver import compile
from compiler.language import memory
from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.codebook import Codebook, balanced, drawn, free_signs, jl, random_balanced, signs
from compiler.language.input_language import Edge, InputLanguage
from compiler.language.source import Tokens
from tests.circuits import ABC, abc, is_a, token
from tests.language.slips import one_sentence

N = is_a.cumsum().named("n")
EVERYTHING = InputLanguage.everything(ABC, 9)
SIGNS = signs(3)
CODE = abc.code(None, SIGNS, "letter")
NAN, INF = float("nan"), float("inf")


def _edge(*ids: int) -> Edge:
    return Edge("s", "s", frozenset(ids))


MISUSES: dict[str, tuple[Callable[[], object], str]] = {
    # codebooks
    "a ragged codebook": (lambda: Codebook([[1], [1, 0]]), "the words of a codebook must be a (size, length) array"),
    "a codebook of half": (lambda: balanced(0.5), "size of balanced is 0.5, and an integer is needed"),
    "a codebook of no table": (lambda: Codebook([1, 0]), "the words of a codebook must be a (size, length) array"),
    "a random codebook too long": (
        lambda: random_balanced(3, 2**22, 0),
        "length of random_balanced is 4194304, and it must be at most 1048576",
    ),
    "a random codebook too large": (
        lambda: random_balanced(2**20, 2**20, 0),
        "have 1099511627776 entries, and random_balanced draws at most 268435456",
    ),
    "a size of text": (lambda: jl("a", 0.5), "size of a random code is 'a', and an integer is needed"),
    "a size of half": (lambda: jl(4.5, 0.5), "size of a random code is 4.5, and an integer is needed"),
    "an epsilon of text": (lambda: jl(4, "a"), "epsilon is 'a', and a number is needed"),
    "an epsilon of 2": (lambda: jl(4, 2), "a code of 4 words with ε = 2.0 and δ = 0.5 makes no sense"),
    "a length of jl": (lambda: jl(4, 0.5, length="x"), "length of jl is 'x', and an integer is needed"),
    "words without end": (lambda: jl(4, 1e-9), "length of a jl code is 8317766166719341568, and it must be at most"),
    "a seed below 0": (lambda: jl(4, 0.5, seed=-1), "seed of a jl code is -1, and it must be at least 0"),
    "no draws": (lambda: jl(4, 0.5, most_draws=0), "most_draws is 0, and it must be at least 1"),
    "a kind of code": (
        lambda: drawn("x", 4, 4),
        "the kind of a random code is 'x', and it must be one of balanced, jl",
    ),
    "a kind in a list": (lambda: drawn(["jl"], 4, 4), "the kind of a random code is ['jl'] (list)"),
    "a code of text": (lambda: drawn("balanced", "x", 4), "size of a balanced code is 'x', and an integer is needed"),
    "a coherence of text": (lambda: drawn("jl", 4, 8, "x"), "epsilon is 'x', and a number is needed"),
    "signs of half": (lambda: free_signs(2.5, 4, 0), "size of free_signs is 2.5, and an integer is needed"),
    "signs too many": (lambda: free_signs(2**20, 2**20, 0), "and free_signs draws at most 268435456"),
    "a seed of text": (lambda: free_signs(4, 4, "x"), "seed of free_signs is 'x', and an integer is needed"),
    "a memory by hand": (lambda: memory.Memory(1, N, None, "sum", "m"), "'key' of memory.write is 1, and a stream"),
    "a memory of a policy": (lambda: memory.Memory(token, N, None, 3, "m"), "policy of memory.write is 3, and 'sum'"),
    "a memory named 5": (lambda: memory.write(token, N, name=5), "name of memory.write is 5, and a text is needed"),
    # alphabets and tokens
    "no tokens": (lambda: Alphabet(()), "an alphabet needs at least one token"),
    "tokens in a text": (lambda: Alphabet("abc"), "the tokens of the alphabet is 'abc', and a tuple of names"),
    "a group of letters": (lambda: Alphabet(("a",), ("g",)), "a group of the alphabet is 'g', and (name, first id"),
    "a group too far": (lambda: Alphabet(("a",), (("g", 0, 2),)), "an end of group 'g' is 2, and it must be at most 1"),
    "a token twice": (lambda: Alphabet.of("a", "a"), "token 'a' stands 2 times in the alphabet"),
    "a token of lists": (lambda: Alphabet((["a"], "b")), "a token of the alphabet is ['a'] (list), and a text"),
    "half a character": (lambda: Alphabet.of("\ud800"), "holds a lone surrogate"),
    "a token of numbers": (lambda: Alphabet.of(1, 2), "a token of the alphabet is 1, and a text is needed"),
    "a negative group": (lambda: Alphabet.of("a", k=-1), "the size of group 'k' is -1, and it must be at least 0"),
    "a group without end": (
        lambda: Alphabet.of("a", k=2**70),
        "the size of group 'k' is 1180591620717411303424, and it must be at most 1048576",
    ),
    "a group of half": (lambda: Alphabet.of("a", k=0.5), "group 'k' is 0.5, and a number or a list of tokens"),
    "a forgotten token": (lambda: Alphabet.of(value=3).index("valu1"), "; did you mean 'value1'?"),
    "a group in a list": (
        lambda: Alphabet.of("a", k=3).ids(["k", "a"]),
        "'k' is no token, but the group of k0 … k2: name one of these, or give 'k' alone",
    ),
    "a forgotten group": (lambda: Tokens(Alphabet.of(letter=3)).one_hot("letters"), "; did you mean 'letter'?"),
    "a token by its id": (lambda: abc.is_in([0]), "a token is 0, and its name is needed"),
    "members by an id": (lambda: abc.is_in(0), "members is 0, and the name of a group, a list of tokens or None"),
    "tokens of a text": (lambda: Tokens("abc"), "the alphabet of Tokens is 'abc', and an Alphabet is needed"),
    "numbers of a list": (lambda: abc.number(["a"]), "values is ['a'] (list), and a dict from token to integer"),
    "half a number": (lambda: abc.number({"a": 0.5}), "the number of token 'a' is 0.5, and an integer is needed"),
    "rows of text": (lambda: abc.rows(None, [["a"]] * 3, "r"), "entry [0, 0] of the matrix of rows is 'a', and a"),
    "a name of 3": (lambda: abc.one_hot(name=3), "name is 3, and a text is needed"),
    "one of none": (lambda: abc.one_hot([]), "one_hot was given no tokens, and at least one is needed"),
    "in none": (lambda: abc.is_in([]), "is_in was given no tokens, and at least one is needed"),
    "numbers of none": (lambda: abc.number({}), "number was given no tokens, and at least one is needed"),
    "codes too many": (lambda: abc.code(None, balanced(5)), "the codebook has 5 words for 3 tokens"),
    "rows of a vector": (lambda: abc.rows(None, [1, 2, 3], "r"), "the matrix of rows has 1 axes, and two are needed"),
    # input languages
    "a length of text": (lambda: InputLanguage.everything(ABC, "3"), "max_length is '3', and an integer is needed"),
    "length 0": (lambda: InputLanguage.everything(ABC, 0), "max_length is 0, and it must be at least 1"),
    "an alphabet of text": (lambda: InputLanguage.everything("abc", 3), "is 'abc', and an Alphabet is needed"),
    "ids out of range": (
        lambda: InputLanguage(ABC, "s", (_edge(0, 7),), 3, ""),
        "the edge 's' → 's' carries token id 7, and ids are 0 … 2",
    ),
    "ids as names": (lambda: Edge("s", "s", frozenset("a")), "a token of an edge is 'a', and its id"),
    "ids in a list": (lambda: Edge("s", "s", [0]), "the tokens of an edge is [0] (list), and a frozenset"),
    "half a sample": (lambda: EVERYTHING.sample(0.5, 1, 0), "count of sample is 0.5, and an integer is needed"),
    "strings of a negative length": (
        lambda: EVERYTHING.strings(-1),
        "length of strings is -1, and it must be at least 0",
    ),
    "strings of None": (lambda: EVERYTHING.strings(None), "length of strings is None, and an integer is needed"),
    "strings of NaN": (lambda: EVERYTHING.strings(NAN), "length of strings is nan, and an integer is needed"),
    "strings without end": (
        lambda: InputLanguage.everything(ABC, 2**53).strings(2**50),
        "length of strings is 1125899906842624, and it must be at most 65536",
    ),
    "a sample without end": (lambda: EVERYTHING.sample(2**70, 4, 0), "its length 4, and at most 16777216 tokens are"),
    "a sample of nothing": (lambda: EVERYTHING.sample(2**70, 0, 0), "its length 0, and at most 16777216 tokens are"),
    "a sample too long": (
        lambda: EVERYTHING.sample(3, 2**70, 0),
        "length of sample is 1180591620717411303424, and it must be at most 9",
    ),
    "an edge of two": (
        lambda: InputLanguage.of(ABC, "s", [("s", "a")], 3, ""),
        "(state, next state, members[, distinct])",
    ),
    "strings longer than any": (lambda: EVERYTHING.strings(10), "length of strings is 10, and it must be at most 9"),
    "no edges": (
        lambda: compile(Circuit("c", N, InputLanguage(ABC, "s", (), 3, ""))),
        "no edge leaves the start state 's'",
    ),
    "another start": (
        lambda: compile(Circuit("c", N, InputLanguage(ABC, "t", (_edge(0),), 3, ""))),
        "no edge leaves the start state 't' of its input language; edges leave ['s']",
    ),
}


@pytest.mark.parametrize(("mistake", "words"), MISUSES.values(), ids=MISUSES)
def test_a_mistake_gets_one_sentence(mistake: Callable[[], object], words: str) -> None:
    one_sentence(mistake, words)
