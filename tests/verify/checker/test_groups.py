"""Memories that Mamba-2 holds in several groups of columns: sums behind gates that are no functions of letters."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from constructions.registry import CONSTRUCTIONS
from tests.spread import some
from tests.verify.checker.audit import without
from tests.verify.checker.checkpoints import write
from tests.verify.checker.faults import inject
from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.memories import joined, memory
from verify.checker.arithmetic.running import counted, running_sum
from verify.checker.check import check
from verify.checker.formats import EXACT
from verify.checker.meaning.normal_form import Meaning
from verify.checker.values.bent import product, relu
from verify.checker.values.bounds import bounds
from verify.checker.values.language import Edge, Language
from verify.checker.values.values import Value, World, combine, of_letters

LETTERS, LENGTH = 3, 8
ONE = Fraction(1)


def _letter(i: int) -> Value:
    return of_letters(np.eye(LETTERS)[i])


@pytest.mark.parametrize("breakpoints", [False, True])
def test_sums_behind_gates_are_the_columns_of_a_memory_and_no_others(breakpoints):
    """Two columns of a memory, read at a count of 1 and of 2 behind letters, beside sums behind gates, in any order."""
    world = World(Language(LETTERS, "q", (Edge("q", "q", np.ones(LETTERS, dtype=bool), False, True),), LENGTH), EXACT)
    count = counted(world, _letter(0), _letter(2), "a count")
    at = [relu(world, combine([(ONE, count)], Fraction(-k))) for k in (0, 1, 2)]
    gates = [combine([(ONE, at[0]), (-ONE, at[1])], -ONE), combine([(ONE, at[1]), (-ONE, at[2])], ONE)]
    gates.append(product(world, gates.pop(), of_letters(np.array([2.0, 0.0, -4.0]))))
    keys, value = [_letter(0), _letter(1)], of_letters(np.array([1.0, 2.0, 3.0]))
    held = memory(world, value, list(zip(keys, gates, strict=True)), "a memory")
    rng, equal = random.Random(0), 0
    words = [[rng.randrange(LETTERS) for _ in range(LENGTH)] for _ in range(20)]
    for order in permutations((0, 1)):
        for weights in ((1, 1), (1, 2), (2, 2)):
            sums = [running_sum(world, product(world, value, key), "a sum") for key in keys]
            apart = [product(world, sums[order[i]], gates[i]) for i in (0, 1)]
            left = combine([(-ONE, held), *((Fraction(w), x) for w, x in zip(weights, apart, strict=True))])
            same = all(Sequence(world, word).value(left, t) == 0 for word in words for t in range(1, LENGTH + 1))
            assert Meaning(world, breakpoints).zero(left) == same
            equal += same
    assert equal == 1


@pytest.mark.parametrize("seed", range(8))
def test_memories_of_one_operand_are_one_memory_within_its_bounds(seed):
    world = World(Language(LETTERS, "q", (Edge("q", "q", np.ones(LETTERS, dtype=bool), False, True),), LENGTH), EXACT)
    rng = random.Random(seed)
    drawn = lambda: of_letters(np.array([rng.randint(-3, 3) for _ in range(LETTERS)]) + np.eye(LETTERS)[0] / 2)
    one, other = drawn(), drawn()
    held = [memory(world, x, [(drawn(), drawn()) for _ in range(2)], "a memory") for x in (one, one, other, one)]
    value = combine([(Fraction(rng.choice((-3, 1, 2))), m) for m in held], Fraction(1))
    found = joined(world, value)
    assert (len(value.terms), len(found.terms)) == (4, 2)
    lo, hi = bounds(world, found)
    for word in ([rng.randrange(LETTERS) for _ in range(LENGTH)] for _ in range(20)):
        s = Sequence(world, word)
        for t in range(1, LENGTH + 1):
            assert s.value(found, t) == s.value(value, t) and lo <= s.value(found, t) <= hi


IN_GROUPS = [
    ("phonebook", {"names": 4, "entries": 3, "digits": 2}, 4),  # a refusal takes some seconds
    ("mad-copying", {"n": 3, "vocab": 3, "length": 10, "max_length": 20}, 12),
    ("mad-copying", {"n": 3, "vocab": 3, "length": 10, "max_length": 20, "selective": True}, 12),
    ("lis", {"length": 4, "values": 4}, 2),
]


@pytest.mark.parametrize("name, parameters, faults", IN_GROUPS)
def test_proves_what_two_groups_bound_together_and_no_changed_weight(
    name: str, parameters: dict, faults: int, tmp_path: Path
):
    """Memories of one operand are one memory, and a running sum of a product is bounded as a memory of one column."""
    circuit = CONSTRUCTIONS[name](**parameters, arch="mamba2").circuit()
    directory = write(tmp_path / "c", circuit, "mamba2", n_groups=2)
    assert check(directory).weights is None
    tried = len(some(range(faults), 0.15))
    tally, wrong = inject(directory, tried, random.Random(name))
    assert tally["rejected"] == tried and not wrong


def test_lis_in_two_groups_needs_one_memory(tmp_path: Path):
    directory = write(
        tmp_path / "c", CONSTRUCTIONS["lis"](length=4, values=4, arch="mamba2").circuit(), "mamba2", "float32", 2
    )
    with without("memories: of one operand"):
        assert check(directory).weights


@pytest.mark.parametrize("groups", [2, 4])
def test_proves_a_memory_in_groups_and_no_changed_weight(groups, tmp_path):
    circuit = CONSTRUCTIONS["selective-copy"](n=2, vocab=2, length=5, arch="mamba2").circuit()
    directory = write(tmp_path / "c", circuit, "mamba2", n_groups=groups)
    assert check(directory).weights is None
    tried = len(some(range(12), 0.15))
    tally, wrong = inject(directory, tried, random.Random(groups))
    assert tally["rejected"] == tried and not wrong
