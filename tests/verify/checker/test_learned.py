"""Of each rule that the checker learned last some checkpoint is proved, on both mixers, and no fault is missed."""

import random

import pytest

from tests.spread import some
from tests.verify.checker.checkpoints import write
from tests.verify.checker.faults import inject
from tests.verify.checker.learned import LEARNED
from verify.checker.check import check


@pytest.mark.parametrize("target", ["mamba", "mamba2"])
@pytest.mark.parametrize(
    "name",
    [
        *("since-back", "since-both", "since-pair", "since-reached", "since-latched"),
        *("and-of-three", "and-implied", "and-stored"),
        *("mass-of-sums", "mass-of-memory"),
    ],
)
def test_no_wrong_weight_is_accepted(name, target, tmp_path):
    directory = write(tmp_path / "c", LEARNED[name](), target)
    assert check(directory).accepted
    tally, wrong = inject(directory, len(some(range(12), 0.08)), random.Random(name), sequences=6)
    assert not wrong, wrong[0]
    assert tally["rejected"]
