"""Tables of their default size on Mamba-2, which were not proved for a while and no test of a small size noticed."""

from __future__ import annotations

import pytest

from constructions.registry import CONSTRUCTIONS
from tests.trust.defaults import asked
from tests.verify.checker.checkpoints import write
from verify.checker.check import check


@pytest.mark.parametrize("name", ["edit-distance", "lcs"])
def test_a_table_that_is_not_proved_with_sums_added_up_at_once_is_proved_without(name):
    _, reason = asked(name, "mamba2")
    assert reason is None


@pytest.mark.parametrize(("name", "target"), [("edit-distance", "mamba2"), ("lcs", "mamba")])
def test_answers_of_a_default_size_are_proved(tmp_path, name, target):
    """They take the most situations of all constructions, and what a situation is charged must leave room for them."""
    made = CONSTRUCTIONS[name](arch=target)
    directory = write(tmp_path / "made", made.circuit(), target, task=made.asks())
    assert check(directory).task is None
