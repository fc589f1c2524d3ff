"""A token that stands twice in a list whose order counts would get the sum of two rows: it is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from compiler import Alphabet, Codebook, Tokens, readout, readout_nearest, readout_one_hot, signs
from compiler.language.output import readout_or_blank

ABC = Alphabet.of("a", "b", "c")
TOKENS = Tokens(ABC)
TWO = TOKENS.one_hot("a", "b")
BOOK = Codebook([[1, 1], [1, -1]])

TWICE: dict[str, Callable[[], object]] = {
    "one_hot": lambda: TOKENS.one_hot("a", "a"),
    "code": lambda: TOKENS.code(["a", "b", "a"], signs(3)),
    "rows": lambda: TOKENS.rows(["a", "a"], np.array([[1.0], [2.0]]), "r"),
    "readout": lambda: readout(TWO, BOOK, ABC, ["a", "a"]),
    "readout_nearest": lambda: readout_nearest(TWO, BOOK, ABC, ["a", "a"], "b"),
    "readout_one_hot": lambda: readout_one_hot(TWO, ABC, ["a", "a"]),
    "readout_or_blank": lambda: readout_or_blank(TWO, TWO, ABC, ["a", "a"], "b"),
}


@pytest.mark.parametrize("word", TWICE)
def test_a_token_that_stands_twice_is_refused(word: str):
    with pytest.raises(ValueError, match=f"{word} was given the token 'a' twice; once is enough"):
        TWICE[word]()


ALL = TOKENS.one_hot()
MEMBERS: dict[str, tuple[Callable[[], object], str]] = {
    "readout_nearest": (lambda: readout_nearest(TWO, BOOK, ABC, ["a", "b"], "a"), "blank"),
    "readout_or_blank": (lambda: readout_or_blank(TWO, TWO, ABC, ["b", "a"], "a"), "blank"),
    "readout_one_hot": (lambda: readout_one_hot(TWO, ABC, ["a", "b"], otherwise="a"), "otherwise"),
    "readout_one_hot, all": (lambda: readout_one_hot(ALL, ABC, otherwise="a"), "otherwise"),
    "readout_one_hot, two": (lambda: readout_one_hot(TWO, ABC, otherwise="a"), "otherwise"),
}


@pytest.mark.parametrize("name", MEMBERS)
def test_a_blank_that_is_a_member_is_refused_as_one(name: str):
    made, argument = MEMBERS[name]
    word = name.split(",")[0]
    why = "members was left out, so every token is one" if "," in name else "it stands in members"
    told = f"{word}: {argument} = 'a' is a member ({why}), whose score is its own lane; give members without it"
    with pytest.raises(ValueError, match=re.escape(told)):
        made()
    assert readout_one_hot(TWO, ABC, ["b", "c"], otherwise="a").width == 3


def test_a_set_of_tokens_may_name_one_twice():
    assert TOKENS.is_in("a", "a").operation.table.toarray().tolist() == [[1], [0], [0]]
