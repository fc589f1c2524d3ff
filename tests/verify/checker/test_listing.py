"""What a sentence says of many letters, read again as a person would: it must be the letters, all of them, in order."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import numpy as np
import pytest

from verify.checker.tasks.names import Names
from verify.checker.tasks.task_forms import read_count

MIXED = [*(f"x{i}" for i in range(14)), *"abcdefgh", *(f"w{i:02}" for i in range(12)), "7", "8", "9", "10", "x", "n0m"]
GRID = [f"k{i}=v{j}" for i, j in product(range(3), range(4))]


def _between(first: str, last: str) -> list[str]:
    """x2 … x5, b … e, and k0=v0 … k2=v3: all with numbers from those of the first to those of the last."""
    if not re.search("[0-9]", first):
        return [chr(c) for c in range(ord(first), ord(last) + 1)]
    form = re.sub("[0-9]+", "{}", first)
    assert re.sub("[0-9]+", "{}", last) == form
    ends = zip(re.findall("[0-9]+", first), re.findall("[0-9]+", last), strict=True)
    return [form.format(*numbers) for numbers in product(*(range(int(a), int(b) + 1) for a, b in ends))]


def _read(said: str) -> list[str]:
    found: list[str] = []
    for part in said.split(", "):
        assert re.fullmatch("`[^`]+`( … `[^` ]+`)?", part), said
        words = [text.split() for text in re.findall("`([^`]+)`", part)]
        found += words[0] if len(words) == 1 else _between(words[0][0], words[1][0])
    return found


def _shown(letters: list[str], chosen: list[str]) -> str:
    names = Names(letters)
    return names.shown(names.these(chosen))


@pytest.mark.parametrize(
    "letters", [MIXED, GRID, [*GRID, "k0=v4"], [*GRID, "k00=v0"]], ids=["mixed", "grid", "4", "00"]
)
def test_letters_are_read_as_they_were_told(letters):
    rng, short = Random(0), 0
    for _ in range(300):
        first, step = rng.randrange(len(letters)), rng.choice((1, 1, 1, 2))
        chosen = letters[first : first + rng.randint(1, 30) : step]
        if rng.random() < 0.6:
            chosen.pop(rng.randrange(len(chosen)))
        if rng.random() < 0.2:
            rng.shuffle(chosen)
        if chosen:
            said = _shown(letters, chosen)
            assert _read(said) == chosen, said
            short += "…" in said
    assert short > 20
    for whole in (GRID, GRID[::-1], [GRID[0], *GRID[-2:0:-1], GRID[-1]]):
        assert _read(_shown(GRID, whole)) == whole


def test_a_letter_that_is_left_out_is_seen():
    letters = [f"x{i}" for i in range(10)]
    assert _shown(letters, letters) == "`x0` … `x9`"
    assert _shown(letters, letters[:5] + letters[6:]) == "`x0` … `x4`, `x6` … `x9`"
    assert _shown(GRID, GRID) == "`k0=v0` … `k2=v3`"
    assert "`k0=v0` … `k2=v3`" not in _shown([*GRID, "k0=v4"], GRID)  # which may be read to stand between


def test_a_list_that_is_too_long_is_named_by_its_sum():
    letters = [f"w{i}w" for i in range(300)]
    said = {_shown(letters, letters), _shown(letters, letters[1:]), _shown(letters, letters[::-1])}
    assert len(said) == 3 and all(re.match("(299|300) letters that stand in construction.json", one) for one in said)
    huge = [f"k{i}=v{10**15 * i}" for i in range(100)]
    assert _shown(huge, huge).startswith("100 letters")  # and no grid of 10^19


def _told(answers: list[str]) -> str:
    names = Names([*map(str, range(200)), "a", *"pqrs"])
    return read_count({"of": ["a"], "since": [], "answers": answers}, names)[1].split(": ")[1]


def _answers(told: str) -> list[str]:
    """Those of 0, 1, … up to the one that holds for all larger counts."""
    found: list[str] = []
    for part in told.split(", "):
        if many := re.fullmatch(r"`(\w+)` … `(\w+)` for (\d+) … (\d+) in turn", part):
            found += _between(many[1], many[2])
            assert (int(many[3]), int(many[4])) == (len(found) - len(_between(many[1], many[2])), len(found) - 1)
        else:
            one = re.fullmatch(r"`(\w+)` (?:for (\d+)(?: to (\d+))?|from (\d+) on)", part)
            first = int(one[2] or one[4])
            assert first == len(found)
            found += [one[1]] * (int(one[3] or first) - first + 1)
    return found


def test_answers_are_read_as_they_were_told():
    right = [str(i) for i in range(30)]
    assert _told(right) == "`0` … `28` for 0 … 28 in turn, `29` from 29 on"
    wrong = [*right[:20], "7", *right[21:]]
    assert "`7` for 20" in _told(wrong) and _answers(_told(wrong)) == wrong
    rng, read = np.random.default_rng(0), 0
    for _ in range(300):
        answers = [str(i) for i in range(rng.integers(1, 60))]
        for _ in range(rng.integers(0, 4)):
            at = rng.integers(len(answers))
            answers[at] = str(rng.choice([*"pqrs", *map(str, range(60))]))
            answers[at:] = answers[at:] if rng.random() < 0.7 else [answers[at]] * rng.integers(1, 9) + answers[at:]
        told = _told(answers)
        if "SHA-256" not in told:
            read += 1
            whole = _answers(told)
            assert whole == answers[: len(whole)] and set(answers[len(whole) :]) <= {whole[-1]}, told
    assert read > 200
    assert _told([str(i) for i in range(199, 0, -1)]) != _told([str(i) for i in range(198, 0, -1)])


def test_names_that_look_like_quotes_or_like_others_are_told_by_their_numbers():
    assert _shown(["a`", "b"], ["a`", "b"]) == "`a`(U+0061 U+0060) b`"
    assert Names(["\u0445"]).said(0) == "\u0445(U+0445)"
