"""Codebooks: what each one promises, by brute force."""

import itertools

import numpy as np
import pytest

from compiler.language.codebook import bits, jl, jl_length, least_coherence, signs


def gram(book):
    return book.words.astype(np.int64) @ book.words.T


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 40, 255, 256])
def test_bits_are_short_and_never_blank(size):
    book = bits(size)
    assert book.length == int(np.ceil(np.log2(size + 1))) and not book.signed
    assert (book.words.sum(axis=1) > 0).all() and len(np.unique(book.words, axis=0)) == size


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 40, 256])
def test_signs_tell_all_words_apart(size):
    book = signs(size)
    assert book.length == max(1, int(np.ceil(np.log2(size)))) and book.signed == (size > 0)
    others = gram(book) - 2 * book.length * np.eye(size, dtype=np.int64)
    assert (np.diag(gram(book)) == book.length).all() and others.max() <= book.length - 2


@pytest.mark.parametrize("size, epsilon", [(2, 0.9), (64, 0.5), (512, 0.4), (1000, 0.3)])
def test_jl_codes_measure_up(size, epsilon):
    code = jl(size, epsilon, delta=0.1, seed=5)
    off = gram(code.book) - code.book.length * np.eye(size, dtype=np.int64)
    assert np.abs(off).max() / code.book.length == code.coherence <= epsilon
    assert code.book.length == jl_length(size, epsilon, 0.1) and code.to_json()["seed"] == 5


def test_jl_codes_are_reproducible():
    first, second = (jl(50, 0.5, length=60, seed=3) for _ in range(2))
    assert np.array_equal(first.book.words, second.book.words) and first.draws == second.draws


def test_lemma_4_holds_more_often_than_it_says():
    """δ = 0.7: at least half of the draws succeed at once."""
    at_once = sum(jl(40, 0.5, delta=0.7, seed=100 * i).draws == 1 for i in range(40))
    assert at_once / 40 >= 1 - 0.7**2


@pytest.mark.parametrize("size, length", [(3, 1), (3, 2), (5, 3), (6, 3), (4, 4), (9, 4)])
def test_the_least_coherence_is_sound(size, length):
    """By brute force over all codes of distinct words."""
    words = list(itertools.product((-1, 1), repeat=length))
    if len(words) < size:
        assert least_coherence(size, length) == 1
        return
    best = min(
        np.abs(np.triu(np.array(c) @ np.array(c).T, 1)).max() / length for c in itertools.combinations(words, size)
    )
    assert least_coherence(size, length) <= best + 1e-12


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"size": 1000, "epsilon": 0.1, "length": 50}, "no 1000 words of length 50"),
        ({"size": 100, "epsilon": 0.5, "length": 5}, "no 100 words of length 5"),
        ({"size": 400, "epsilon": 0.3, "length": 40}, "none of 64 codes"),
        ({"size": 10, "epsilon": 1.5}, "makes no sense"),
    ],
)
def test_codes_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        jl(**arguments)
