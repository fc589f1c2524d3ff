"""Regular expressions against Python's own."""

from __future__ import annotations

import re
from itertools import product

import pytest

from compiler.automata.regex import regex_table
from compiler.automata.table import YES, minimal

EXPRESSIONS = ["(ab|ba)*", "a+b?", "a{2,3}b*", "[a-c]a", "(a|b)*abb", "a*b*", "((a|b)(a|b))*", ".*ab"]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_accepts_what_python_matches(expression: str) -> None:
    table = minimal(regex_table(expression))
    for length in range(7):
        for letters in product(table.letters, repeat=length):
            word = "".join(letters)
            assert (table.run(word) == YES) == (re.fullmatch(expression, word) is not None)


def test_letters_may_be_more_than_are_named() -> None:
    table = minimal(regex_table("a*", "abc"))
    assert table.letters == ("a", "b", "c") and table.run("aab") != YES and table.run("aa") == YES


@pytest.mark.parametrize(
    "expression, letters, said",
    [
        ("abc", "ab", "has the letter 'c', and the letters are a b; add it"),
        ("", "", "has no letter"),
        ("(a", "", "is no regular expression"),
        ("a\\d", "", "holds a backslash"),
        ("a", "a*", "cannot be a letter"),
        ("a{5000}", "", "multiply to 5000, and 4096 are the most"),
        ("(a|b)*a" + "(a|b)" * 14, "", "more than 4096 states"),
        ("a" * 3000, "", "3000 characters, and 2000 are the most"),
    ],
)
def test_what_is_no_expression_is_refused_in_a_sentence(expression: str, letters: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        regex_table(expression, letters)
