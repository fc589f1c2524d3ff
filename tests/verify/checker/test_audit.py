"""The table of docs/proofs.md on who needs which rule: each line is true."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from tests.verify.checker.audit import RULES, without, witnesses
from tests.verify.checker.checkpoints import least_ballast, write
from tests.verify.checker.evidence import jobs
from verify.checker.check import check

LINES = witnesses()
JOBS = {f"{name}-{target}": (build, target) for name, build, target, dtype in jobs() if dtype == "float32"}


def test_the_table_is_read():
    assert len(LINES) > 10 and {rule for rule, _ in LINES} <= set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_can_be_taken_away(rule):
    """The names that are taken away are those of today's checker."""
    with without(rule):
        pass


@pytest.fixture(scope="module")
def proved(tmp_path_factory):
    """The folder of a witness that is proved with every rule: it may stand in several lines."""

    @cache
    def folder(witness: str) -> Path:
        build, target = JOBS[witness]
        with least_ballast():
            directory = write(tmp_path_factory.mktemp("witness") / "c", build(), target)
        assert check(directory).accepted
        return directory

    return folder


@pytest.mark.parametrize("rule, witness", LINES, ids=str)
def test_a_checkpoint_needs_the_rule(rule, witness, proved):
    directory = proved(witness)
    with without(rule):
        assert not check(directory).accepted
