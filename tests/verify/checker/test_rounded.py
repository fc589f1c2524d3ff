"""Numbers that float64 rounds: refused where they must be exact, and rounded outwards where they are bounds.

What circuit.json says is written out beside each in Fractions, or in words.
"""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress
from fractions import Fraction
from itertools import product as words

import numpy as np
import pytest

from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.memories import read_bound
from verify.checker.arithmetic.totals import majorants, over_edges, over_time
from verify.checker.formats import EXACT, Rejected
from verify.checker.meaning.conditions import Conditions, Lanes, Unproved
from verify.checker.meaning.entries import read_matrix
from verify.checker.meaning.rules import RULES
from verify.checker.tasks.hulls import Hulls, Seen, Windows
from verify.checker.tasks.readout import NOBODY, Heard, least
from verify.checker.values.bent import product, relu
from verify.checker.values.bounds import along, bounds, corners
from verify.checker.values.exact import (
    above,
    below,
    held,
    in_units,
    number,
    plus,
    product_sides,
    quotient,
    sum_sides,
    times,
)
from verify.checker.values.exact import product as array_product
from verify.checker.values.language import Edge, Language
from verify.checker.values.tables import Table
from verify.checker.values.values import TOKEN, Value, World, combine, constant, later, of_letters
from verify.checker.values.windows import TooLarge, exact_product

ONE, TINY = Fraction(1), Fraction(1, 2**600)
BITS = "53 bits"


def world_of(letters: int, length: int = 8) -> World:
    edge = Edge("any", "any", np.ones(letters, dtype=bool), False, True)
    return World(Language(letters, "any", (edge,), length), EXACT)


def of(*numbers: Fraction | int) -> np.ndarray:
    return np.array([number(x) for x in numbers])


def decoded(world: World, word: list[int], lanes: Lanes) -> Lanes:
    rows = [[[i, x] for i, x in enumerate(word) if x]]
    stream = {"operation": "Decode", "attributes": {"words": {"shape": [1, len(word)], "rows": rows}}}
    return RULES["Decode"](Conditions(world), stream, lanes)


def test_a_word_of_zeros_is_not_decoded():
    """One position back there is no code before the start: every lane is 0 there, and so the word is present."""
    world = world_of(2)
    with pytest.raises(Unproved, match="a decoded word of zeros"):
        decoded(world, [0], [later(world, of_letters(np.array([0.0, 1.0])), 1)])


def test_a_code_near_a_word_is_another_code():
    """(1 + 2^-30)² + (1 − 2^-30)² = 2 + 2^-59, in float64 |(1, 1)|² = 2; the product with the word is 2."""
    near, world = Fraction(1, 2**30), world_of(2)
    (flag,) = decoded(world, [1, 1], [of_letters(of(1, ONE + near)), of_letters(of(1, ONE - near))])
    assert [Sequence(world, [letter]).value(flag, 1) for letter in (0, 1)] == [1, 0]
    (signed,) = decoded(world, [1, -1], [of_letters(np.array([1.0, -1.0])), of_letters(np.array([-1.0, 1.0]))])
    assert [Sequence(world, [letter]).value(signed, 1) for letter in (0, 1)] == [1, 0]
    with pytest.raises(Unproved, match="other numbers"):
        decoded(world, [2, 1], [of_letters(np.array([1.0, 2.0]))] * 2)


def test_a_weight_does_not_underflow():
    """2^600 · 2^600 · (2^-600 · 2^-600) is 1, and 0 where the product in brackets underflows."""
    with pytest.raises(Rejected, match=BITS):
        combine([(TINY, of_letters(of(TINY, 0)))])
    with pytest.raises(Rejected, match=BITS):
        combine([(1 / TINY, of_letters(of(1 / TINY, 0)))])


def test_a_product_does_not_underflow():
    """Where all products do, nothing is left that shows how large they were to be."""
    world, tiny = world_of(2), of_letters(of(TINY, 0))
    with pytest.raises(Rejected, match=BITS):
        product(world, tiny, tiny)


def test_the_total_of_what_a_bent_sum_adds_is_rounded_up():
    """After a b, an a adds 2^60 + (2^52 + 1) − 2^53, which is odd and has 60 bits; nothing else adds anything."""
    world = world_of(2, 2)
    parts = [(ONE, of_letters(of(2**60, 0))), (ONE, later(world, of_letters(of(0, 2**52 + 1)), 1))]
    value = relu(world, combine(parts, Fraction(-(2**53))))
    assert_totals(world, value, 2)
    beside = relu(world, combine([(ONE, of_letters(of(0, 1))), (-ONE, later(world, of_letters(of(0, 1)), 1))]))
    assert_totals(world, combine([(ONE, beside), (ONE, of_letters(of(0, 2**60)))]), 2)


@pytest.mark.parametrize("seed", range(20))
def test_totals_of_large_numbers(seed):
    rng, world = np.random.default_rng(seed), world_of(2, 3)
    drawn = lambda: int(rng.integers(2**29, 2**30)) * 2 ** int(rng.integers(0, 31)) + int(rng.integers(0, 2))
    parts = [(ONE, of_letters(of(below(drawn()), 0))), (ONE, later(world, of_letters(of(0, below(drawn()))), 1))]
    assert_totals(world, relu(world, combine(parts, Fraction(-drawn()))), 3)


def assert_totals(world: World, value, length: int) -> None:
    bound, gated, (low, high) = over_time(world, value), read_bound(world, [value], [Fraction(3)]), bounds(world, value)
    here = along(world, value)
    for word in words(range(world.language.tokens), repeat=length):
        sequence = Sequence(world, list(word))
        found = [sequence.value(value, t) for t in range(1, length + 1)]
        assert sum(map(abs, found)) <= bound
        assert 3 * max(map(abs, found)) <= gated
        for m in majorants(world, value):
            parts = [Value(m.const, {}), *(Value(Fraction(0), {(TOKEN, lag): f}) for lag, f in m.letters.items())]
            assert all(abs(x) <= sum(sequence.value(part, t) for part in parts) for t, x in enumerate(found, 1))
        assert all(low <= x <= high and Fraction(here[0][0]) <= x <= Fraction(here[1][0]) for x in found)


def test_a_bound_of_a_product_in_fractions_is_not_cut_off():
    """(2^30 + 1)² / 2^30 is 2^30 + 2 + 2^-30; divided by its unit of 2^-30, the last bit is the 61st."""
    k, unit, world = 2**30 + 1, Fraction(1, 2**30), world_of(3)
    a, b = of_letters(of(k, 0, 1)), later(world, of_letters(of(k * unit, 0, unit)), 1)
    found = product(world, a, b)
    top = Sequence(world, [0, 0]).value(found, 2)
    assert top == k * k * unit > 2**30 + 2
    assert bounds(world, found)[1] >= top and Fraction(along(world, found)[1].max()) >= top


def test_what_queries_read_does_not_underflow():
    with pytest.raises(Rejected, match="smaller than what float64 holds"):
        read_bound(world_of(2), [of_letters(of(TINY, 0))], [TINY])


def test_corners_are_rounded_outwards():
    third = 1.0 / 3
    for a, b in ((third, third), (2.0**-600, 2.0**-600), (2.0**600, 2.0**600), (3.0, 5.0), (0.0, third)):
        low, high = corners(np.array([[a], [a]]), np.array([[b], [b]]))[:, 0].tolist()
        exact = Fraction(a) * Fraction(b)
        assert Fraction(low) <= exact and (high == np.inf or exact <= Fraction(high))
    assert corners(np.array([[3.0], [3.0]]), np.array([[5.0], [5.0]])).tolist() == [[15.0], [15.0]]


def test_many_small_numbers_beside_a_large_one_are_not_lost():
    """Many times a little less than half a unit in the last place of 1: each alone is rounded off."""
    world, small = world_of(2, 1 << 16), Fraction(2**20 - 1, 2**73)
    lags = range(1, 1 << 5)
    value = combine([(ONE, later(world, of_letters(of(0, small)), k)) for k in lags], ONE)
    apart = np.array([1.0]), np.array([0.0])
    for _ in range(1 << 10):
        apart = sum_sides(apart[0], of(small))[1], apart[1]
    assert Fraction(apart[0][0]) >= 1 + small * 2**10
    assert Fraction(along(world, value)[1].max()) >= 1 + small * len(lags)


def test_totals_over_edges_are_exact():
    """(1 + 2^-52) · (2^52 + 1) is 2^52 + 2 + 2^-52; rounded, it looks whole."""
    world = world_of(1, 2**52 + 1)
    assert over_edges(world, of(ONE + Fraction(1, 2**52))[None]) == 2**52 + 2 + Fraction(1, 2**52)


def test_how_often_a_letter_stands_is_rounded_up():
    assert Fraction(world_of(1, 2**60 - 1).language.counts[0]) >= 2**60 - 1
    assert Fraction(world_of(1, 2**59 + 1).language.counts[0]) >= 2**59 + 1


def test_what_a_memory_reads_is_not_cut_off_on_the_way():
    """3 · (2^52 − 1) + 2 · (1 − 2^52) is 2^52 − 1, but its largest partial sum is odd and has 54 bits."""
    most = 2**52 - 1
    queries = [1, 1, 1, -1, -1]
    streams = [
        stream("Constant", values=[most]),
        stream("Constant", values=[1] * 5),
        stream("Constant", values=queries),
    ]
    streams.append(stream("MemoryRead", 0, 1, 2, policy="sum"))
    windows = Windows(np.ones((1, 2), dtype=bool), np.zeros((1, 1), dtype=np.int64))
    once = lambda classes, cases: (np.ones((len(classes), len(cases))),) * 2
    seen = Seen(Hulls({"streams": streams}, windows), once)
    with pytest.raises(Rejected, match="52 bits"):
        Hulls({"streams": streams}, windows, seen).value(3)


def test_a_whole_number_of_a_matrix_is_not_rounded():
    """2^53 + 1, which is 2^53 as a float64, as the limit of these numbers is."""
    packed = lambda x: {name: {"bytes": 8, "base64": b64encode(n.to_bytes(8, "little")).decode()} for name, n in x}
    of_one = lambda n: {"shape": [1, 1], "exponent": 0, **packed((("counts", 1), ("columns", 0), ("values", n)))}
    assert read_matrix(of_one(2**53 - 1)).data.tolist() == [2.0**53 - 1]
    with pytest.raises(Rejected, match=BITS):
        read_matrix(of_one(2**53 + 1))


def stream(operation: str, *inputs: int, **attributes: object) -> dict:
    return {"operation": operation, "attributes": attributes, "inputs": list(inputs)}


def test_what_is_heard_of_others_is_rounded_outwards():
    heard = Heard(1.0, 1.0, 2.0**-60)
    sums = [Fraction(g) for _, g in heard.corners]
    assert min(sums) <= 1 - Fraction(1, 2**60) and max(sums) >= 1 + Fraction(1, 2**60)


def test_operations_on_arrays_refuse_what_rounds():
    near, tiny = of(ONE + Fraction(1, 2**30)), of(Fraction(1, 2**560))
    for made in (array_product, times):
        assert made(of(3)[None], of(5)[:, None]).item() == 15
        for a, b in ((near, near), (tiny, tiny), (1 / tiny, 1 / tiny)):
            with pytest.raises(Rejected, match=BITS):
                made(a[None], b[:, None])
    with pytest.raises(Rejected, match=BITS):
        plus(of(2**60), of(1))
    with pytest.raises(TooLarge):
        exact_product(tiny, tiny)
    with pytest.raises(Rejected, match=BITS):
        held(np.zeros(1), np.zeros(1), -1100)
    with pytest.raises(Rejected, match="no divisor"):
        quotient(of(6, 4), Fraction(3))
    assert quotient(of(6, -9, 0), Fraction(3)).tolist() == [2, -3, 0]
    for x in (2**60 + 1, Fraction(1, 3), TINY * TINY, 2**1100):
        with pytest.raises(Rejected, match=BITS):
            number(x)
    with pytest.raises(Rejected, match=BITS):
        product(world_of(2), constant(Fraction(1, 2**1100)), of_letters(of(1, 0)))


@pytest.mark.parametrize("seed", range(50))
def test_either_side_of_sums_and_products(seed):
    rng = np.random.default_rng(seed)
    drawn = lambda: np.ldexp(rng.integers(-(2**53), 2**53, 40).astype(float), rng.integers(-400, 400, 40))
    few = lambda: np.ldexp(rng.integers(-(2**20), 2**20, 40).astype(float), rng.integers(-3, 3, 40))
    for a, b in ((drawn(), drawn()), (few(), few()), (drawn(), few()), (2.0**-600 * few(), 2.0**-500 * few())):
        for sides, exact in ((sum_sides(a, b), Fraction.__add__), (product_sides(a, b), Fraction.__mul__)):
            for x, y, low, high in zip(*(part.tolist() for part in (a, b, *sides)), strict=True):
                found = exact(Fraction(x), Fraction(y))
                assert Fraction(low) <= found <= Fraction(high)
                assert low == high or not held_by_float(found)
                assert high <= np.nextafter(np.nextafter(low, np.inf), np.inf)


def held_by_float(x: Fraction) -> bool:
    return Fraction(float(x)) == x and abs(x) >= Fraction(2) ** -1000


def test_bounds_in_units():
    """Whole numbers of units: what is no multiple of one is drawn in, and a bound that float64 cannot divide, out."""
    assert in_units(np.array([[0.25, -0.5], [0.75, 0.5]]), -1).tolist() == [[1, -1], [1, 1]]
    assert in_units(np.array([[2.0**-1070], [2.0**-1070]]), -1074).tolist() == [[16], [16]]
    low, high = in_units(np.array([[-(2.0**-1000)], [2.0**1000]]), 500)[:, 0].tolist()
    assert low == 0 and high == 2.0**500
    assert below(Fraction(1, 3)) < Fraction(1, 3) < above(Fraction(1, 3)) and above(-(2**1100)) < 0 < above(2**1100)
    assert Table(of(1, 0)).over(Fraction(1, 2)).dense().tolist() == [2, 0]


@pytest.mark.parametrize("length", [2, 3, 40, 4096])
def test_what_has_no_bound_does_not_become_0_where_no_path_begins(length):
    """2^1030 · S1 + S2, of running sums that add 1 at the letter b, which follows an a: the state in front of it is
    reached by no path at first, and has no number there.
    """
    letters = np.array([[True, False], [False, True]])
    edges = tuple(Edge(*ends, letters[a], False, ends == ("t", "t")) for *ends, a in [("s", "t", 0), ("t", "t", 1)])
    world = World(Language(2, "s", edges, length), EXACT)
    at_b = of_letters(np.array([0.0, 1.0]))
    one, other = (RULES["Cumsum"](Conditions(world), {}, [x])[0] for x in (at_b, later(world, at_b, 1)))
    total = combine([(Fraction(2**1030), one), (ONE, other)])
    with suppress(OverflowError, FloatingPointError, Rejected):
        assert bounds(world, total)[1] >= 2**1030
    steps = np.array([[0.0, 0.0], [0.0, np.inf]])
    assert world.language.graph.added(steps) is None


def test_0_times_what_has_no_bound_is_0():
    """A bound that is infinite is none; the numbers are finite."""
    a, b = np.array([0.0, -np.inf, 2.0, 0.0]), np.array([np.inf, 0.0, np.inf, 0.0])
    low, high = product_sides(a, b)
    assert high.tolist() == [0, 0, np.inf, 0] and low.tolist() == [0, 0, np.finfo(np.float64).max, 0]


def test_only_a_lead_over_nobody_is_none():
    """What is no number, or infinitely low, is no lead."""
    assert least(np.array([3.0, np.inf])) == 3 and least(np.zeros(0)) == least(np.array([np.inf])) == NOBODY
    for wrong in (-np.inf, np.nan):
        with pytest.raises((OverflowError, ValueError)):
            least(np.array([3.0, wrong]))
