"""Counting: how often, how often since, how many of each, and which is ahead."""

from __future__ import annotations

from collections.abc import Callable

from compiler import (
    Alphabet,
    InputLanguage,
    Stream,
    Tokens,
    concatenate,
    constant,
    count,
    emit,
    hardmax,
    memory,
    present,
    readout_integer,
    readout_one_hot,
)
from constructions.zoo.entry import Family, Own, sizes
from constructions.zoo.machine import Machine
from verify.tasks.forms import Counted

ABC = ("a", "b", "c")
ABCD = ("a", "b", "c", "d")
Made = tuple[Stream, InputLanguage]


def numerals(most: int) -> dict[str, int]:
    return {str(n): n for n in range(most + 1)}


def count_letter(most: int) -> Made:
    digits = numerals(most)
    alphabet = Alphabet.of(*ABC, *digits)
    seen = Tokens(alphabet).is_in("a").cumsum().named("seen")
    return readout_integer(seen, alphabet, digits), InputLanguage.everything(alphabet, most, ABC)


def count_since(most: int) -> Made:
    digits = numerals(most)
    alphabet = Alphabet.of(*ABC, *digits)
    x = Tokens(alphabet)
    since = count(x.is_in("a"), reset=x.is_in("b")).named("since")
    return readout_integer(since, alphabet, digits), InputLanguage.everything(alphabet, most, ABC)


def count_modulo(modulus: int, length: int) -> Made:
    digits = numerals(modulus - 1)
    alphabet = Alphabet.of(*ABC, *digits)
    seen = Tokens(alphabet).is_in("a").cumsum().named("seen")
    remainder = (seen % modulus).named("remainder")
    return readout_integer(remainder, alphabet, digits), InputLanguage.everything(alphabet, length, ABC)


def at_least(n: int) -> Made:
    alphabet = Alphabet.of(*ABC, "yes", "no")
    seen = Tokens(alphabet).is_in("a").cumsum().named("seen")
    return emit(alphabet, (seen >= n, "yes"), otherwise="no"), InputLanguage.everything(alphabet, 64, ABC)


def lead(length: int) -> Made:
    alphabet = Alphabet.of("a", "b", "=")
    x = Tokens(alphabet)
    ahead = (x.is_in("a").cumsum() - x.is_in("b").cumsum()).named("ahead")
    scores = emit(alphabet, (ahead > 0, "a"), (ahead < 0, "b"), otherwise="=")
    return scores, InputLanguage.everything(alphabet, length, ("a", "b"))


def distinct() -> Made:
    digits = numerals(4)
    alphabet = Alphabet.of(*ABCD, *digits)
    x = Tokens(alphabet)
    seen = concatenate(*(present(x.is_in(letter)) for letter in ABCD)).named("seen")
    scores = readout_integer(seen.sum().named("kinds"), alphabet, digits)
    return scores, InputLanguage.everything(alphabet, 64, ABCD)


def own_count(most: int) -> Made:
    """A histogram, read where each letter stands."""
    digits = numerals(most)
    alphabet = Alphabet.of(*ABC, *digits)
    letter = Tokens(alphabet).one_hot(*ABC, name="letter")
    tally = memory.write(letter, constant(1), name="histogram").read(letter)
    return readout_integer(tally, alphabet, digits), InputLanguage.everything(alphabet, most, ABC)


def most_frequent(letters: tuple[str, ...], length: int) -> Made:
    alphabet = Alphabet.of(*letters)
    histogram = Tokens(alphabet).one_hot(name="letter").cumsum().named("histogram")
    winner = hardmax(histogram).named("winner")
    return readout_one_hot(winner, alphabet), InputLanguage.everything(alphabet, length)


def least_frequent(length: int) -> Made:
    alphabet = Alphabet.of(*ABC)
    histogram = Tokens(alphabet).one_hot(name="letter").cumsum().named("histogram")
    loser = hardmax(-histogram).named("loser")
    return readout_one_hot(loser, alphabet), InputLanguage.everything(alphabet, length)


def singletons() -> Made:
    digits = numerals(4)
    alphabet = Alphabet.of(*ABCD, *digits)
    histogram = Tokens(alphabet).one_hot(*ABCD, name="letter").cumsum().named("histogram")
    once = (histogram == 1).named("once")
    return readout_integer(once.sum(), alphabet, digits), InputLanguage.everything(alphabet, 12, ABCD)


def difference(most: int) -> Made:
    values = {str(n): n for n in range(-most, most + 1)}
    alphabet = Alphabet.of(*ABC, *values)
    balance = Tokens(alphabet).number({"a": 1, "b": -1}).cumsum().named("balance")
    return readout_integer(balance, alphabet, values), InputLanguage.everything(alphabet, most, ABC)


def pairs(most: int) -> Made:
    digits = numerals(most)
    alphabet = Alphabet.of(*ABC, *digits)
    x = Tokens(alphabet)
    pair = (x.is_in("a").shift(1) & x.is_in("b")).named("pair")
    return readout_integer(pair.cumsum().named("pairs"), alphabet, digits), InputLanguage.everything(
        alphabet, 2 * most, ABC
    )


def distance(most: int) -> Made:
    digits = numerals(most - 1)
    alphabet = Alphabet.of(*ABC, *digits, "-")
    x = Tokens(alphabet)
    ago = count(~x.is_in("a"), reset=x.is_in("a")).named("ago")
    never = (~present(x.is_in("a"))).named("never")
    rules = [(never, "-"), *((ago == n, digit) for digit, n in digits.items())]
    return emit(alphabet, *rules, otherwise="0"), InputLanguage.everything(alphabet, most, ABC)


def equal_counts() -> Made:
    alphabet = Alphabet.of(*ABC, "yes", "no")
    x = Tokens(alphabet)
    a_less_b = x.number({"a": 1, "b": -1}, name="a-b").cumsum().named("a_less_b")
    b_less_c = x.number({"b": 1, "c": -1}, name="b-c").cumsum().named("b_less_c")
    equal = ((a_less_b == 0) & (b_less_c == 0)).named("equal")
    return emit(alphabet, (equal, "yes"), otherwise="no"), InputLanguage.everything(alphabet, 15, ABC)


def changes(most: int) -> Made:
    digits = numerals(most)
    alphabet = Alphabet.of(*ABC, *digits)
    x = Tokens(alphabet)
    letter = x.one_hot(*ABC, name="letter")
    same, follows = (letter == letter.shift(1)).named("same"), x.is_in(*ABC).shift(1)
    changed = (follows - same).cumsum().named("changes")
    return readout_integer(changed, alphabet, digits), InputLanguage.everything(alphabet, most, ABC)


# What each must answer ------------------------------------------------------------------------------------------


def _counted(of: str, most: int, since: str = "") -> Counted:
    return Counted([of], [str(n) for n in range(most + 1)], list(since))


def _remainder(modulus: int, length: int) -> Machine:
    return Machine(0, lambda n, token: (n + (token == "a")) % modulus, str)


def _lead(length: int) -> Machine:
    step = lambda n, token: n + (1 if token == "a" else -1)
    return Machine(0, step, lambda n: "a" if n > 0 else "b" if n < 0 else "=")


def _tallied(letters: tuple[str, ...], answer: Callable[[dict[str, int], str], str]) -> Machine:
    """What follows from how often each letter stood, and which stood last."""

    def step(state: tuple[tuple[int, ...], str], token: str) -> tuple[tuple[int, ...], str]:
        return tuple(n + (letter == token) for n, letter in zip(state[0], letters)), token

    start = ((0,) * len(letters), "")
    return Machine(start, step, lambda state: answer(dict(zip(letters, state[0])), state[1]))


def _top(letters: tuple[str, ...], sign: int) -> Machine:
    return _tallied(letters, lambda seen, _: max(letters, key=lambda a: (sign * seen[a], -letters.index(a))))


def _distance(most: int) -> Machine:
    step = lambda ago, token: 0 if token == "a" else ago if ago == "-" else ago + 1
    return Machine("-", step, str)


def _changes(counts: Callable[[str, str], bool]) -> Machine:
    """How often two letters in a row are of a kind."""
    step = lambda state, token: (state[0] + counts(state[1], token), token)
    return Machine((0, ""), step, lambda state: str(state[0]))


def _equal(seen: dict[str, int], last: str) -> str:
    return "yes" if seen["a"] == seen["b"] == seen["c"] else "no"


FAMILY = Family(
    "counting",
    "counts of letters, and what they say of each other",
    [
        *sizes(
            "count-a-to-{}",
            "how many a's there were so far, in texts of up to {} letters",
            count_letter,
            lambda most: _counted("a", most),
            *(8, 24),
        ),
        *sizes(
            "count-since-b-to-{}",
            "how many a's there were since the last b, in texts of up to {} letters",
            count_since,
            lambda most: _counted("a", most, "b"),
            *(8, 24),
        ),
        *sizes(
            "count-modulo-{}",
            "the number of a's so far, modulo {}, in texts of up to {} letters",
            count_modulo,
            _remainder,
            *((2, 32), (3, 32), (5, 32)),
        ),
        *sizes(
            "at-least-{}",
            "whether there were at least {} a's so far",
            at_least,
            lambda n: Counted.at_least(n, ["a"], yes="yes", no="no"),
            *(1, 3, 10),
        ),
        *sizes(
            "which-leads-{}",
            "which of a and b stood more often so far (= for a tie), in texts of up to {} letters",
            lead,
            _lead,
            *(16, 128),
        ),
        Own(
            "distinct-letters",
            "how many different letters of a, b, c, d there were so far",
            distinct,
            Machine(frozenset(), lambda seen, token: seen | {token}, lambda seen: str(len(seen))),
        ),
        *sizes(
            "histogram-{}",
            "how often the present letter stood so far, itself included, in texts of up to {} letters",
            own_count,
            lambda most: _tallied(ABC, lambda seen, last: str(seen.get(last))),
            *(8, 16),
        ),
        Own(
            "most-frequent-of-3",
            "which of a, b, c stood most often so far; of equals the first in the alphabet",
            lambda: most_frequent(ABC, 16),
            _top(ABC, 1),
        ),
        Own(
            "most-frequent-of-4",
            "which of a, b, c, d stood most often so far; of equals the first in the alphabet",
            lambda: most_frequent(ABCD, 12),
            _top(ABCD, 1),
        ),
        Own(
            "least-frequent-of-3",
            "which of a, b, c stood least often so far; of equals the first in the alphabet",
            lambda: least_frequent(16),
            _top(ABC, -1),
        ),
        Own(
            "letters-seen-once",
            "how many of the letters a, b, c, d stood exactly once so far",
            singletons,
            _tallied(ABCD, lambda seen, _: str(sum(n == 1 for n in seen.values()))),
        ),
        *sizes(
            "a-less-b-to-{}",
            "the number of a's less the number of b's, in texts of up to {} letters",
            difference,
            lambda most: Machine(0, lambda n, token: n + (token == "a") - (token == "b"), str),
            8,
        ),
        *sizes(
            "count-ab-to-{}",
            "how often b stood right behind a so far, up to {}",
            pairs,
            lambda most: _changes(lambda one, other: one + other == "ab"),
            8,
        ),
        *sizes(
            "letters-since-a-{}",
            "how many letters ago the last a was (- where there is none), in texts of up to {} letters",
            distance,
            _distance,
            12,
        ),
        Own("equal-counts", "whether a, b and c stood equally often so far", equal_counts, _tallied(ABC, _equal)),
        *sizes(
            "count-changes-to-{}",
            "how often a letter differed from the one before it, in texts of up to {} letters",
            changes,
            lambda most: _changes(lambda one, other: one not in ("", other)),
            12,
        ),
    ],
)
