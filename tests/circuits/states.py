"""Circuits that count, add up and latch."""

from __future__ import annotations

from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.stream import constant
from compiler.language.words import (
    concatenate,
    count,
    latch,
    latch_bank,
    present,
    running_max,
    sum_where,
)
from tests.circuits.case import ABC, ALL, abc, case, each, is_a, is_b, is_c, over_abc, token
from tests.circuits.pointwise import counters


def _since_b(word: list[str], t: int) -> int:
    last = max((i for i in range(t + 1) if word[i] == "b"), default=-1)
    return word[last + 1 : t + 1].count("a")


@case(each(_since_b), exhaustive=5)
def count_since() -> Circuit:
    """How many a's since the last b."""
    return over_abc("count_since", count(is_a, reset=is_b))


@case(each(lambda w, t: sum({"a": 2, "b": -3, "c": 0}[x] for x in w[: t + 1])), ALL)
def signed_sum() -> Circuit:
    return over_abc("signed_sum", abc.number({"a": 2, "b": -3}).cumsum())


@case(each(lambda w, t: (int("b" in w[: t + 1]), int("ab" in "".join(w[: t + 1])))), ALL)
def presence() -> Circuit:
    return over_abc("presence", concatenate(present(is_b), present(is_a.shift(1) & is_b)))


@case(each(lambda w, t: tuple(v for x in "ab" for v in _sums_at(w[: t + 1], x))), ALL)
def sums_at_each_letter() -> Circuit:
    """The sum of the places of a letter, and of the signed numbers before it: two flags, two lanes."""
    before = abc.number({"a": 2, "b": -1, "c": 5}).shift(1)
    return over_abc("sums", sum_where(concatenate(constant(1).cumsum(), before), concatenate(is_a, is_b)))


def _sums_at(word: list[str], letter: str) -> tuple[int, int]:
    places = [i for i, x in enumerate(word) if x == letter]
    return sum(i + 1 for i in places), sum({"a": 2, "b": -1, "c": 5}[word[i - 1]] for i in places if i)


@case(each(lambda w, t: w.index("c") + 1 if "c" in w[: t + 1] else 0), ALL, exhaustive=5)
def place_of_the_only_c() -> Circuit:
    """A latch that has nothing to forget: its flag holds once in every sequence of the language."""
    edges = [("open", "open", ("a", "b")), ("open", "shut", ("c",)), ("shut", "shut", ("a", "b"))]
    language = InputLanguage.of(ABC, "open", edges, 12, "at most one c")
    return Circuit("only_c", latch(constant(1).cumsum(), is_c), language)


def _stored(word: list[str], t: int, first: bool) -> int:
    values = {"a": 2, "b": -1, "c": 5}
    written = [values[word[i - 1]] for i in range(1, t + 1) if word[i] == "c"]
    return written[0 if first else -1] if written else 0


@case(each(lambda w, t: (_stored(w, t, first=True), _stored(w, t, first=False))))
def first_and_last_latch() -> Circuit:
    """What stood before the first and before the last c."""
    value = abc.number({"a": 2, "b": -1, "c": 5}).shift(1)
    when = is_c & constant(1).shift(1)
    return over_abc("latches", concatenate(latch(value, when, first=True), latch(value, when)))


@case(each(lambda w, t: tuple(max((i + 1 for i in range(t + 1) if w[i] == x), default=0) for x in "abc")))
def last_place_of_each_token() -> Circuit:
    return over_abc("bank", latch_bank(constant(1).cumsum(), token))


def _largest_lead(word: list[str], t: int) -> int:
    leads = [word[: i + 1].count("a") - word[: i + 1].count("b") for i in range(t + 1) if word[i] == "c"]
    return min(max(leads, default=0), 3) if max(leads, default=0) > 0 else 0


@case(each(_largest_lead), ALL)
def largest_lead() -> Circuit:
    """The largest lead (to 3) of a's over b's seen at a c."""
    a, b = counters
    return over_abc("largest_lead", running_max((a - b).clip(0, 3), is_c))


_DEBTS = {"a": -3, "b": 2, "c": -1}


def _least_debt(word: list[str], t: int) -> tuple[int, int]:
    seen = [_DEBTS[letter] for letter in word[: t + 1]]
    return max((v for v in seen if v < 0), default=0), max(2 * v for v in seen)


@case(each(_least_debt), ALL)
def least_debt() -> Circuit:
    """The largest of negative numbers, 0 before there is one, beside that of their doubles: two lanes, two flags."""
    debt = abc.number(_DEBTS)
    lanes, flags = concatenate(debt, 2 * debt), concatenate(~is_b, constant(1))
    return over_abc("least_debt", running_max(lanes, flags))
