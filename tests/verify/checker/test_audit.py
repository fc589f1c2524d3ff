"""The table of docs/proofs.md on who needs which rule: each line is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.verify.checker.audit import RULES, without
from tests.verify.checker.checkpoints import write
from tests.verify.checker.evidence import jobs
from verify.checker.check import check

PAGE = Path(__file__).parents[3] / "docs" / "proofs.md"
TABLE = PAGE.read_text().split("| rule | not proved without it |")[1].split("\n\n")[0]
LINES = re.findall(r"^\| (.+) \| `(.+)` \|$", TABLE, flags=re.MULTILINE)
JOBS = {f"{name}-{target}": (build, target) for name, build, target, dtype in jobs() if dtype == "float32"}


def test_the_table_is_read():
    assert len(LINES) > 10 and {rule for rule, _ in LINES} <= set(RULES)


@pytest.mark.parametrize("rule, witness", LINES, ids=str)
def test_a_checkpoint_needs_the_rule(rule, witness, tmp_path):
    build, target = JOBS[witness]
    directory = write(tmp_path / "c", build(), target)
    assert check(directory).accepted
    with without(rule):
        assert not check(directory).accepted
