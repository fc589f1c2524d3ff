"""The program that runs the kernel on the checker's small checkpoints, and the page's table of what came of them."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.fuzz.run import Hang, at_most
from tests.verify.checker.evidence import jobs, title
from tests.verify.kernel import evidence
from tests.verify.kernel.evidence import (
    LATE,
    MEANING,
    NO_TASK,
    NONE,
    OUTCOMES,
    REFUSED,
    TABLE,
    WHOLE,
    _task,
    grouped,
    outcome,
    table,
)
from tests.verify.kernel.page import said


def rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_the_page_counts_each_checkpoint_once():
    found = rows(said(*TABLE).split("\n\n")[0])
    assert [row[0] for row in found[2:]] == list(OUTCOMES)
    counts = [[int(cell) for cell in row[1:]] for row in found[2:]]
    assert all(sum(row[:-1]) == row[-1] for row in counts)
    most = Counter((target, dtype) for _, _, target, dtype in jobs())
    for head, column in zip(found[0][1:-1], zip(*counts, strict=True), strict=False):
        name, dtype = head.split(", ")
        target = {"Mamba": "mamba", "Mamba-2": "mamba2", "S4D": "s4d"}[name]
        assert sum(column) <= (most[target, dtype] if dtype in ("float32", "bfloat16", "float16") else 9)


def test_a_table_of_results():
    results = {
        "one-0-mamba-float32": {"is": WHOLE, "why": ""},
        "two-mamba2-float16": {"is": REFUSED, "why": "stream 7: computed, but no rule of the kernel for 'Or'"},
        "two-s4d-float16": {"is": LATE, "why": ""},
        "three-mamba-float32": {"is": "no checkpoint"},
    }
    found = table(results)
    assert [row[-1] for row in rows(found.split("\n\n")[0])[2:]] == ["1", "0", "0", "1", "1"]
    assert "| no rule for the operation `Or` | 1 |" in found


@pytest.mark.parametrize(
    "why, reason",
    [
        ("block 2: channel 4: columns of several decays", "a channel has columns of several decays"),
        ("the kernel has no rule for the task 'copy'", "no rule for the task"),
        ("the score of letter 12 is not shown to be the circuit's", "the scores are not shown to be the circuit's"),
        ("a sentence of 3 numbers", "a sentence of N numbers"),
    ],
)
def test_reasons_are_grouped(why, reason):
    assert grouped(why) == reason


def test_what_takes_too_long_is_stopped(recall):
    with pytest.raises(Hang), at_most(0.05):
        while True:
            pass
    assert outcome(recall, 0.01)["is"] == LATE
    assert outcome(recall)["is"] == WHOLE


def test_each_checkpoint_has_the_task_that_its_construction_states():
    asked = {title(job): _task(job) for job in jobs() if job[0] in ("mqar-0", "lis-0", "lis-by-value", "mqar_sum")}
    assert asked["mqar-0-mamba-float32"] == {"name": "mqar", "write": "sum"}
    assert {asked[f"{name}-mamba-bfloat16"] for name in ("lis-0", "lis-by-value", "mqar_sum")} == {None}
    assert {MEANING, NO_TASK} < set(OUTCOMES)


def test_some_results_are_found_anew(tmp_path, monkeypatch):
    """Those of whose outcome or reason a part is named, but where there is no checkpoint; others stay as they are."""
    monkeypatch.setattr(evidence, "jobs", lambda: [(name, None, "mamba", "float32") for name in "abcd"])
    monkeypatch.setattr(evidence, "made", lambda job, directory: directory)
    monkeypatch.setattr(evidence, "outcome", lambda directory, seconds: {"is": WHOLE, "why": ""})
    known = {"a": {"is": MEANING, "why": "no rule"}, "b": {"is": NO_TASK, "why": ""}, "c": {"is": NONE}}
    file = tmp_path / "results.json"
    for again, anew in (("", "d"), ("no rule", "ad"), ("proved", "abd"), ("no checkpoint", "d")):
        file.write_text(json.dumps({f"{name}-mamba-float32": result for name, result in known.items()}))
        evidence.run(tmp_path, 1, 1, again=again)
        found = json.loads(file.read_text())
        assert {key[0] for key, result in found.items() if "at" in result} == set(anew)
        assert len(found) == 4
