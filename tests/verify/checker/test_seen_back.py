"""What stood some positions back: its level, breakpoints and start are told apart and put together."""

from __future__ import annotations

import json
import random
from fractions import Fraction

import numpy as np
import pytest

from compiler.language.alphabet import Alphabet
from compiler.language.circuit import Circuit
from compiler.language.input_language import InputLanguage
from compiler.language.output import readout_integer
from compiler.language.source import Tokens
from tests.verify.checker.checkpoints import write
from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.running import running_sum
from verify.checker.check import check
from verify.checker.formats import EXACT, Rejected
from verify.checker.meaning.normal_form import Meaning
from verify.checker.values.bent import product, relu, settled, single
from verify.checker.values.language import Edge, Language
from verify.checker.values.latches import latch
from verify.checker.values.values import Value, World, combine, constant, later, of_letters

LETTERS = 3
ONE = Fraction(1)


def _world() -> World:
    return World(Language(LETTERS, "q", (Edge("q", "q", np.ones(LETTERS, dtype=bool), False, True),), 12), EXACT)


def _count(world: World) -> Value:
    return running_sum(world, of_letters(np.array([0.0, 1.0, 0.0])), "a count")


def back(world: World, value: Value, k: int) -> Value:
    return later(world, value, k)


def _ramp(world: World, x: Value, slope: int, shift: int) -> Value:
    return relu(world, combine([(Fraction(slope), x)], Fraction(shift)))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("level", [-2, 1, 3])
def test_a_level_that_is_seen_as_far_back_makes_no_new_root(k, level):
    world = _world()
    count = _count(world)
    bent = _ramp(world, count, 1, -1)
    value = combine([(ONE, back(world, bent, k)), (ONE, back(world, constant(level), k))], Fraction(1, 2))
    roots = len(world.roots)
    clipped = relu(world, value)
    assert len(world.roots) == roots and [lag for _, lag in clipped.ramps] == [k]
    rng = random.Random(k)
    sequence = Sequence(world, [rng.randrange(LETTERS) for _ in range(12)])
    for t in range(1, 13):
        there = sequence.value(bent, t - k) + level if t > k else 0
        assert sequence.value(clipped, t) == max(there + Fraction(1, 2), 0)


@pytest.mark.parametrize("breakpoints", [False, True])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("times", [False, True])
def test_equal_functions_seen_back_are_equal_and_others_are_not(k, breakpoints, times):
    """[n ≥ 3] by rising ramps is 1 − [n < 3] by falling ones, where something stands there; before, both are 0.

    n is put together in two ways, so that the ramps are of two roots, of which one is n and one −n.
    """
    world = _world()
    pair = combine(
        [(ONE, of_letters(np.array([0.0, 1.0, 2.0]))), (ONE, back(world, of_letters(np.array([0.0, 3.0, 1.0])), 1))]
    )
    held, flag = [], of_letters(np.array([0.0, 0.0, 1.0]))
    held.append(latch(world, pair, flag))
    count = _count(world)
    held.append(latch(world, relu(world, pair), flag))
    n, again = (combine([(ONE, h), (-ONE, count)]) for h in held)
    meaning = Meaning(world, breakpoints)
    rising = [(ONE, back(world, _ramp(world, n, 1, -2), k)), (-ONE, back(world, _ramp(world, n, 1, -3), k))]
    falling = [(-ONE, back(world, _ramp(world, again, -1, 3), k)), (ONE, back(world, _ramp(world, again, -1, 2), k))]
    one = back(world, constant(1), k)
    by = of_letters(np.array([1.0, 2.0, 0.0]))

    def difference(*more: tuple[Fraction, Value], const: int = 0) -> bool:
        sides = combine(rising), combine([*falling, *more], Fraction(const))
        if times:
            sides = tuple(product(world, side, by) for side in sides)
        return meaning.zero(combine([(ONE, sides[0]), (-ONE, sides[1])]))

    assert difference((ONE, one))
    assert not difference(const=1)
    assert not difference((ONE, back(world, constant(1), k + 1)))
    assert not difference((Fraction(2), one))


@pytest.mark.parametrize("k", range(8, 14))
@pytest.mark.parametrize("none", [False, True])
def test_what_stands_before_every_sequence_is_left_out_and_nothing_else(k, none):
    """A number 3 and then k positions back, in sequences of 12: it is seen at the last 9 − k positions, if any.

    With none, the number is 1 where nothing stands 3 positions back, so it is no 0 there.
    """
    world = _world()
    count = back(world, _count(world), 3)
    pair = combine([(ONE, count), (ONE, back(world, of_letters(np.array([1.0, 0.0, 2.0])), 3))])
    there = relu(world, combine([(-ONE, count)], ONE)) if none else pair
    value = back(world, there, k)
    assert value.zero == (k >= (12 if none else 9))
    rng = random.Random(k)
    sequence = Sequence(world, [rng.randrange(LETTERS) for _ in range(12)])
    for t in range(1, 13):
        assert sequence.value(value, t) == (sequence.value(there, t - k) if t > k else 0)
    with pytest.raises(Rejected, match="to come"):
        back(world, value, -1)


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize("far", [(9,), (4, 5), (7,)])
def test_proves_shifts_beyond_the_longest_sequence(target, far, tmp_path):
    """The compiler leaves out what is seen as far back as a sequence is long, or farther; 7 of 8 is not so far."""
    letters = Alphabet.of("a", "b", "c")
    seen = Tokens(letters).is_in("a").cumsum()
    for k in far:
        seen = seen.shift(k)
    here = Tokens(letters).is_in("b").cumsum() + seen
    output = readout_integer(here, letters, {"a": 0, "b": 1, "c": 2})
    circuit = Circuit("far", output, InputLanguage.everything(letters, 8))
    directory = write(tmp_path / "c", circuit, target)
    assert check(directory).accepted
    for name in ("construction.json", "circuit.json"):
        held = json.loads((directory / name).read_text())
        held["promise"]["length"] = 10  # where those count
        (directory / name).write_text(json.dumps(held))
    assert check(directory).accepted == (sum(far) < 8)


@pytest.mark.parametrize("seed", range(30))
def test_a_start_is_told_in_one_way(seed: int) -> None:
    """Wherever it stands: what is before the sequence moves between components, and no value changes."""
    rng, world = random.Random(seed), _world()
    flags = [of_letters(np.array(row)) for row in ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0])]
    held = [latch(world, _count(world), flags[0]), latch(world, constant(1), flags[1])]
    parts = [later(world, x, lag) for x in (*held, flags[0]) for lag in (1, 2)]
    chosen = [(Fraction(rng.choice((-3, -1, 2))), x) for x in rng.sample(parts, 4)]
    bare = combine([*chosen, (ONE, flags[1])], Fraction(rng.randrange(3)))
    told = []
    for _ in range(2):  # the same numbers before the sequence, by other components
        rest = {t: Fraction(total) for t, total in ((2, seed % 3 - 1), (1, seed % 5 - 3))}
        terms, places = dict(bare.terms), [key for key in bare.terms if key[1]]
        for key in rng.sample(places, len(places)):
            share = [rng.choice((-1, 0, 4)) + ONE for _ in range(key[1])]
            terms[key] = terms[key].starting(tuple(share))
            rest = {t: x - (share[key[1] - t] if t <= key[1] else 0) for t, x in rest.items()}
        deep = max(key[1] for key in places)
        last = next(key for key in places if key[1] == deep)
        start = tuple(x + rest[deep - i] for i, x in enumerate(terms[last].start))
        told.append(Value(bare.const, {**terms, last: terms[last].starting(start)}))
    assert told[0].key != told[1].key and settled(world, told[0]).key == settled(world, told[1]).key
    assert single(world, told[0])[0] == single(world, told[1])[0]
    for word in (rng.choices(range(LETTERS), k=6) for _ in range(5)):
        sequence = Sequence(world, word)
        for t in range(1, 7):
            assert (
                sequence.value(settled(world, told[0]), t) == sequence.value(told[1], t) == sequence.value(told[0], t)
            )
