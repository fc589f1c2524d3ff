"""Several values in one number: none of them hides behind another, and one that is not 0 is found."""

from __future__ import annotations

import random
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from verify.checker.formats import EXACT
from verify.checker.meaning import packed
from verify.checker.meaning.packed import first_left, packs
from verify.checker.values.language import Edge, Language
from verify.checker.values.values import Value, World, combine, of_letters
from verify.checker.values.windows import TooLarge

LETTERS = 100
WORLD = World(Language(LETTERS, "q", (Edge("q", "q", np.ones(LETTERS, dtype=bool), False, True),), 16), EXACT)
REALLY = SimpleNamespace(world=WORLD, zero=lambda value: value.zero)


def _drawn(rng: random.Random) -> Value:
    """Multiples of some power of two, 0 at most letters."""
    dense = np.array([rng.choice([0, 0, 0, 0, *range(-9, 10)]) for _ in range(LETTERS)]) * 2.0 ** rng.randint(-3, 3)
    return of_letters(dense)


@pytest.mark.parametrize("seed", range(20))
def test_letter_by_letter_a_pack_is_0_only_where_all_are(seed):
    rng = random.Random(seed)
    values = {place: _drawn(rng) for place in rng.sample(range(50), 20)}
    values |= {60: combine([(Fraction(2), v) for v in values.values()][:1])}  # naive weights cancel proportional ones
    for places, together in packs(WORLD, values):
        held = np.array([[float(values[p].const)] + values[p].tables[0].dense() for p in places])
        whole = float(together.const) + together.tables[0].dense()
        assert ((whole == 0) == (held == 0).all(axis=0)).all()
    assert [p for places, _ in packs(WORLD, values) for p in places] == list(values)


@pytest.mark.parametrize("wrong", range(0, 20, 3))
def test_a_value_that_is_not_0_is_found(wrong):
    """Beside others that are 0, and beside its opposites: their sum is 0."""
    one = of_letters(np.arange(LETTERS) * 1.0)
    nothing = combine([])
    assert first_left(REALLY, dict.fromkeys(range(20), nothing)) is None
    assert first_left(REALLY, dict.fromkeys(range(20), nothing) | {wrong: one}) == wrong
    opposites = {wrong: one, 20: combine([(Fraction(-2), one)]), 21: one}
    assert first_left(REALLY, dict.fromkeys(range(20), nothing) | opposites) == wrong


@pytest.mark.parametrize("shown", [False, True])
def test_what_is_not_shown_together_is_shown_one_by_one(shown, monkeypatch):
    """A pack may be too large to look at; then its values decide, each by itself."""
    monkeypatch.setattr(packed, "_MOST_TOGETHER", 4)
    values = {place: of_letters(np.arange(LETTERS) * (place + 1.0)) for place in range(8)}
    alone = {v.key for v in values.values()}

    def zero(value: Value) -> bool:
        if value.key not in alone:
            raise TooLarge("a function of many letters")
        return shown or value.key != values[5].key

    reader = SimpleNamespace(world=WORLD, zero=zero)
    assert first_left(reader, values) == (None if shown else 5)
