"""What stood some positions back: level, bends and what it is before the start are told apart and put together."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from tests.verify.checker.values import Sequence
from verify.checker.bent import product, relu
from verify.checker.formats import EXACT
from verify.checker.language import Edge, Language
from verify.checker.meaning import Meaning
from verify.checker.running import latch, running_sum
from verify.checker.values import Value, World, combine, constant, later, of_letters

LETTERS = 3
ONE = Fraction(1)


def _world() -> World:
    return World(Language(LETTERS, "q", (Edge("q", "q", np.ones(LETTERS, dtype=bool), False, True),), 12), EXACT)


def _count(world: World) -> Value:
    return running_sum(world, of_letters(np.array([0.0, 1.0, 0.0])), "a count")


def back(value: Value, k: int) -> Value:
    return later(value, k, LETTERS)


def _ramp(world: World, x: Value, slope: int, shift: int) -> Value:
    return relu(world, combine([(Fraction(slope), x)], Fraction(shift)))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("level", [-2, 1, 3])
def test_a_level_that_is_seen_as_far_back_makes_no_new_root(k, level):
    world = _world()
    count = _count(world)
    bent = _ramp(world, count, 1, -1)
    value = combine([(ONE, back(bent, k)), (ONE, back(constant(level), k))], Fraction(1, 2))
    roots = len(world.roots)
    clipped = relu(world, value)
    assert len(world.roots) == roots and [lag for _, lag in clipped.ramps] == [k]
    rng = random.Random(k)
    sequence = Sequence(world, [rng.randrange(LETTERS) for _ in range(12)])
    for t in range(1, 13):
        there = sequence.value(bent, t - k) + level if t > k else 0
        assert sequence.value(clipped, t) == max(there + Fraction(1, 2), 0)


@pytest.mark.parametrize("bends", [False, True])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("times", [False, True])
def test_equal_functions_seen_back_are_equal_and_others_are_not(k, bends, times):
    """[n ≥ 3] by rising ramps is 1 − [n < 3] by falling ones, where something stands there; before, both are 0.

    n is put together in two ways, so that the ramps are of two roots, of which one is n and one −n.
    """
    world = _world()
    pair = combine(
        [(ONE, of_letters(np.array([0.0, 1.0, 2.0]))), (ONE, back(of_letters(np.array([0.0, 3.0, 1.0])), 1))]
    )
    held, flag = [], of_letters(np.array([0.0, 0.0, 1.0]))
    held.append(latch(world, pair, flag))
    count = _count(world)
    held.append(latch(world, relu(world, pair), flag))
    n, again = (combine([(ONE, h), (-ONE, count)]) for h in held)
    meaning = Meaning(world, bends)
    rising = [(ONE, back(_ramp(world, n, 1, -2), k)), (-ONE, back(_ramp(world, n, 1, -3), k))]
    falling = [(-ONE, back(_ramp(world, again, -1, 3), k)), (ONE, back(_ramp(world, again, -1, 2), k))]
    one = back(constant(1), k)
    by = of_letters(np.array([1.0, 2.0, 0.0]))

    def difference(*more: tuple[Fraction, Value], const: int = 0) -> bool:
        sides = combine(rising), combine([*falling, *more], Fraction(const))
        if times:
            sides = tuple(product(world, side, by) for side in sides)
        return meaning.zero(combine([(ONE, sides[0]), (-ONE, sides[1])]))

    assert difference((ONE, one))
    assert not difference(const=1)
    assert not difference((ONE, back(constant(1), k + 1)))
    assert not difference((Fraction(2), one))
