"""Circuits of functions of one position."""

from __future__ import annotations

from compiler.language.circuit import Circuit
from compiler.language.stream import constant
from compiler.language.words import (
    concatenate,
    maximum,
    minimum,
    select,
)
from tests.circuits.case import ALL, back, case, each, is_a, is_b, over_abc, token


def _counts(word: list[str], t: int) -> tuple[int, int]:
    return word[: t + 1].count("a"), word[: t + 1].count("b")


counters = is_a.cumsum(), is_b.cumsum()


@case(
    each(
        lambda w, t: (lambda a, b: tuple(map(int, (a > b, a >= b, a < b, a <= b, a == b, a != b, a > 2))))(
            *_counts(w, t)
        )
    ),
    ALL,
)
def comparisons_of_counters() -> Circuit:
    a, b = counters
    return over_abc("comparisons", concatenate(a > b, a >= b, a < b, a <= b, a == b, a != b, a.heaviside(2)))


@case(each(lambda w, t: (lambda a, b: tuple(map(int, (a > 1 and b > 1, a > 1 or b > 1, a <= 1))))(*_counts(w, t))), ALL)
def logic_on_counters() -> Circuit:
    a, b = (counter > 1 for counter in counters)
    return over_abc("logic", concatenate(a & b, a | b, ~a))


@case(each(lambda w, t: (lambda a, b: (min(a, b), max(a, b), max(min(a - b, 2), -1), a * b))(*_counts(w, t))), ALL)
def arithmetic_on_counters() -> Circuit:
    a, b = counters
    return over_abc("arithmetic", concatenate(minimum(a, b), maximum(a, b), (a - b).clip(-1, 2), a * b))


@case(each(lambda w, t: (lambda a, b: a - b if a > b else 3)(*_counts(w, t))), ALL)
def selection_on_counters() -> Circuit:
    a, b = counters
    return over_abc("selection", select(a > b, a - b, 3))


@case(each(lambda w, t: (lambda a, b: (a - b) * (a - b) * (b - 1))(*_counts(w, t))), ALL)
def signed_products() -> Circuit:
    a, b = counters
    return over_abc("signed_products", (a - b) ** 2 * (b - 1))


@case(each(lambda w, t: {0: 5, 1: -2, 2: 7, 3: 4}.get(w[: t + 1].count("a"), 0)), ALL)
def table_of_a_counter() -> Circuit:
    """0 beside the table."""
    return over_abc("table", counters[0].lookup([5, -2, 7, 4]))


@case(each(lambda w, t: (lambda a, b: ((a - b) // 3, (a - b) % 3, b // 2, a % 4))(*_counts(w, t))), ALL)
def division_of_counters() -> Circuit:
    """Rounded down, of negative integers too."""
    a, b = counters
    return over_abc("division", concatenate((a - b) // 3, (a - b) % 3, b // 2, a % 4))


@case(each(lambda w, t: tuple(int(w[: t + 1].count("a") == n) for n in range(4))), ALL)
def one_hot_of_a_counter() -> Circuit:
    return over_abc("one_hot", counters[0].one_hot(4))


@case(each(lambda w, t: {"a": 4, "b": -1, "c": 0}[back(w, t, 1)] if t else 0), ALL)
def table_of_a_symbol() -> Circuit:
    return over_abc("table_of_a_symbol", token.shift(1).lookup({0: 4, 1: -1, 2: 0}))


@case(each(lambda w, t: max(max(max(_counts(w, t)[0] - 1, 0) - (back(w, t, 1) == "b"), 0) - 1, 0)), ALL)
def nested_rectifiers() -> Circuit:
    return over_abc("nested", (((counters[0] - 1).relu() - is_b.shift(1)).relu() - 1).relu())


@case(each(lambda w, t: 7), ALL)
def a_constant() -> Circuit:
    return over_abc("a_constant", constant(7))
