"""Types that an author declares of functions of one token are shown from the table of that token."""

from __future__ import annotations

import re

import pytest

from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.source import Tokens, position
from compiler.language.stream import Stream
from compiler.language.types import Bool, Int, OneHot, Real, Type
from compiler.language.words import concatenate
from tests.gadgets.harness import LETTERS, is_a, is_b

names = Tokens(LETTERS)
value = names.number({"a": 3, "b": -1})


def _compile(stream: Stream, seen: str = "ab") -> None:
    language = InputLanguage.of(LETTERS, "any", [("any", "any", tuple(seen))], 9, "some letters")
    compile(Circuit("declared", stream, language))


SHOWN: dict[str, tuple[Stream, Type]] = {
    "two letters": (concatenate(is_a, is_b), OneHot(2)),
    "both late": (concatenate(is_a.shift(2), is_b.shift(2)), OneHot(2)),
    "two comparisons": (concatenate(value == 3, value < 0, value == 7), OneHot(3)),
    "one of them never": (concatenate(is_a, is_a & is_b, is_b), OneHot(3)),
    "a number of a letter": (value - 2 * is_a, Int(-1, 1)),
    "a flag": (value - 2 * is_a + is_b, Bool()),
    "a real number": ((value - 2 * is_a) / 4, Real(-0.25, 0.25)),
}
NOT_SHOWN: dict[str, tuple[Stream, Type]] = {
    "a letter twice": (concatenate(is_a, is_a | is_b), OneHot(2)),
    "two places": (concatenate(is_a, is_b.shift()), OneHot(2)),
    "two counts": (concatenate(is_a.cumsum() == 1, is_b.cumsum() == 1), OneHot(2)),
    "a place": (concatenate(is_a, position() == 2), OneHot(2)),
    "too large": (value - 1 * is_a, Int(-1, 1)),
    "too small": (value - 2 * is_a, Int(0, 1)),
    "halves": ((value - 2 * is_a) / 4, Int(-1, 1)),
    "real and too large": ((value - 1 * is_a) / 4, Real(-0.25, 0.25)),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_holds_for_each_token_is_shown(name):
    stream, type = SHOWN[name]
    _compile(stream.retyped(type))


@pytest.mark.parametrize("name", NOT_SHOWN)
def test_what_need_not_hold_is_refused(name):
    stream, type = NOT_SHOWN[name]
    with pytest.raises(CompileError, match=re.escape(f"it is declared {type}, and all that can be shown is")):
        _compile(stream.retyped(type))


def test_only_tokens_that_come_count():
    alike = concatenate(is_a, value > 0).retyped(OneHot(2))
    _compile(alike, "b")
    with pytest.raises(CompileError, match="it is declared OneHot"):
        _compile(alike, "ab")
