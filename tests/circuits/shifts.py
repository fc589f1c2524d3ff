"""Circuits of delays and filters."""

from __future__ import annotations

from fractions import Fraction

from compiler.language import output
from compiler.language.circuit import Circuit
from compiler.language.stream import constant
from compiler.language.words import (
    concatenate,
    lti,
)
from tests.circuits.case import ABC, ALL, abc, back, case, each, is_a, is_b, one_hot_of, over_abc, token


@case(each(lambda w, t: back(w, t, 1) if t else None), ALL)
def previous_token() -> Circuit:
    return over_abc("previous_token", output.readout_one_hot(token.shift(1), ABC))


@case(each(lambda w, t: tuple(v for k in range(1, 8) for v in one_hot_of(back(w, t, k))[:2])), ALL)
def shifts_of_one_to_seven() -> Circuit:
    return over_abc("shifts", concatenate(*(token[:2].shift(k) for k in range(1, 8))))


@case(each(lambda w, t: int(t >= 2 and w[t - 2] != "a")), ALL)
def shift_of_a_not() -> Circuit:
    return over_abc("shift_of_a_not", (~is_a).shift(2))


@case(each(lambda w, t: int(t >= 1 and "a" not in w[max(t - 2, 0) : t])), ALL)
def shift_of_a_late_not() -> Circuit:
    return over_abc("shift_of_a_late_not", (~(is_a | is_a.shift(1))).shift(1))


@case(each(lambda w, t: w[: max(t - 1, 0)].count("a")), ALL)
def shift_of_a_state() -> Circuit:
    return over_abc("shift_of_a_state", is_a.cumsum().shift(2))


@case(each(lambda w, t: int(t >= 20)), ALL)
def a_far_shift() -> Circuit:
    return over_abc("a_far_shift", constant(1).shift(20))


@case(
    each(lambda w, t: (*one_hot_of(back(w, t, 17)), w[: max(t - 16, 0)].count("a") - w[: max(t - 16, 0)].count("b"))),
    ALL,
)
def delay_of_seventeen() -> Circuit:
    """A token and a signed number, by rings where the target has them."""
    return over_abc("delay", concatenate(token.shift(17), abc.number({"a": 1, "b": -1}).cumsum().shift(17)), 60)


@case(each(lambda w, t: int(t >= 3 and w[t - 3] == w[t])), ALL)
def same_as_three_back() -> Circuit:
    return over_abc("same_as_three_back", token == token.shift(3))


@case(each(lambda w, t: 4 * (w[t] == "a") + 2 * (back(w, t, 1) == "a") - 3 * (back(w, t, 3) == "a")), ALL)
def one_token_at_several_lags() -> Circuit:
    return over_abc("several_lags", 4 * is_a + 2 * is_a.shift(1) - 3 * is_a.shift(3))


@case(each(lambda w, t: sum(k * (back(w, t, i) == "b") for i, k in enumerate((1, 0, -2, 0, Fraction(1, 2))))), ALL)
def fixed_filter() -> Circuit:
    return over_abc("fixed_filter", lti(is_b, [1, 0, -2, 0, Fraction(1, 2)]))
