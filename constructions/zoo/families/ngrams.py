"""N-gram models: the most probable next letter by a table of log-probabilities, or by counts of the text itself."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import log
from random import Random

import numpy as np

from compiler import (
    Alphabet,
    InputLanguage,
    Stream,
    Tokens,
    concatenate,
    emit,
    hardmax,
    memory,
    readout_one_hot,
    rounded,
)
from constructions.zoo.entry import Family, Own, sizes
from constructions.zoo.families.counting import ABC, Made
from constructions.zoo.machine import Machine

BITS = 6


def counts_of(contexts: int, letters: int, seed: int) -> list[list[int]]:
    """How often each letter stood behind each context in a corpus that is drawn: distinct numbers in a row."""
    rng = Random(seed)
    return [rng.sample(range(1, 40), letters) for _ in range(contexts)]


def log_probabilities(counts: list[list[int]]) -> list[list[float]]:
    return [[log(n / sum(row)) for n in row] for row in counts]


def bigram(letters: int, seed: int) -> Made:
    """The scores are log-probabilities, rounded to 1/64."""
    names = ("a", "b", "c", "d", "e", "f", "g", "h")[:letters]
    alphabet = Alphabet.of(*names)
    table = rounded(log_probabilities(counts_of(letters, letters, seed)), BITS).values
    scores = Tokens(alphabet).rows(None, table, "log_probability")
    return readout_one_hot(scores, alphabet), InputLanguage.everything(alphabet, None)


def trigram(seed: int) -> Made:
    """Of three letters; a text begins behind two b's that are not there. The scores are rounded to 1/4: the checker
    takes linear maps apart with denominators up to 2^16, and finer entries need larger ones.
    """
    alphabet = Alphabet.of(*ABC)
    table = rounded(log_probabilities(counts_of(9, 3, seed)), 2).values
    number = Tokens(alphabet).number({"a": -1, "c": 1}, name="letter_less_b")
    context = (3 * number.shift(1) + number + 4).named("context").one_hot(9)
    return readout_one_hot((table.T @ context).named("log_probability"), alphabet), InputLanguage.everything(
        alphabet, None
    )


def skip_bigram(lag: int, seed: int) -> Made:
    """The sum of two tables: one for the present letter, one for a letter some positions back."""
    alphabet = Alphabet.of(*ABC)
    near, far = (rounded(log_probabilities(counts_of(3, 3, seed + i)), BITS).values for i in range(2))
    x = Tokens(alphabet)
    scores = (x.rows(None, near, "near") + x.rows(None, far, "far").shift(lag)).named("score")
    return readout_one_hot(scores, alphabet), InputLanguage.everything(alphabet, None)


def bayes(words: int, length: int, seed: int) -> Made:
    """Naive Bayes: which of two topics a text is about, by the sum of log-odds of its words."""
    names = [f"w{i}" for i in range(words)]
    alphabet = Alphabet.of(*names, "sport", "music")
    odds = rounded(_log_odds(words, seed), BITS)
    units = {name: int(value * 2**BITS) for name, value in zip(names, odds.values.tolist())}
    evidence = Tokens(alphabet).number(units, name="log_odds_in_64ths").cumsum().named("evidence")
    return emit(alphabet, (evidence > 0, "sport"), otherwise="music"), InputLanguage.everything(alphabet, length, names)


def in_context_bigram(letters: int, length: int) -> Made:
    """The letter that most often followed the present one in this text."""
    names = ("a", "b", "c", "d")[:letters]
    alphabet = Alphabet.of(*names)
    letter = Tokens(alphabet).one_hot(name="letter")
    followers = memory.write(letter.shift(1), letter, name="followers").read(letter)
    return readout_one_hot(hardmax(followers).named("most"), alphabet), InputLanguage.everything(alphabet, length)


def after_a(length: int) -> Made:
    """Of the letters right behind an a, the most frequent so far."""
    alphabet = Alphabet.of(*ABC)
    x = Tokens(alphabet)
    behind = [(x.is_in("a").shift(1) & x.is_in(b)).cumsum().named(f"a{b}") for b in ABC]
    return readout_one_hot(hardmax(_together(behind)).named("most"), alphabet), InputLanguage.everything(
        alphabet, length
    )


def _together(streams: list[Stream]) -> Stream:
    return concatenate(*streams)


def frequency_weighted(seed: int, length: int) -> Made:
    """The letter whose count times a fixed weight is largest: a unigram model with a prior."""
    alphabet = Alphabet.of(*ABC)
    weights = np.diag(counts_of(1, 3, seed)[0])
    histogram = Tokens(alphabet).one_hot(name="letter").cumsum().named("histogram")
    return readout_one_hot(hardmax(weights @ histogram).named("most"), alphabet), InputLanguage.everything(
        alphabet, length
    )


# What each must answer ------------------------------------------------------------------------------------------


def _log_odds(words: int, seed: int) -> list[float]:
    for_sport, for_music = counts_of(2, words, seed)
    return [log(a / b) for a, b in zip(for_sport, for_music)]


def in_64ths(value: float) -> int:
    """The nearest whole number of 64ths, halves to even."""
    return round(Fraction(value) * 64)


def best(letters: str, scores: Callable[[str], float]) -> str | None:
    """The letter of the largest score; None where two are equal."""
    ranked = sorted(letters, key=scores)
    return ranked[-1] if scores(ranked[-1]) > scores(ranked[-2]) else None


def _bigram(letters: int, seed: int) -> Machine:
    names = "abcdefgh"[:letters]
    counts = counts_of(letters, letters, seed)
    answer = lambda last: best(names, lambda a: counts[names.index(last)][names.index(a)])
    return Machine("", lambda state, token: token, answer)


def _trigram(seed: int) -> Machine:
    counts = counts_of(9, 3, seed)

    def answer(text: str) -> str | None:
        row = counts[3 * "abc".index(text[0]) + "abc".index(text[1])]
        return best("abc", lambda a: round(Fraction(log(row["abc".index(a)] / sum(row))) * 4))

    return Machine("bb", lambda state, token: state[1] + token, answer)


def _skip(lag: int, seed: int) -> Machine:
    near, far = counts_of(3, 3, seed), counts_of(3, 3, seed + 1)

    def score(text: str, letter: str) -> int:
        tables = [(near, text[-1])] + [(far, text[0])] * (len(text) > lag)
        total = 0
        for counts, context in tables:
            row = counts["abc".index(context)]
            total += in_64ths(log(row["abc".index(letter)] / sum(row)))
        return total

    return Machine("", lambda s, t: (s + t)[-lag - 1 :], lambda text: best("abc", lambda a: score(text, a)))


def _topic(words: int, length: int, seed: int) -> Callable[[list[str]], str]:
    odds = [in_64ths(value) for value in _log_odds(words, seed)]
    return lambda tokens: "sport" if sum(odds[int(token[1:])] for token in tokens) > 0 else "music"


def _followers(letters: int, length: int) -> Callable[[list[str]], str]:
    def answer(tokens: list[str]) -> str:
        behind = [b for a, b in zip(tokens, tokens[1:]) if a == tokens[-1]]
        return max("abcd"[:letters], key=lambda letter: (behind.count(letter), -ord(letter)))

    return answer


def _after_a(length: int) -> Machine:
    def step(state: tuple, token: str) -> tuple:
        counts = tuple(n + (state[1] == "a" and token == letter) for n, letter in zip(state[0], "abc"))
        return counts, token

    return Machine(((0, 0, 0), ""), step, lambda state: max("abc", key=lambda a: (state[0]["abc".index(a)], -ord(a))))


def _weighted(seed: int, length: int) -> Callable[[list[str]], str]:
    weights = counts_of(1, 3, seed)[0]
    return lambda tokens: max("abc", key=lambda a: (weights["abc".index(a)] * tokens.count(a), -ord(a)))


FAMILY = Family(
    "ngrams",
    "n-gram models, from tables of log-probabilities and from the text itself",
    [
        *sizes(
            "bigram-{}",
            "the most probable letter behind the present one, of {}, by table {}",
            bigram,
            _bigram,
            (3, 1),
            (8, 2),
        ),
        Own(
            "trigram-3",
            "the most probable letter behind the last two, of 3, by log-probabilities rounded to 1/4, where one leads; "
            "a text begins behind b b",
            lambda: trigram(3),
            _trigram(3),
        ),
        *sizes(
            "skip-bigram-{}",
            "the most probable letter by the present one and the one {} back (table {})",
            skip_bigram,
            _skip,
            (2, 4),
            (4, 6),
        ),
        *sizes(
            "topic-of-{}-words",
            "which topic a text out of {} words is about, by naive Bayes in 64ths, up to {} words long (table {})",
            bayes,
            _topic,
            (6, 32, 8),
            (20, 32, 9),
        ),
        *sizes(
            "follows-most-of-{}",
            "what most often followed the present letter in this text, of {}, in up to {}; of equals the first",
            in_context_bigram,
            _followers,
            (2, 16),
            (3, 16),
            (4, 12),
        ),
        *sizes(
            "follows-a-most-{}",
            "what most often followed a in texts of up to {}; of equals the first in the alphabet",
            after_a,
            _after_a,
            10,
        ),
        *sizes(
            "weighted-most-{}",
            "the letter whose count times its weight is largest (weights {}), in up to {}; of equals the first",
            frequency_weighted,
            _weighted,
            (5, 16),
        ),
    ],
)
