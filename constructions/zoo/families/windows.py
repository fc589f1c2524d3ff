"""Windows: what stood a few positions back, patterns of neighbours, runs, and sums over the last few."""

from __future__ import annotations

from collections.abc import Callable

from compiler import (
    Alphabet,
    InputLanguage,
    Tokens,
    all_of,
    any_of,
    count,
    emit,
    hardmax,
    lti,
    maximum,
    minimum,
    present,
    readout_integer,
    readout_one_hot,
)
from constructions.zoo.entry import Family, Own, sizes
from constructions.zoo.families.counting import ABC, ABCD, Made, numerals
from constructions.zoo.machine import Machine

BITS = ("0", "1")
DIGITS = tuple("01234")


def lag(k: int) -> Made:
    alphabet = Alphabet.of(*ABCD, "-")
    earlier = Tokens(alphabet).one_hot(*ABCD, name="letter").shift(k).named("earlier")
    return readout_one_hot(earlier, alphabet, ABCD, otherwise="-"), InputLanguage.everything(alphabet, None, ABCD)


def pattern(word: str) -> Made:
    """Whether the word ends here; `.` stands for any letter."""
    alphabet = Alphabet.of(*ABC, "yes", "no")
    x, last = Tokens(alphabet), len(word) - 1
    parts = [x.is_in(*(ABC if a == "." else a)).shift(last - i) for i, a in enumerate(word)]
    ends = all_of(*parts).named("ends")
    return emit(alphabet, (ends, "yes"), otherwise="no"), InputLanguage.everything(alphabet, None, ABC)


def same_as_back(k: int) -> Made:
    alphabet = Alphabet.of(*ABC, "yes", "no")
    letter = Tokens(alphabet).one_hot(*ABC, name="letter")
    same = (letter == letter.shift(k)).named("same")
    return emit(alphabet, (same, "yes"), otherwise="no"), InputLanguage.everything(alphabet, None, ABC)


def window_sum(width: int) -> Made:
    sums = numerals(4 * width)
    alphabet = Alphabet.of(*sums)
    number = Tokens(alphabet).number({d: int(d) for d in DIGITS}, name="number")
    total = lti(number, [1] * width).named("total")
    return readout_integer(total, alphabet, sums), InputLanguage.everything(alphabet, 64, DIGITS)


def window_most(sign: int, width: int) -> Made:
    alphabet = Alphabet.of(*DIGITS)
    number = Tokens(alphabet).number({d: int(d) + 1 for d in DIGITS}, name="number_and_1")  # 0 before the start
    best = number
    for k in range(1, width):
        best = maximum(best, number.shift(k)) if sign > 0 else minimum(best, number.shift(k))
    values = {d: int(d) + 1 for d in DIGITS} if sign > 0 else {"0": 1, **{d: int(d) + 1 for d in DIGITS[1:]}}
    return readout_integer(best.named("best"), alphabet, values), InputLanguage.everything(alphabet, 64)


def vote(width: int) -> Made:
    alphabet = Alphabet.of(*BITS)
    ones = lti(Tokens(alphabet).is_in("1", name="one"), [1] * width).named("ones")
    return emit(alphabet, (2 * ones > width, "1"), otherwise="0"), InputLanguage.everything(alphabet, 64)


def exclusive(lags: tuple[int, ...]) -> Made:
    alphabet = Alphabet.of(*BITS)
    one = Tokens(alphabet).is_in("1", name="one")
    odd = one
    for k in lags:
        odd = odd ^ one.shift(k)
    return emit(alphabet, (odd.named("odd"), "1"), otherwise="0"), InputLanguage.everything(alphabet, None)


def run_length(most: int) -> Made:
    digits = numerals(most)
    alphabet = Alphabet.of("a", "b", *digits)
    x = Tokens(alphabet)
    a, b = count(x.is_in("a"), reset=x.is_in("b")).named("run_of_a"), count(x.is_in("b"), reset=x.is_in("a"))
    length = (a + b.named("run_of_b")).named("length")
    return readout_integer(length, alphabet, digits), InputLanguage.everything(alphabet, most, ("a", "b"))


def direction() -> Made:
    alphabet = Alphabet.of(*DIGITS, "up", "down", "same", "first")
    x = Tokens(alphabet)
    number = x.number({d: int(d) for d in DIGITS}, name="number")
    step, second = (number - number.shift(1)).named("step"), x.is_in(*DIGITS).shift(1).named("second")
    rules = [(~second, "first"), (step > 0, "up"), (step < 0, "down")]
    return emit(alphabet, *rules, otherwise="same"), InputLanguage.everything(alphabet, None, DIGITS)


def peak() -> Made:
    """Whether the number before the present one is larger than both of its neighbours."""
    alphabet = Alphabet.of(*DIGITS, "yes", "no")
    x = Tokens(alphabet)
    number = x.number({d: int(d) for d in DIGITS}, name="number")
    rose = (number.shift(1) > number.shift(2)).named("rose")
    fell = (number.shift(1) > number).named("fell")
    found = all_of(rose, fell, x.is_in(*DIGITS).shift(2)).named("peak")
    return emit(alphabet, (found, "yes"), otherwise="no"), InputLanguage.everything(alphabet, None, DIGITS)


def all_different(width: int) -> Made:
    alphabet = Alphabet.of(*ABCD, "yes", "no")
    letter = Tokens(alphabet).one_hot(*ABCD, name="letter")
    pairs = [letter.shift(i) == letter.shift(j) for i in range(width) for j in range(i + 1, width)]
    twice = any_of(*pairs).named("twice")
    return emit(alphabet, (twice, "no"), otherwise="yes"), InputLanguage.everything(alphabet, None, ABCD)


def alternates() -> Made:
    alphabet = Alphabet.of("a", "b", "yes", "no")
    a, b = (Tokens(alphabet).is_in(letter) for letter in ("a", "b"))
    twice = ((a & a.shift(1)) | (b & b.shift(1))).named("twice")
    broken = present(twice).named("broken")
    return emit(alphabet, (broken, "no"), otherwise="yes"), InputLanguage.everything(alphabet, None, ("a", "b"))


def majority_of_last(width: int) -> Made:
    alphabet = Alphabet.of(*ABC)
    tally = lti(Tokens(alphabet).one_hot(name="letter"), [1] * width).named("tally")
    return readout_one_hot(hardmax(tally).named("winner"), alphabet), InputLanguage.everything(alphabet, 64)


def differences(k: int) -> Made:
    values = {str(n): n for n in range(-4, 5)}
    alphabet = Alphabet.of(*values)
    number = Tokens(alphabet).number({d: int(d) for d in DIGITS}, name="number")
    return readout_integer((number - number.shift(k)).named("change"), alphabet, values), InputLanguage.everything(
        alphabet, None, DIGITS
    )


# What each must answer ------------------------------------------------------------------------------------------


def last(k: int, answer: Callable[[str], str]) -> Machine:
    """What follows from the last k tokens, the latest at the end."""
    return Machine("", lambda state, token: (state + token)[-k:], answer)


def _pattern(word: str) -> Machine:
    fits = lambda text: len(text) == len(word) and all(a in (b, ".") for a, b in zip(word, text))
    return last(len(word), lambda text: "yes" if fits(text) else "no")


def _odd(lags: tuple[int, ...]) -> Machine:
    return last(1 + max(lags), lambda text: str(sum(text[::-1][k : k + 1] == "1" for k in (0, *lags)) % 2))


def _run(most: int) -> Machine:
    step = lambda state, token: (token, state[1] + 1 if token == state[0] else 1)
    return Machine(("", 0), step, lambda state: str(state[1]))


def _direction(text: str) -> str:
    if len(text) < 2:
        return "first"
    return "up" if text[1] > text[0] else "down" if text[1] < text[0] else "same"


def _best(sign: int, width: int) -> Machine:
    """Before the start there is nothing, which is less than every number."""
    return last(width, lambda text: max(text) if sign > 0 else min(text) if len(text) == width else "0")


FAMILY = Family(
    "windows",
    "the last few tokens: what stood there, and what it makes",
    [
        *sizes(
            "token-{}-back",
            "the letter {} positions back, - where there is none",
            lag,
            lambda k: last(k + 1, lambda text: text[0] if len(text) > k else "-"),
            *(1, 2, 3, 5),
        ),
        *sizes("ends-{}", "whether the text so far ends in {}", pattern, _pattern, "ab", "abc", "abca"),
        Own("ends-a-any-c", "whether the text ends in a, any letter, c", lambda: pattern("a.c"), _pattern("a.c")),
        *sizes(
            "same-as-{}-back",
            "whether the letter equals that of {} positions back",
            same_as_back,
            lambda k: last(k + 1, lambda text: "yes" if len(text) > k and text[0] == text[-1] else "no"),
            *(1, 3),
        ),
        *sizes(
            "sum-of-last-{}",
            "the sum of the last {} digits, each 0 to 4",
            window_sum,
            lambda width: last(width, lambda text: str(sum(map(int, text)))),
            *(2, 3, 4),
        ),
        Own("largest-of-last-3", "the largest of the last 3 digits", lambda: window_most(1, 3), _best(1, 3)),
        Own(
            "smallest-of-last-3",
            "the smallest of the last 3 digits, 0 while there are fewer",
            lambda: window_most(-1, 3),
            _best(-1, 3),
        ),
        *sizes(
            "vote-of-last-{}",
            "whether more than half of the last {} bits are ones",
            vote,
            lambda width: last(width, lambda text: "1" if 2 * text.count("1") > width else "0"),
            *(3, 5),
        ),
        Own("xor-of-last-2", "the present bit xor the one before", lambda: exclusive((1,)), _odd((1,))),
        Own(
            "xor-of-three",
            "the present bit xor the bits one and three positions back",
            lambda: exclusive((1, 3)),
            _odd((1, 3)),
        ),
        *sizes("run-length-{}", "how many equal letters in a row end here, in up to {}", run_length, _run, *(8, 16)),
        Own("direction", "whether the digit is above, below or at the one before", direction, last(2, _direction)),
        Own(
            "peak",
            "whether the digit before the present one is larger than both of its neighbours",
            peak,
            last(3, lambda text: "yes" if len(text) == 3 and text[0] < text[1] > text[2] else "no"),
        ),
        *sizes(
            "last-{}-differ",
            "whether no letter stands twice among the last {}",
            all_different,
            lambda width: last(width, lambda text: "yes" if len(set(text)) == len(text) else "no"),
            *(3, 4),
        ),
        Own(
            "alternates",
            "whether no letter so far equals the one before it",
            alternates,
            Machine(("", "yes"), lambda s, t: (t, "no" if t == s[0] else s[1]), lambda s: s[1]),
        ),
        Own(
            "most-of-last-5",
            "the most frequent of the last five letters; of equals the first in the alphabet",
            lambda: majority_of_last(5),
            last(5, lambda text: max("abc", key=lambda a: (text.count(a), -ord(a)))),
        ),
        *sizes(
            "change-over-{}",
            "the digit less the one {} positions back (0 where there is none)",
            differences,
            lambda k: last(k + 1, lambda text: str(int(text[-1]) - (int(text[0]) if len(text) > k else 0))),
            *(1, 2),
        ),
    ],
)
