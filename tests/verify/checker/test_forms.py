"""A sum that holds what a form is, beside a function of the form, is a function of the form."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.running import running_sum
from verify.checker.formats import EXACT
from verify.checker.values.bent import relu, single
from verify.checker.values.bounds import _folded, bounds, rewritten
from verify.checker.values.language import Edge, Language
from verify.checker.values.values import Value, World, combine, later, of_letters

LETTERS, LENGTH = 3, 12
ONE = Fraction(1)


def _world() -> World:
    return World(Language(LETTERS, "q", (Edge("q", "q", np.ones(LETTERS, dtype=bool), False, True),), LENGTH), EXACT)


def _sum(world: World, rng: random.Random) -> Value:
    """Two counts and two letters, one of them a position back, with weights of either sign."""
    letters = [of_letters(np.array(rng.sample([0.0, 1.0, 2.0, 3.0], LETTERS))) for _ in "12"]
    counts = [running_sum(world, of_letters(np.eye(LETTERS)[i]), "a count") for i in (0, 1)]
    parts = [*counts, letters[0], later(world, letters[1], 1)]
    return combine([(Fraction(rng.choice((-3, -1, 2, 4))), v) for v in parts], Fraction(rng.randint(-5, 5)))


def _same(world: World, values: list[Value], rng: random.Random) -> bool:
    words = [[rng.randrange(LETTERS) for _ in range(LENGTH)] for _ in range(4)]
    on = [Sequence(world, word) for word in words]
    return all(len({s.value(v, t) for v in values}) == 1 for s in on for t in range(1, LENGTH + 1))


@pytest.mark.parametrize("seed", range(20))
def test_rewritten_sums_are_the_same_function(seed):
    world, rng = _world(), random.Random(seed)
    x = _sum(world, rng)
    bent = relu(world, combine([(ONE, x)], -Fraction(sum(bounds(world, x)) // 2)))
    third = running_sum(world, of_letters(np.eye(LETTERS)[2]), "a count")
    weight = Fraction(rng.choice((-2, -1, 1, 3)), 4)
    value = combine([(weight, x), (Fraction(rng.choice((-1, 1))), bent), (ONE, third)], ONE)
    found = rewritten(world, value)
    assert min(len(v.terms) for v in found) == 2 and _same(world, [value, *found], rng)


def test_the_larger_of_two_less_one_of_them_is_a_function_of_their_difference():
    """max(x, y) − x is relu(y − x): a form of its own would have x beside it, and wider bounds."""
    world = _world()
    x, y = (running_sum(world, of_letters(np.eye(LETTERS)[i]), "a count") for i in (0, 1))
    over = relu(world, combine([(ONE, y), (-ONE, x)]))
    behind = combine([(-ONE, y), (ONE, x), (ONE, over)])
    assert bounds(world, behind) == (0, LENGTH)
    (key, _), roots = single(world, behind), len(world.roots)
    assert list(over.terms) == [key] and len(world.roots) == roots
    assert _same(world, [behind, relu(world, combine([(ONE, x), (-ONE, y)]))], random.Random(0))


@pytest.mark.parametrize("part", range(4))
def test_what_is_no_multiple_of_the_form_stays_as_it_is(part):
    """One of the numbers that are added up is another, so the form is no part of the sum."""
    world, rng = _world(), random.Random(part)
    x = _sum(world, rng)
    bent = relu(world, x)
    place = list(x.terms)[part]
    other = combine([(ONE, x), (ONE, Value(Fraction(0), {place: x.terms[place]}))])
    assert list(_folded(world, combine([(ONE, other), (ONE, bent)]))) == []


@pytest.mark.parametrize("seed", range(20))
def test_running_sums_of_which_one_takes_what_another_adds(seed):
    """Brackets: neither the openings nor the closings are bounded by the depth, and their difference is."""
    rng, edges, depth = random.Random(seed), [], 3
    for d in range(depth):
        edges += [Edge(str(d), str(d + 1), np.eye(LETTERS)[0] > 0, False, True)]
        edges += [Edge(str(d + 1), str(d), np.eye(LETTERS)[1] > 0, False, True)]
    world = World(Language(LETTERS, "0", tuple(edges), LENGTH), EXACT)
    opened, closed = (running_sum(world, of_letters(np.eye(LETTERS)[i]), "a count") for i in (0, 1))
    weight, shift = Fraction(rng.choice((-4, -1, 1, 2)), rng.choice((1, 2))), Fraction(rng.randint(-3, 3))
    value = combine([(weight, opened), (-weight, closed)], shift)
    assert bounds(world, value) == (min(0, depth * weight) + shift, max(0, depth * weight) + shift)
    (key, ramp) = single(world, value)
    assert world.roots[key[0]].kind == "sum"
    words = [[0, 1] * 6, [0, 0, 0, 1, 1, 1] * 2, [0, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1]]
    for on in (Sequence(world, word) for word in words):
        assert all(on.value(value, t) == on.value(Value(Fraction(0), {key: ramp}), t) for t in range(1, LENGTH + 1))
