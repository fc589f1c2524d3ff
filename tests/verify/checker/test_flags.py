"""What flags and edges leave of values: the same on every path of a small language, and nothing where they may not."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product as choices

import numpy as np
import pytest

from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.audit import without
from tests.verify.checker.checkpoints import write
from tests.verify.checker.evidence import jobs, title
from tests.verify.checker.faults import inject
from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.memories import memory
from verify.checker.arithmetic.running import running_sum
from verify.checker.check import check
from verify.checker.formats import EXACT
from verify.checker.meaning.cases import at_edges, zero_at_all_edges
from verify.checker.meaning.flags import behind_one_flag, straightened, switched
from verify.checker.meaning.normal_form import Meaning
from verify.checker.values.bent import product, relu, single
from verify.checker.values.bounds import bounds, bounds_where
from verify.checker.values.language import parse
from verify.checker.values.latches import latch
from verify.checker.values.tables import Ramp
from verify.checker.values.values import Value, World, combine, constant, later, of_letters

A, BAR, B, LENGTH = 0, 1, 2, 7
ONE = Fraction(1)


def _edge(source: str, target: str, letter: int) -> dict:
    return {"from": source, "to": target, "tokens": [[letter, letter]], "distinct": False}


def _world() -> World:
    """One to three letters a, the bar, and any number of b."""
    edges = [_edge("0", "1", A), _edge("1", "2", A), _edge("2", "3", A), _edge("after", "after", B)]
    edges += [_edge(state, "after", BAR) for state in "123"]
    data = {"tokens": 3, "start": "0", "edges": edges}
    return World(parse({"language": data, "length": LENGTH}), EXACT)


WORDS = [[A] * n + [BAR] * bar + [B] * (LENGTH - n - 1) * bar for n, bar in choices((1, 2, 3), (0, 1))]


def _letter(i: int) -> Value:
    return of_letters(np.eye(3)[i])


def _numbers(world: World) -> tuple[Value, Value, Value]:
    """How many a there were, how many b, and whether the bar was seen."""
    counts = [running_sum(world, _letter(i), "a count") for i in (A, B)]
    return counts[0], counts[1], latch(world, constant(1), _letter(BAR))


def _same(world: World, a: Value, b: Value) -> bool:
    """Whether two values are equal at every position of every path."""
    on = [Sequence(world, word) for word in WORDS]
    return all(s.value(a, t) == s.value(b, t) for s in on for t in range(1, len(s.letters) + 1))


def _bent(world: World, x: Value, rng: random.Random) -> Value:
    """A random function of x with two breakpoints."""
    breakpoints = [
        (Fraction(rng.randint(-2, 2)), relu(world, combine([(ONE, x)], Fraction(rng.randint(-6, 2))))) for _ in "12"
    ]
    return combine([(Fraction(rng.randint(-1, 1)), x), *breakpoints], Fraction(rng.randint(-1, 1)))


def test_bounds_where_a_flag_is_on_hold_there_and_nowhere_else():
    world = _world()
    a, b, seen = _numbers(world)
    x = combine([(ONE, b), (-ONE, a)])
    at = {level: bounds_where(world, x, seen, Fraction(level)) for level in (0, 1)}
    assert at[0][1] < bounds(world, x)[1] == at[1][1]
    for word in WORDS:
        s = Sequence(world, word)
        for t in range(1, len(word) + 1):
            lo, hi = at[int(s.value(seen, t))]
            assert lo <= s.value(x, t) <= hi


@pytest.mark.parametrize("at, paths, fires", [(0, True, True), (0, False, False), (-2, True, False)])
def test_a_switched_sum_is_a_product_where_paths_leave_no_breakpoint(at, paths, fires):
    """Before the bar b − a is from −3 to −1: a breakpoint at 0 does not count there, and one at −2 does."""
    world = _world()
    a, b, seen = _numbers(world)
    x, part = combine([(ONE, b), (-ONE, a)]), combine([(Fraction(8), seen)])
    _, form = single(world, combine([(ONE, x), (ONE, part)], Fraction(-at)))
    assert isinstance(form, Ramp)
    ramp = Ramp(range(-20, 21), [Fraction(max(y - at, 0)) for y in range(-20, 21)])
    found = switched(world, part, x, ramp, paths)
    assert (found is not None) == fires
    if found is not None:
        assert _same(world, found, relu(world, combine([(ONE, x), (ONE, part)], Fraction(-at))))


@pytest.mark.parametrize("at, paths, fires", [(1, True, True), (1, False, False), (-4, True, False)])
def test_a_window_of_several_values_is_taken_apart_where_one_leaves_no_bend(at, paths, fires):
    """v − a, where v is 0, 2 or 7 by the letter, and a at most 3: a breakpoint at 1 does not count where v is 0."""
    world = _world()
    a, _, _ = _numbers(world)
    part, falling = of_letters(np.array([2.0, 0.0, 7.0])), combine([(-ONE, a)])
    ramp = Ramp(range(-20, 21), [Fraction(max(y - at, 0)) for y in range(-20, 21)])
    found = switched(world, part, falling, ramp, paths)
    assert (found is not None) == fires
    if found is not None:
        assert _same(world, found, relu(world, combine([(ONE, part), (ONE, falling)], Fraction(-at))))
        assert all(world.roots[n].kind in ("product", "form") for n, _ in found.ramps)


@pytest.mark.parametrize("seed", range(40))
def test_straightened_factors_have_the_same_product(seed):
    world, rng = _world(), random.Random(seed)
    a, b, seen = _numbers(world)
    x = rng.choice([a, b, combine([(ONE, b), (-ONE, a)])])
    flag = rng.choice([seen, combine([(-ONE, seen)], ONE), product(world, seen, _letter(B)), combine([(ONE, a)], -ONE)])
    factors = _bent(world, x, rng), flag if rng.random() < 0.7 else _bent(world, rng.choice([a, b]), rng)
    if rng.random() < 0.5:
        factors = factors[1], factors[0]
    assert _same(world, product(world, *straightened(world, *factors)), product(world, *factors))


def test_only_a_factor_behind_a_flag_of_two_values_goes_straight_on():
    """Where the bar was not seen there are no b. A count of a has more values: no such flag."""
    world = _world()
    a, b, seen = _numbers(world)
    far, before = relu(world, combine([(ONE, b)], Fraction(-1))), combine([(-ONE, seen)], ONE)
    assert straightened(world, far, before)[0].key == constant(0).key
    assert straightened(world, before, far)[1].key == constant(0).key
    assert straightened(world, far, seen)[0].key == far.key
    assert straightened(world, far, a)[0].key == far.key


def test_what_a_flag_multiplies_is_one_part_of_the_sum():
    found = 0
    for seed in range(20):
        world, rng = _world(), random.Random(seed)
        a, b, seen = _numbers(world)
        flags = seen, latch(world, constant(1), _letter(B))
        terms = [(Fraction(rng.choice((-4, -1, 1, 2))), f) for f in flags]
        factors = [_bent(world, rng.choice([a, b]), rng) for _ in flags]
        terms += [(Fraction(rng.randint(-3, 3)), product(world, x, f)) for x, f in zip(factors, flags, strict=True)]
        shape = combine([*terms, (ONE, a)], Fraction(2))
        for part, others in behind_one_flag(world, shape):
            assert _same(world, combine([(ONE, part), (ONE, others)]), shape)
            found += 1
    assert found > 10


@pytest.mark.parametrize("name", ["lis-0-mamba-float16", "max-subarray-0-mamba-float16"])
def test_proves_what_needs_the_paths(name, tmp_path):
    job = next(job for job in jobs() if title(job) == name)
    directory = write(tmp_path / "c", job[1](), *job[2:])
    assert check(directory).accepted


def _edges_of(world: World, word: list[int]) -> list[int]:
    """The edge that each letter of a word takes."""
    state, taken = world.language.start, []
    for letter in word:
        edges = [i for i, e in enumerate(world.language.edges) if e.source == state and e.letters[letter]]
        taken += edges
        state = world.language.edges[edges[0]].target
    return taken


def _some_value(world: World, rng: random.Random) -> Value:
    """Bent sums, products, and memories read by them, some of them seen back."""
    a, b, seen = _numbers(world)
    letters = [of_letters(np.array([float(rng.randint(-2, 2)) for _ in range(3)])) for _ in range(3)]
    parts = [_bent(world, combine([(ONE, rng.choice([a, b, seen])), (ONE, x)]), rng) for x in letters]
    parts.append(product(world, parts[0], rng.choice([a, b, seen, letters[1]])))
    parts.append(memory(world, _letter(A), [(_letter(A), parts[1]), (constant(1), parts[2])], None))
    parts.append(_bent(world, combine([(ONE, parts[3]), (-ONE, parts[4])]), rng))
    return combine([(ONE, later(world, part, rng.randrange(3))) for part in rng.sample(parts, 4)])


@pytest.mark.parametrize("seed", range(12))
def test_a_value_at_some_edges_is_the_value_where_paths_take_them(seed):
    world, rng = _world(), random.Random(seed)
    value, simpler = _some_value(world, rng), 0
    for _ in range(4):
        live = np.array([rng.random() < 0.4 for _ in world.language.edges])
        if not live.any():
            continue
        found = at_edges(world, value, tuple(live))
        simpler += found.key != value.key
        for word in WORDS:
            s, taken = Sequence(world, word), _edges_of(world, word)
            assert len(taken) == len(word)
            assert all(s.value(found, t) == s.value(value, t) for t in range(1, len(word) + 1) if live[taken[t - 1]])
    assert simpler


@pytest.mark.parametrize("most, equal", [(1, True), (2, False)])
def test_what_is_0_at_all_edges_is_0_and_nothing_else(most, equal):
    """max(m [a] − number of b, 0) is m [a], for no b comes before an a: [a] where m is 1."""
    world = _world()
    _, b, _ = _numbers(world)
    bent = relu(world, combine([(Fraction(most), _letter(A)), (-ONE, b)]))
    left, plain = combine([(ONE, bent), (-ONE, _letter(A))]), Meaning(world).zero
    assert _same(world, left, constant(0)) == equal and not plain(left)
    assert zero_at_all_edges(world, left, plain) == equal


@pytest.mark.parametrize("seed", range(12))
def test_no_value_that_some_path_shows_is_0_at_all_edges(seed):
    world, rng = _world(), random.Random(seed)
    one, other = _some_value(world, rng), _some_value(world, random.Random(seed % 3))
    live = np.array([rng.random() < 0.5 for _ in world.language.edges])
    changed = at_edges(world, one, tuple(live)) if live.any() else other
    left = combine([(ONE, one), (-ONE, changed)])
    assert not zero_at_all_edges(world, left, Meaning(world).zero) or _same(world, left, constant(0))


def test_proves_an_edit_distance_edge_by_edge_and_no_changed_weight(tmp_path):
    circuit = CONSTRUCTIONS["edit-distance"](length=1, distinct_letters=1, arch="mamba").circuit()
    directory = write(tmp_path / "c", circuit, "mamba")
    assert check(directory).weights is None
    with without("edges by themselves"):
        assert check(directory).meaning
    tally, wrong = inject(directory, 2, random.Random(1))
    assert tally["rejected"] == 2 and not wrong
