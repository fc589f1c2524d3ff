"""Memories in two digits are proved to be the memories that the circuit asks for."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product as choices
from pathlib import Path

import numpy as np
import pytest

import compiler
from constructions.copy_dp.copy import Copy
from constructions.selectivity.mqar import MQAR
from tests.spread import some
from tests.verify.checker.audit import without
from tests.verify.checker.faults import inject
from tests.verify.checker.values import Sequence
from verify.checker.arithmetic.columns import most_held
from verify.checker.arithmetic.running import running_sum
from verify.checker.check import check
from verify.checker.formats import EXACT
from verify.checker.meaning.normal_form import Meaning
from verify.checker.values.bent import product, relu
from verify.checker.values.language import Edge, Language
from verify.checker.values.values import Value, World, combine, of_letters

ONE, LENGTH = Fraction(1), 6
WORDS = list(choices((0, 1), repeat=LENGTH))


def _saved(directory: Path, arch: str) -> Path:
    construction = MQAR(kappa=5, vocab=4, arch=arch, max_d_state=2)
    compiled = compiler.compile(construction.circuit(), arch, max_d_state=2)
    assert max(block.d_state for block in compiled.blocks) == 2
    compiled.save(directory)
    return directory


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_recall_from_two_digits_is_proved(arch: str, tmp_path: Path):
    verdict = check(_saved(tmp_path / "c", arch))
    assert verdict.accepted, verdict.reason


def test_digits_of_more_columns_than_are_taken_apart_are_proved(tmp_path: Path):
    directory = tmp_path / "c"
    compiler.compile(MQAR(kappa=81, vocab=2, max_d_state=9, arch="mamba2").circuit(), "mamba2", max_d_state=9).save(
        directory
    )
    assert check(directory).accepted
    with without("memories behind gates"):
        assert check(directory).meaning


def test_no_wrong_weight_is_accepted(tmp_path: Path):
    tried = len(some(range(20), 0.15))
    tally, missed = inject(_saved(tmp_path / "c", "mamba"), tried, random.Random(0))
    assert tally["rejected"] == tried and missed == []


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_first_writes_in_two_digits_are_proved(arch: str, tmp_path: Path):
    """They fall with memories behind gates, and what is stored is a bent sum with a window of many values."""
    MQAR(kappa=4, vocab=4, write="first", max_d_state=2, arch=arch).compiled().save(tmp_path / "c")
    assert check(tmp_path / "c").accepted
    tried = len(some(range(8), 0.2))
    tally, missed = inject(tmp_path / "c", tried, random.Random(2))
    assert tally["rejected"] == tried and not missed


@pytest.mark.parametrize("form, arch", [("pointer", "mamba"), ("place", "mamba2")])
def test_places_in_two_digits_are_proved(form: str, arch: str, tmp_path: Path):
    """The low digit of a place is a function of the count, and so is the high one, on which a condition waits."""
    Copy(form=form, n=5, vocab=2, max_d_state=3, arch=arch).compiled().save(tmp_path / "c")
    assert check(tmp_path / "c").accepted
    tried = len(some(range(12), 0.15))
    tally, missed = inject(tmp_path / "c", tried, random.Random(1))
    assert tally["rejected"] == tried and not missed


def _counted(letter: int) -> tuple[World, list[Value]]:
    """[the letters a so far, or the letters b, are n], for each n."""
    world = World(Language(2, "q", (Edge("q", "q", np.ones(2, dtype=bool), False, True),), LENGTH), EXACT)
    count = running_sum(world, of_letters(np.eye(2)[letter]), "a count")
    ramps = [relu(world, combine([(ONE, count)], Fraction(-n))) for n in range(-1, LENGTH + 2)]
    return world, [combine([(ONE, a), (Fraction(-2), b), (ONE, c)]) for a, b, c in zip(ramps, ramps[1:], ramps[2:])]


@pytest.mark.parametrize("breakpoints", [False, True])
def test_functions_of_one_count_are_multiplied_and_no_others(breakpoints: bool):
    """What is stored where a low and a high digit hold is what is stored at the one number that has both."""
    world, at = _counted(0)
    other = relu(world, combine([(ONE, of_letters(np.array([2.0, 1.0]))), (ONE, running_sum(world, at[2], "a sum"))]))
    low, high = combine([(ONE, at[1]), (ONE, at[3])]), combine([(ONE, at[2]), (ONE, at[3])])
    equal = 0
    for n in (1, 2, 3):
        both = product(world, product(world, other, low), high)
        stored = [running_sum(world, x, "a sum") for x in (both, product(world, other, at[n]))]
        left = combine([(ONE, stored[0]), (-ONE, stored[1])])
        same = all(Sequence(world, list(word)).value(left, LENGTH) == 0 for word in WORDS)
        assert Meaning(world, breakpoints).zero(left) == same
        equal += same
    assert equal == 1


@pytest.mark.parametrize("letter", [0, 1])
def test_columns_and_what_they_store_are_bounded_at_each_count(letter: int):
    """Where a column and its drive are functions of one count, only the counts that both have are added up."""
    world, at = _counted(letter)
    column = combine([(ONE, at[1]), (ONE, at[3])])
    drive = relu(world, combine([(ONE, of_letters(np.eye(2)[0])), (ONE, at[1]), (ONE, at[2])], -ONE))
    held = running_sum(world, product(world, column, drive), "a sum")
    most = max(Sequence(world, list(word)).value(held, LENGTH) for word in WORDS)
    bound = most_held(world, column, drive)
    assert bound == most == 1 if letter == 0 else bound >= most > 1
