"""Memories that keep the last write under a key that goes up and down: stacks, and lists read backwards.

Arithmetic and meaning are proved. Without the running sums that are added up at once, no stack is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from compiler import (
    Alphabet,
    Circuit,
    InputLanguage,
    Tokens,
    concatenate,
    count,
    latch,
    memory,
    position,
    present,
    readout_one_hot,
)
from compiler.language.codebook import balanced
from compiler.language.output import readout
from examples.programs import backwards, two_brackets
from examples.programs.two_brackets import BRACKETS, CLOSED, OPEN
from tests.verify.checker.checkpoints import write
from verify.checker.check import check
from verify.checker.values import bounds

brackets = Tokens(BRACKETS)
opens, closes = brackets.is_in(OPEN), brackets.is_in(CLOSED)
square = brackets.is_in(["["])
LIST = Alphabet.of("|", ".", x=3)


def _language(depth: int, length: int) -> InputLanguage:
    return two_brackets.circuit(depth, length).language


def _closing(depth: int = 3, length: int = 12) -> Circuit:
    """The type that a closing bracket must have, read at the bracket itself, and whether all were right so far."""
    level = ((opens - closes).cumsum() + closes).one_hot(depth + 1)
    top = memory.write(level, square, when=opens, policy="last", name="stack").read(level)
    wrong = present(closes & (top != brackets.is_in(["]"])))
    return Circuit("closing", concatenate(1 - wrong, wrong, top), _language(depth, length))


def _next(depth: int = 3) -> Circuit:
    """Which brackets may come next."""
    level = (opens - closes).cumsum()
    top = memory.write(level.one_hot(depth + 1), square, when=opens, policy="last", name="stack")
    top = top.read(level.one_hot(depth + 1))
    more, some = level < depth, level > 0
    return Circuit("next", concatenate(more, more, some & ~top, some & top), _language(depth, 12))


def _codes(depth: int = 3) -> Circuit:
    """Values that are codes, and a key that is itself 0 where nothing is written."""
    level = brackets.number({"(": 1, "[": 1, ")": -1, "]": -1}).cumsum().one_hot(depth + 1)
    value = brackets.code(OPEN, balanced(2), "type")
    read = memory.write(level & opens, value, policy="last", name="stack").read(level)
    return Circuit("codes", readout(read, balanced(2), BRACKETS, CLOSED), _language(depth, 12))


def _from_the_end(n: int = 4) -> Circuit:
    """The places since the bar, taken from how many there were."""
    x = Tokens(LIST)
    letter, bar = x.is_in("x"), x.is_in(["|"])
    place = count(letter, reset=bar)
    asked = (latch(place.shift(1), bar) - place).one_hot(n + 1)
    held = memory.write(place.one_hot(n + 1), x.one_hot("x"), when=letter & ~present(bar), policy="last", name="held")
    return Circuit("from-the-end", readout_one_hot(held.read(asked), LIST, "x"), _lists(n))


def _by_position(n: int = 4) -> Circuit:
    """The position mirrored at the bar."""
    x = Tokens(LIST)
    bar = x.is_in(["|"])
    asked = (2 * latch(position(), bar) - position() - 1).one_hot(2 * n + 3)
    first = x.is_in("x") & ~present(bar)
    held = memory.write(position().one_hot(2 * n + 3), x.one_hot("x"), when=first, policy="last", name="held")
    return Circuit("by-position", readout_one_hot(held.read(asked), LIST, "x"), _lists(n))


def _lists(n: int) -> InputLanguage:
    edges = [("list", "list", "x"), ("list", "back", ["|"]), ("back", "back", "x"), ("back", "end", ["."])]
    return InputLanguage.of(LIST, "list", edges, 2 * n + 2, "a list, a bar, a list")


STACKS: dict[str, Callable[[], Circuit]] = {
    "two brackets": two_brackets.circuit,
    "two brackets, deep and long": lambda: two_brackets.circuit(8, 1000),
    "at the closing bracket": _closing,
    "at the closing bracket, long": lambda: _closing(3, 65536),
    "codes": _codes,
    "what may come next": _next,
}
LISTS: dict[str, Callable[[], Circuit]] = {
    "backwards": backwards.circuit,
    "backwards, long": lambda: backwards.circuit(16),
    "from the end": _from_the_end,
    "by position": _by_position,
}
CIRCUITS = STACKS | LISTS


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("name", CIRCUITS)
def test_arithmetic_and_meaning_are_proved(name: str, target: str, tmp_path: Path):
    verdict = check(write(tmp_path / "made", CIRCUITS[name](), target))
    assert verdict.weights is None, verdict.lines()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("program", [two_brackets, backwards], ids=lambda m: m.__name__.split(".")[-1])
def test_in_narrow_formats_too(program, dtype: str, tmp_path: Path):
    verdict = check(write(tmp_path / "made", program.circuit(), "mamba", dtype))
    assert verdict.weights is None, verdict.lines()


@pytest.mark.parametrize("name", ["two brackets", "at the closing bracket"])
def test_stacks_need_the_sum_of_all_that_sums_add(name: str, tmp_path: Path, monkeypatch):
    made = write(tmp_path / "made", CIRCUITS[name](), "mamba")
    monkeypatch.setattr(bounds, "_summed_at_once", lambda world, value: None)
    assert check(made).meaning is not None
