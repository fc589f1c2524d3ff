"""Drives that stop themselves: what is claimed of their sum holds for every sequence that is run."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np

from constructions.selectivity.mqar import MQAR
from tests.spread import some
from tests.verify.checker.checkpoints import write
from tests.verify.checker.faults import inject
from tests.verify.checker.values import Sequence
from verify.checker.arithmetic import once
from verify.checker.arithmetic.memories import memory
from verify.checker.arithmetic.once import written
from verify.checker.check import check
from verify.checker.formats import EXACT
from verify.checker.values.bent import product, relu
from verify.checker.values.language import Edge, Language
from verify.checker.values.values import Value, World, combine, later, of_letters

LETTERS = 4


def _table(world: World, values: list[int], lag: int) -> Value:
    return later(world, of_letters(np.array(values, dtype=float)), lag)


def _claims(seeds: Iterable[int] = range(120)) -> Iterator[bool]:
    """Whether some sequence exceeds it, of each bound that is claimed of the product of a drive with a column."""
    for seed in seeds:
        rng, length = random.Random(seed), 24
        world, drive, column = _drawn_behind_a_gate(rng)
        bound = None if drive.constant or column.constant else written(world, drive, column)
        if bound is None:
            continue
        wrong = False
        for _ in range(8):
            sequence = Sequence(world, [rng.randrange(LETTERS) for _ in range(length)])
            held = [sequence.value(drive, t) * sequence.value(column, t) for t in range(1, length + 1)]
            wrong |= sum(held) > bound
        yield wrong


def _drawn_behind_a_gate(rng: random.Random) -> tuple[World, Value, Value]:
    """A drive and a column: the drive falls with memories behind gates, which mostly grow where both are positive."""
    world = World(Language(LETTERS, "q", (Edge("q", "q", np.ones(LETTERS, dtype=bool), False, True),), 30), EXACT)
    write, digit = ([rng.choice([0, 1, 1]) for _ in range(LETTERS)] for _ in range(2))
    low, column = [rng.choice([0, 1]) for _ in range(LETTERS)], [rng.choice([0, 1, 1]) for _ in range(LETTERS)]
    grown = relu(world, combine([(Fraction(1), _table(world, write, 0)), (Fraction(1), _table(world, digit, 1))], -1))
    gate = _table(world, digit if rng.random() < 0.6 else low, 1)
    keys = [(_table(world, k, 1), _table(world, k, 1)) for k in (column, low)]
    held = product(world, memory(world, grown, keys, "a memory"), gate)
    wanted = [(Fraction(2), _table(world, write, 0)), (Fraction(4), _table(world, digit, 1))]
    drive = relu(world, combine([*wanted, (Fraction(-rng.randint(1, 2)), held)], Fraction(-4)))
    return world, drive, _table(world, column, 1)


def test_what_falls_with_memories_behind_gates_adds_up_to_no_more():
    seeds = some(range(120), 0.03)
    wrong = [*_claims(seeds)]
    assert len(wrong) > len(seeds) / 12 and not any(wrong)


def test_a_gate_that_is_closed_stops_nothing(monkeypatch):
    monkeypatch.setattr(once, "_only_where", lambda *_: True)
    assert any(_claims())


def test_first_writes_of_s4d_are_proved_and_no_changed_weight_is_believed(tmp_path):
    """Its writes fall with what the sums hold; the sums are read behind gates."""
    directory = write(tmp_path / "c", MQAR(kappa=3, vocab=6, write="first", arch="s4d").circuit(), "s4d")
    assert check(directory).accepted
    tried = len(some(range(12), 0.15))
    tally, wrong = inject(directory, tried, random.Random(0))
    assert tally["rejected"] == tried and not wrong
