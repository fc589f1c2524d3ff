"""Memories that Mamba-2 holds in several groups of columns: sums behind gates that are no functions of letters."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.checkpoints import write
from tests.verify.checker.plants import plant
from tests.verify.checker.values import Sequence
from verify.checker.bent import product, relu
from verify.checker.check import check
from verify.checker.formats import EXACT
from verify.checker.language import Edge, Language
from verify.checker.meaning import Meaning
from verify.checker.memories import memory
from verify.checker.running import counted, running_sum
from verify.checker.values import Value, World, combine, of_letters

LETTERS, LENGTH = 3, 8
ONE = Fraction(1)


def _letter(i: int) -> Value:
    return of_letters(np.eye(LETTERS)[i])


@pytest.mark.parametrize("bends", [False, True])
def test_sums_behind_gates_are_the_columns_of_a_memory_and_no_others(bends):
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
            assert Meaning(world, bends).zero(left) == same
            equal += same
    assert equal == 1


@pytest.mark.parametrize("groups", [2, 4])
def test_proves_a_memory_in_groups_and_no_changed_weight(groups, tmp_path):
    circuit = CONSTRUCTIONS["selective-copy"](n=2, vocab=2, length=5, arch="mamba2").circuit()
    directory = write(tmp_path / "c", circuit, "mamba2", n_groups=groups)
    assert check(directory).weights is None
    tally, wrong = plant(directory, 12, random.Random(groups))
    assert tally["rejected"] == 12 and not wrong
