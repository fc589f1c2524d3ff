"""How much of other keys' values a query reads, letter by letter."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from verify.kernel import recall
from verify.kernel.floats import Unproved
from verify.kernel.language import Edge, Language
from verify.kernel.terms import Mono, Terms, constant

ONE, LETTERS, KEYS = Fraction(1), 9, [2, 3, 4, 5, 7]
ALL = Language(LETTERS, 1, (Edge(0, 0, np.ones(LETTERS, bool), False),), 9)


def query(terms: Terms, here: np.ndarray, back: np.ndarray) -> tuple[Mono, int] | None:
    """A monomial, and so many times it are max(here(now) + back(letter before) − 1, 0); None where that is no relu."""
    before = terms.earlier(terms.of_letter(back), 1)
    bent = terms.relu(terms.add([(ONE, terms.of_letter(here)), (ONE, before), (-ONE, constant(1))]))
    ((mono, times), *others) = bent.terms.items()
    return None if others or terms.atoms[mono[0][0]].kind != "relu" else (mono, int(times))


def right(here: np.ndarray, back: np.ndarray, weights: np.ndarray, most: list[int]) -> tuple[int, int]:
    """The least own weight and the most of others, by plain integers, for each key and each letter before it."""
    own, others = [], []
    for i, key in enumerate(KEYS):
        for before in range(LETTERS):
            asked = [max(int(h[key]) + int(b[before]) - 1, 0) for h, b in zip(here, back, strict=True)]
            read = [sum(q * int(w) for q, w in zip(asked, weights[:, k], strict=True)) for k in range(len(KEYS))]
            own.append(read[i])
            others.append(sum(n * abs(read[k]) for k, n in enumerate(most) if k != i))
    return min(own), max(others)


@pytest.mark.parametrize("at_once", [1 << 26, 400, 200])
def test_every_key_is_asked_behind_every_letter(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """at_once: how many numbers are held; 200 of them are one key and one letter before it."""
    monkeypatch.setattr(recall, "_MOST", at_once)
    rng, told = np.random.default_rng(0), Counter[bool]()
    for _ in range(600):
        terms, count = Terms(ALL), int(rng.integers(1, 5))
        here = rng.integers(rng.integers(0, 3), 4, (count, LETTERS))
        back = rng.integers(0, 3, (count, LETTERS)) * (rng.random((count, LETTERS)) < 0.5)
        asked = [q for q in (query(terms, h, b) for h, b in zip(here, back, strict=True)) if q]
        if len(asked) < count:
            continue
        weights, most = rng.integers(rng.integers(-2, 2), 8, (count, len(KEYS))), rng.integers(0, 5, len(KEYS)).tolist()
        low, high = right(here, back, weights, most)
        weights = weights * np.array([times for _, times in asked])[:, None]
        sizes = lambda asked=asked, terms=terms, weights=weights, most=most: recall._sizes(
            terms, weights, [mono for mono, _ in asked], np.array(KEYS), most
        )
        told[low > 0] += 1
        if low > 0:
            assert sizes() == (low, high)
        else:
            with pytest.raises(Unproved, match="does not read its own key"):
                sizes()
    assert min(told.values()) > 20, told
