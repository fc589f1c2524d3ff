"""Arithmetic: digits added with a carry, compared, and taken modulo a number, in several bases."""

from __future__ import annotations

from collections.abc import Callable

from compiler import (
    Alphabet,
    InputLanguage,
    Tokens,
    count,
    emit,
    latch,
    present,
    readout_integer,
    running_max,
)
from constructions.zoo.entry import Family, Own, sizes
from constructions.zoo.families.counting import Made, numerals
from constructions.zoo.machine import Machine


def add(base: int) -> Made:
    """Two numbers digit by digit, the lowest first: the digit of their sum. The carry is the last one that was set."""
    digits, pairs = numerals(base - 1), {f"{i}+{j}": i + j for i in range(base) for j in range(base)}
    alphabet = Alphabet.of(*pairs, *digits)
    x = Tokens(alphabet)
    over, under = [p for p in pairs if pairs[p] >= base], [p for p in pairs if pairs[p] < base - 1]
    carry = latch(x.is_in(over, name="makes_carry"), when=x.is_in(over + under)).named("carry")
    total = (x.number(pairs, name="pair_sum") + carry.shift(1)).named("total")
    digit = total - base * (total >= base).named("carries")
    return readout_integer(digit.named("digit"), alphabet, digits), InputLanguage.everything(
        alphabet, None, list(pairs)
    )


def subtract(base: int) -> Made:
    """The first number less the second, the lowest digit first, borrowing; what is below 0 goes on as in base − 1, …"""
    digits, pairs = numerals(base - 1), {f"{i}-{j}": i - j for i in range(base) for j in range(base)}
    alphabet = Alphabet.of(*pairs, *digits)
    x = Tokens(alphabet)
    under, over = [p for p in pairs if pairs[p] < 0], [p for p in pairs if pairs[p] > 0]
    borrow = latch(x.is_in(under, name="borrows"), when=x.is_in(under + over)).named("borrow")
    left = (x.number(pairs, name="difference") - borrow.shift(1)).named("left")
    digit = left + base * (left < 0).named("below")
    return readout_integer(digit.named("digit"), alphabet, digits), InputLanguage.everything(
        alphabet, None, list(pairs)
    )


def increment(base: int) -> Made:
    """A number plus one, the lowest digit first."""
    given = {f"d{i}": i for i in range(base)}
    digits = numerals(base - 1)
    alphabet = Alphabet.of(*given, *digits)
    x = Tokens(alphabet)
    stops = x.is_in([d for d in given if given[d] < base - 1], name="stops")
    carry = (~present(stops).shift(1)).named("carry")
    digit = x.number(given, name="given") + carry
    result = digit - base * (digit >= base).named("carries")
    return readout_integer(result.named("digit"), alphabet, digits), InputLanguage.everything(
        alphabet, None, list(given)
    )


def double(base: int) -> Made:
    """Twice a number in an even base, the lowest digit first: half the base or more carries."""
    given = {f"d{i}": i for i in range(base)}
    digits = numerals(base - 1)
    alphabet = Alphabet.of(*given, *digits)
    x = Tokens(alphabet)
    carries = x.is_in([d for d in given if 2 * given[d] >= base], name="carries")
    last = x.number({d: 2 * i % base for d, i in given.items()}, name="last_digit_of_double")
    digit = (last + carries.shift(1)).named("digit")
    return readout_integer(digit, alphabet, digits), InputLanguage.everything(alphabet, None, list(given))


def compare(base: int, lowest_first: bool) -> Made:
    """Which of two numbers is larger so far: the first digits that differ decide, or the last ones."""
    pairs = {f"{i}:{j}": i - j for i in range(base) for j in range(base)}
    alphabet = Alphabet.of(*pairs, "<", "=", ">")
    x = Tokens(alphabet)
    larger, smaller = ([p for p in pairs if sign * pairs[p] > 0] for sign in (1, -1))
    decides = x.is_in(larger + smaller, name="decides")
    when = decides if lowest_first else decides & ~present(decides).shift(1)
    way = latch(x.number(dict.fromkeys(larger, 1) | dict.fromkeys(smaller, -1), name="way"), when=when.named("now"))
    scores = emit(alphabet, (way > 0, ">"), (way < 0, "<"), otherwise="=")
    return scores, InputLanguage.everything(alphabet, None, list(pairs))


def digit_sum(modulus: int, length: int) -> Made:
    digits = numerals(9)
    alphabet = Alphabet.of(*digits)
    total = Tokens(alphabet).number(digits, name="digit").cumsum().named("digit_sum")
    left = (total % modulus).named("remainder")
    return readout_integer(left, alphabet, {str(n): n for n in range(modulus)}), InputLanguage.everything(
        alphabet, length
    )


def alternating(length: int) -> Made:
    """A binary number modulo 3, the highest bit first: bits at even places count 1, at odd ones 2, from either end."""
    alphabet = Alphabet.of("0", "1", "2")
    x = Tokens(alphabet)
    even = (x.is_in("0", "1").cumsum() % 2 == 0).named("even_place")
    one = x.is_in("1")
    weighted = (one + (one & even)).cumsum().named("weighted")
    as_is, turned = (weighted % 3).named("remainder"), ((2 * weighted) % 3).named("twice")
    answer = turned * even + as_is * ~even
    return readout_integer(answer, alphabet, {str(n): n for n in range(3)}), InputLanguage.everything(
        alphabet, length, ("0", "1")
    )


def running_total(most: int) -> Made:
    """A sum that starts at 0 behind =."""
    sums = numerals(3 * most)
    alphabet = Alphabet.of("=", *sums)
    x = Tokens(alphabet)
    parts = [
        count(x.is_in(*(str(d) for d in range(n, 4))), reset=x.is_in("=")).named(f"at_least_{n}") for n in (1, 2, 3)
    ]
    total = (parts[0] + parts[1] + parts[2]).named("total")
    return readout_integer(total, alphabet, sums), InputLanguage.everything(alphabet, most, ("=", *"0123"))


def signed_total(most: int) -> Made:
    values = {str(n): n for n in range(-2 * most, 2 * most + 1)}
    alphabet = Alphabet.of(*values)
    total = Tokens(alphabet).number({str(n): n for n in range(-2, 3)}, name="number").cumsum().named("total")
    return readout_integer(total, alphabet, values), InputLanguage.everything(
        alphabet, most, [str(n) for n in range(-2, 3)]
    )


def product_with(factor: int, base: int) -> Made:
    """The last digit of a digit times a factor: a table of one token."""
    digits = numerals(base - 1)
    alphabet = Alphabet.of(*digits)
    digit = Tokens(alphabet).number(digits, name="digit")
    last = digit.lookup([factor * n % base for n in range(base)]).named("last_digit")
    return readout_integer(last, alphabet, digits), InputLanguage.everything(alphabet, None)


def even_or_odd() -> Made:
    """Whether a decimal number, the highest digit first, is even: its last digit says so."""
    alphabet = Alphabet.of(*(str(n) for n in range(10)), "even", "odd")
    odd = Tokens(alphabet).is_in(*"13579", name="odd_digit")
    return emit(alphabet, (odd, "odd"), otherwise="even"), InputLanguage.everything(
        alphabet, None, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
    )


def by_four() -> Made:
    """Whether 4 divides a decimal number, the highest digit first: its last two digits say so."""
    names = [str(n) for n in range(10)]
    alphabet = Alphabet.of(*names, "yes", "no")
    x = Tokens(alphabet)
    odd_tens = x.is_in(*"13579", name="odd_digit").shift(1)
    good = ((~odd_tens & x.is_in(*"048")) | (odd_tens & x.is_in(*"26"))).named("divides")
    return emit(alphabet, (good, "yes"), otherwise="no"), InputLanguage.everything(alphabet, None, names)


def record() -> Made:
    """The largest digit so far."""
    digits = numerals(9)
    alphabet = Alphabet.of(*digits)
    x = Tokens(alphabet)
    most = running_max(x.number(digits, name="digit"), when=x.is_in(*digits)).named("largest")
    return readout_integer(most, alphabet, digits), InputLanguage.everything(alphabet, None)


def smallest() -> Made:
    digits = numerals(9)
    alphabet = Alphabet.of(*digits)
    x = Tokens(alphabet)
    most = running_max(x.number({d: 9 - n for d, n in digits.items()}, name="9-digit"), when=x.is_in(*digits))
    return readout_integer((9 - most).named("smallest"), alphabet, digits), InputLanguage.everything(alphabet, None)


def spread_of() -> Made:
    digits = numerals(9)
    alphabet = Alphabet.of(*digits)
    x = Tokens(alphabet)
    up = running_max(x.number(digits, name="digit"), when=x.is_in(*digits)).named("largest")
    down = running_max(x.number({d: 9 - n for d, n in digits.items()}, name="9-digit"), when=x.is_in(*digits))
    return readout_integer((up + down - 9).named("spread"), alphabet, digits), InputLanguage.everything(alphabet, None)


def gray() -> Made:
    """The Gray code of a binary number, the highest bit first: each bit xor the one before."""
    given = ("b0", "b1")
    alphabet = Alphabet.of(*given, "0", "1")
    one = Tokens(alphabet).is_in("b1", name="bit")
    changed = (one ^ one.shift(1)).named("gray")
    return emit(alphabet, (changed, "1"), otherwise="0"), InputLanguage.everything(alphabet, None, given)


# What each must answer ------------------------------------------------------------------------------------------


def _carrying(base: int, start: int, value: Callable[[str], int]) -> Machine:
    """What is carried into the next digit, and the digit here."""

    def step(state: tuple[int, int], token: str) -> tuple[int, int]:
        return divmod(value(token) + state[0], base)

    return Machine((start, 0), step, lambda state: str(state[1]))


def _sum(base: int) -> Machine:
    return _carrying(base, 0, lambda token: sum(map(int, token.split("+"))))


def _difference(base: int) -> Machine:
    return _carrying(base, 0, lambda token: int(token[: token.index("-")]) - int(token[token.index("-") + 1 :]))


def _larger(lowest_first: bool) -> Machine:
    def step(state: str, token: str) -> str:
        first, second = map(int, token.split(":"))
        if first == second or (state != "=" and not lowest_first):
            return state
        return ">" if first > second else "<"

    return Machine("=", step, str)


def _extreme(answer: Callable[[int, int], int]) -> Machine:
    step = lambda s, t: (min(s[0], int(t)), max(s[1], int(t)))
    return Machine((9, 0), step, lambda s: str(answer(*s)))


FAMILY = Family(
    "arithmetic",
    "digits in several bases: added, compared, taken modulo a number",
    [
        *sizes(
            "add-base-{}", "the digit of the sum of two numbers in base {}, the lowest digit first", add, _sum, 2, 3, 10
        ),
        *sizes(
            "subtract-base-{}",
            "the digit of the difference of two numbers in base {}, the lowest digit first",
            subtract,
            _difference,
            *(2, 10),
        ),
        *sizes(
            "plus-one-base-{}",
            "the digit of a number plus one in base {}, the lowest digit first",
            increment,
            lambda base: _carrying(base, 1, lambda token: int(token[1:])),
            *(2, 10),
        ),
        *sizes(
            "double-base-{}",
            "the digit of twice a number in base {}, the lowest digit first",
            double,
            lambda base: _carrying(base, 0, lambda token: 2 * int(token[1:])),
            *(4, 10),
        ),
        Own(
            "larger-highest-first",
            "which of two numbers in base 3 is larger, the highest digit first",
            lambda: compare(3, False),
            _larger(False),
        ),
        Own(
            "larger-lowest-first",
            "which of two numbers in base 4 is larger, the lowest digit first",
            lambda: compare(4, True),
            _larger(True),
        ),
        *sizes(
            "digit-sum-modulo-{}",
            "the sum of all digits modulo {}, in texts of up to {}",
            digit_sum,
            lambda modulus, length: Machine(0, lambda s, t: (s + int(t)) % modulus, str),
            *((9, 12), (10, 12)),
        ),
        *sizes(
            "binary-modulo-3-{}",
            "a binary number modulo 3, the highest bit first, in up to {} bits",
            alternating,
            lambda length: Machine(0, lambda s, t: (2 * s + int(t)) % 3, str),
            16,
        ),
        *sizes(
            "total-since-equals-{}",
            "the sum of the digits since the last =, in texts of up to {}",
            running_total,
            lambda most: Machine(0, lambda s, t: 0 if t == "=" else s + int(t), str),
            8,
        ),
        *sizes(
            "signed-total-{}",
            "the sum of numbers from -2 to 2, in texts of up to {}",
            signed_total,
            lambda most: Machine(0, lambda s, t: s + int(t), str),
            10,
        ),
        *sizes(
            "times-{}-base-{}",
            "the last digit of {} times the present digit, in base {}",
            product_with,
            lambda factor, base: Machine(0, lambda s, t: factor * int(t) % base, str),
            *((3, 10), (5, 8)),
        ),
        Own(
            "even-or-odd",
            "whether a decimal number is even, the highest digit first",
            even_or_odd,
            Machine(0, lambda s, t: int(t) % 2, lambda s: "odd" if s else "even"),
        ),
        Own(
            "divided-by-4",
            "whether 4 divides a decimal number, the highest digit first",
            by_four,
            Machine(0, lambda s, t: (10 * s + int(t)) % 100, lambda s: "no" if s % 4 else "yes"),
        ),
        Own("largest-digit", "the largest digit so far", record, _extreme(lambda low, high: high)),
        Own("smallest-digit", "the smallest digit so far", smallest, _extreme(lambda low, high: low)),
        Own("spread", "the largest digit so far less the smallest", spread_of, _extreme(lambda low, high: high - low)),
        Own(
            "gray-code",
            "the bit of the Gray code of a binary number, the highest bit first",
            gray,
            Machine(("0", "0"), lambda s, t: (t[1], s[0]), lambda s: str(int(s[0] != s[1]))),
        ),
    ],
)
