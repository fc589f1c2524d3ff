"""Dynamic programs: every chain of the real modules against the textbook, token by token."""

from __future__ import annotations

import pytest

from constructions import artifact
from constructions.copy_dp.lists import LongestIncreasingSubsequence, MaximumSubarray
from constructions.copy_dp.words import EditDistance, LongestCommonSubsequence
from verify.tasks.solvers.words import EditDistanceSolver

SMALL = [
    EditDistance(length=2, distinct_letters=2),
    LongestCommonSubsequence(length=2, distinct_letters=2),
    LongestIncreasingSubsequence(length=3, values=3),
    MaximumSubarray(length=3, values=3),
]


def assert_right(construction, mode, samples=1):
    built = artifact.build(construction)
    results = artifact.verify(built, built.stack(), mode, samples, seed=0)
    assert artifact.passed(built, results), artifact.divergence(built, built.stack(), *results.values())
    return next(iter(results.values()))


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("construction", SMALL, ids=lambda c: c.name)
def test_every_prompt_of_small_sizes(construction, arch):
    construction = type(construction)(**construction.params() | {"arch": arch})
    result = assert_right(construction, "exhaustive")
    assert result.exact_sequences >= construction.solver().count()


def test_the_textbook_by_hand():
    chain = EditDistanceSolver(3, "abc").chain(["a", "b", "c", "|", "b", "c", ";"])
    assert " ".join(chain) == "0 1 2 ; 1 1 2 ; 2 1 2 ; 3 2 1 ."
