"""Values that are equal and are made in other ways: of memories in parts, seen back, by cases."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from constructions.registry import CONSTRUCTIONS
from tests.spread import some
from tests.verify.checker.checkpoints import write
from tests.verify.checker.faults import inject
from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.memories import memory
from verify.checker.arithmetic.running import counted, running_sum
from verify.checker.check import check
from verify.checker.formats import EXACT
from verify.checker.meaning.normal_form import Meaning
from verify.checker.values.bent import product, relu, single
from verify.checker.values.language import Language, parse
from verify.checker.values.latches import latch
from verify.checker.values.tables import Ramp
from verify.checker.values.values import Value, World, combine, later, of_letters

LETTERS, LENGTH = 3, 8
ONE = Fraction(1)


def _edge(source: str, target: str, letters: list[int]) -> dict:
    return {"from": source, "to": target, "tokens": [[a, a] for a in letters], "distinct": False}


def _language(edges: list[dict], length: int) -> Language:
    return parse({"language": {"tokens": LETTERS, "start": "start", "edges": edges}, "length": length})


def _world() -> World:
    return World(_language([_edge("start", "start", [0, 1, 2])], LENGTH), EXACT)


def _letter(i: int) -> Value:
    return of_letters(np.eye(LETTERS)[i])


def _above(world: World, x: Value, j: int) -> Value:
    """max(x − j, 0)."""
    return relu(world, combine([(ONE, x)], Fraction(-j)))


def _is(world: World, x: Value, j: int) -> Value:
    return combine([(Fraction(w), _above(world, x, j + k)) for w, k in ((1, -1), (-2, 0), (1, 1))])


def _difference(a: Value, b: Value) -> Value:
    return combine([(ONE, a), (-ONE, b)])


def _words(seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    return [[rng.randrange(LETTERS) for _ in range(LENGTH)] for _ in range(30)]


def _vanishes(world: World, value: Value) -> bool:
    """Whether the value is 0 at every position of some sequences."""
    on = [Sequence(world, word) for word in _words(0)]
    return all(s.value(value, t) == 0 for s in on for t in range(1, LENGTH + 1))


@pytest.mark.parametrize("length, edges", [(2, 2), (3, 3)])
def test_edges_that_no_path_reaches_in_time_say_nothing(length: int, edges: int):
    """One letter a, and no more: the sum of them is 1 throughout, unless the last edge can be taken."""
    found = _language([_edge("start", "p", [0]), _edge("p", "q", [1]), _edge("q", "q", [0])], length)
    assert len(found.edges) == edges
    assert running_sum(World(found, EXACT), _letter(0), "a sum").constant == (length == 2)


def test_a_sum_less_its_latch_is_the_count_on_both_sides():
    """s − 2l and l − (s − l), l the sum when the flag last held, are one form but for the sign."""
    world = _world()
    total = running_sum(world, _letter(0), "a sum")
    held = latch(world, total, _letter(1))
    count = counted(world, _letter(0), _letter(1), "a count")
    forms = [single(world, x)[0] for x in (combine([(ONE, total), (Fraction(-2), held)]), _difference(held, count))]
    assert forms[0] == forms[1]


@pytest.mark.parametrize("lags", [(1, 1), (1, 2), (2, 3)])
def test_what_is_seen_back_as_a_whole_is_a_form_seen_back(lags: tuple[int, int]):
    """Also before the start, where the parts are not 0."""
    world = _world()
    counts = [counted(world, _letter(a), _letter(1), "a count") for a in (0, 2)]
    parts = [later(world, combine([(ONE, c)], Fraction(k + 1)), lags[k]) for k, c in enumerate(counts)]
    (root, back), component = single(world, combine([(ONE, parts[0]), (Fraction(-2), parts[1])], Fraction(5)))
    assert back == min(lags) and world.roots[root].kind == "form" and isinstance(component, Ramp)
    for word in _words(1):
        s = Sequence(world, word)
        for t in range(1, LENGTH + 1):
            asked = s.value(parts[0], t) - 2 * s.value(parts[1], t) + 5
            assert asked == (component.at(s.root(root, t - back)) if t > back else component.start[back - t])


def _memories(world: World, queries: list[list[int]]) -> list[Value]:
    """Memories of the same values, read where a count since letter 2 is one of these numbers, a column for each."""
    count = counted(world, _letter(0), _letter(2), "a count")
    value = of_letters(np.array([1.0, 2.0, 0.0]))
    columns = [[(_letter(i), _is(world, count, n)) for i, n in enumerate(numbers)] for numbers in queries]
    return [memory(world, value, some, "a memory") for some in columns]


@pytest.mark.parametrize("breakpoints", [False, True])
@pytest.mark.parametrize("number, equal", [(1, True), (2, False)])
def test_a_memory_that_is_a_factor_is_the_sum_of_its_columns(breakpoints: bool, number: int, equal: bool):
    world = _world()
    (whole,) = _memories(world, [[1, 3]])
    parts = [m for n in ([number], [0, 3]) for m in _memories(world, [n])]
    first = parts[0], combine([(ONE, parts[1]), (-ONE, _memories(world, [[0]])[0])])
    other = running_sum(world, relu(world, combine([(ONE, whole)], -ONE)), "a sum")
    left = combine([(ONE, product(world, other, whole)), *((-ONE, product(world, other, part)) for part in first)])
    assert Meaning(world, breakpoints).zero(left) == _vanishes(world, left) == equal


SMALL = [
    ("lis", {"arch": "mamba2", "length": 1, "values": 1}, 1, 6),
    ("viterbi", {"arch": "mamba", "length": 2}, 1, 2),  # a refusal takes ten seconds
    ("shortest-path", {"arch": "mamba2", "nodes": 3, "lengths": 2}, 2, 6),
    ("matrix-chain", {"arch": "mamba2", "matrices": 2, "largest": 2}, 2, 6),
]


@pytest.mark.parametrize("name, parameters, groups, faults", SMALL)
def test_proves_small_tables_and_no_changed_weight(
    name: str, parameters: dict, groups: int, faults: int, tmp_path: Path
):
    target = parameters["arch"]
    options = {"n_groups": groups} if groups > 1 else {}
    directory = write(tmp_path / "c", CONSTRUCTIONS[name](**parameters).circuit(), target, **options)
    assert check(directory).weights is None
    tried = len(some(range(faults), 0.15))
    tally, wrong = inject(directory, tried, random.Random(1))
    assert tally["rejected"] == tried and not wrong
