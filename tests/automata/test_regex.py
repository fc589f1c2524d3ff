"""Regular expressions against Python's own, and joined ones against sets of words."""

from __future__ import annotations

import random
import re
from itertools import product

import pytest
from automata.fa.nfa import NFA

from compiler.automata import regex
from compiler.automata.regex import regex_table
from compiler.automata.signs import read_signs
from compiler.automata.table import YES, minimal

EXPRESSIONS = ["(ab|ba)*", "a+b?", "a{2,3}b*", "[a-c]a", "(a|b)*abb", "a*b*", "((a|b)(a|b))*", ".*ab"]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_it_accepts_what_python_matches(expression: str) -> None:
    table = minimal(regex_table(expression))
    for length in range(7):
        for letters in product(table.letters, repeat=length):
            word = "".join(letters)
            assert (table.run(word) == YES) == (re.fullmatch(expression, word) is not None)


SIGNS = [*"aabb-()()|*+?.", "()", "{0}", "{2}", "{,2}", "{1,}", "{0,1}", "{2,1}", "{0,}", "{1,3}", "{0,0}"]
SIGNS += ["[ab]", "[^a]", "[a-b]", "[b-a]", "[-a]", "[a-]", "[^-b]", "[a-b-]", "[--a]", "[a--b]"]


def test_what_is_not_refused_is_read_as_python_reads_it() -> None:
    """Signs in any order: most are no expression, and those that only some read are refused."""
    rng, read = random.Random(0), 0
    words = ["".join(letters) for length in range(5) for letters in product("ab-", repeat=length)]
    for _ in range(5000):
        expression = "".join(rng.choice(SIGNS) for _ in range(rng.randint(1, 7)))
        try:
            table = regex_table(expression, "ab-")
        except ValueError:
            continue
        read += 1
        pattern = re.compile(expression)
        for word in words:
            assert (table.run(word) == YES) == (pattern.fullmatch(word) is not None), (expression, word)
    assert read > 500


def _shuffles(u: str, v: str) -> set[str]:
    if not u or not v:
        return {u + v}
    return {u[0] + w for w in _shuffles(u[1:], v)} | {v[0] + w for w in _shuffles(u, v[1:])}


def test_both_and_shuffle_are_what_sets_of_words_are() -> None:
    """Python has neither; the words of each part are its own."""
    rng, longest = random.Random(0), 4
    words = ["".join(letters) for length in range(longest + 1) for letters in product("ab", repeat=length)]
    parts = ["a*b", "(a|b)*", "a{1,2}", "(ab)*", "b", "[ab]a?", "()", ".{2}", "(ba?)+", "a|b"]
    for _ in range(150):
        one, other, third = rng.choices(parts, k=3)
        x, y, z = ({w for w in words if re.fullmatch(part, w)} for part in (one, other, third))
        mixed = {w for u in x for v in y if len(u) + len(v) <= longest for w in _shuffles(u, v)}
        for expression, right in [
            (f"({one})&({other})", x & y),
            (f"({one})^({other})", mixed),
            (f"(({one})^({other}))&({third})", mixed & z),
            (f"(({one})&({other}))|({third})", x & y | z),
        ]:
            table = regex_table(expression, "ab")
            assert {w for w in words if table.run(w) == YES} == right, expression


def test_no_automaton_of_the_library_is_larger_than_was_told() -> None:
    """Its sizes are counted before it is made, for those that mix and intersect grow as products."""
    rng, largest = random.Random(0), 0
    for _ in range(300):
        expression = rng.choice("ab")
        for _ in range(rng.randint(1, 8)):
            other = rng.choice(["a", "[ab]", "(ab|b)", "()", "(a{3}|b)", "ab*"])
            form = rng.choice(
                ["({0})*", "({0}){1}", "({0})|{1}", "({0})^({1})", "({0})&({1})", "({0}){{2,3}}", "{1}({0})+"]
            )
            expression = form.format(expression, other)
        try:
            told = read_signs(expression)[1]
        except ValueError:
            continue
        if told <= 2000:
            made = len(NFA.from_regex(expression, input_symbols={"a", "b"}).states)
            largest = max(largest, made)
            assert made <= told, expression
    assert largest > 500


def test_the_search_for_states_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few sets of many states each take as long as many sets."""
    assert len(regex_table("(a?){40}").outputs) == 42
    monkeypatch.setattr(regex, "_MOST_WORK", 1000)
    with pytest.raises(ValueError, match="has too many states to be found"):
        regex_table("(a?){40}")


def test_letters_may_be_more_than_are_named() -> None:
    table = minimal(regex_table("a*", "abc"))
    assert table.letters == ("a", "b", "c") and table.run("aab") != YES and table.run("aa") == YES


@pytest.mark.parametrize(
    "expression, letters, said",
    [
        ("abc", "ab", "has the letter 'c', and the letters are a b; add it"),
        ("", "", "has no letter; write one, or name all letters by --letters"),
        ("a b", "", "the letter ' ' cannot stand in an expression, and 'a b' holds it"),
        ("(a|b),", "ab", "the letter ',' cannot stand in an expression"),
        ("(a", "", "is no regular expression"),
        ("a\\d", "", "holds a backslash"),
        ("a", "a*", "cannot be a letter"),
        ("a{5000}", "", "more than 4096 states"),
        ("(a{400}){400}", "", "would have more than 131072 states as it is written; repeat, mix or intersect less"),
        ("^".join(letter * 40 for letter in "abcd"), "", "would have more than 131072 states"),
        ("&".join(["(a{20}|b{20})"] * 4), "", "would have more than 131072 states"),
        ("(a|b)*a" + "(a|b)" * 14, "", "more than 4096 states"),
        ("a" * 3000, "", "3000 characters, and 2000 are the most"),
        ("ca{0}", "", "repeats by {0}, which leaves nothing to repeat; leave that part out"),
        ("ca{,00}", "", "repeats by {,00}, which leaves nothing to repeat"),
        ("a{3,2}", "", "repeats by {3,2}, and the second is less"),
        ("a{x}", "", "repeats by {x}; write {3}, {1,3}, {,3} or {1,}"),
        ("a+?", "", "repeats by + and at once by ?, which not all read alike; put parentheses"),
        ("a|b&c", "", "joins parts by | and by &, of which neither comes first; put parentheses"),
        ("(a^b)c|(d^e&f)", "", "joins parts by ^ and by &"),
        ("[c-a]", "abc", "has the range c-a in [c-a], from last to first"),
        ("[a{2}b]", "", "has '{', which is a sign, in [a{2}b]"),
        ("[a-é]", "", "has '{', which is a sign, in a-é in [a-é]"),
        ("ab$", "", "holds '$', which elsewhere means the end; whole words are meant anyway"),
        ("[]a]", "", "has no letter in []"),
        ("a{2", "", "holds '{' alone"),
    ],
)
def test_what_is_no_expression_is_refused_in_a_sentence(expression: str, letters: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        regex_table(expression, letters)
