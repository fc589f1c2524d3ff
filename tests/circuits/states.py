"""Circuits that count, add up and latch."""

from __future__ import annotations

from compiler.language.circuit import Circuit
from compiler.language.stream import constant
from compiler.language.words import (
    concatenate,
    count,
    latch,
    latch_bank,
    present,
    running_max,
)
from tests.circuits.case import ALL, NO_BANK, SELECTIVE, abc, case, each, is_a, is_b, is_c, over_abc, token
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


@case(each(lambda w, t: (int("b" in w[: t + 1]), int("ab" in "".join(w[: t + 1])))))
def presence() -> Circuit:
    return over_abc("presence", concatenate(present(is_b), present(is_a.shift(1) & is_b)))


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


@case(
    each(lambda w, t: tuple(max((i + 1 for i in range(t + 1) if w[i] == x), default=0) for x in "abc")),
    SELECTIVE[:2],
    NO_BANK,
)
def last_place_of_each_token() -> Circuit:
    return over_abc("bank", latch_bank(constant(1).cumsum(), token))


def _largest_lead(word: list[str], t: int) -> int:
    leads = [word[: i + 1].count("a") - word[: i + 1].count("b") for i in range(t + 1) if word[i] == "c"]
    return min(max(leads, default=0), 3) if max(leads, default=0) > 0 else 0


@case(each(_largest_lead), SELECTIVE[:2], NO_BANK)
def largest_lead() -> Circuit:
    """The largest lead (to 3) of a's over b's seen at a c."""
    a, b = counters
    return over_abc("largest_lead", running_max((a - b).clip(0, 3), is_c))


_DEBTS = {"a": -3, "b": 2, "c": -1}


def _least_debt(word: list[str], t: int) -> tuple[int, int]:
    seen = [_DEBTS[letter] for letter in word[: t + 1]]
    return max((v for v in seen if v < 0), default=0), max(2 * v for v in seen)


@case(each(_least_debt), SELECTIVE[:2], NO_BANK)
def least_debt() -> Circuit:
    """The largest of negative numbers, 0 before there is one, beside that of their doubles: two lanes, two flags."""
    debt = abc.number(_DEBTS)
    lanes, flags = concatenate(debt, 2 * debt), concatenate(~is_b, constant(1))
    return over_abc("least_debt", running_max(lanes, flags))
