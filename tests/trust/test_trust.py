"""docs/trust.md says what its numbers say, and they are added as they were kept."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from constructions.registry import CONSTRUCTIONS
from tests.trust import store
from tests.trust.__main__ import NUMBERS, PAGE
from tests.trust.page import page
from tests.trust.parts import PARTS, Part
from tests.verify.checker.evidence import PLANTS, SMALL, jobs

FAILURE = {"seed": 7, "verdict": "wrong", "where": ["mamba", "float32", "bare"], "reason": "it is 1"}
RESULT = {
    "programs": 2,
    "compiled": 1,
    "verdicts": {"mamba: exact": 1, "writing it: refused": 1},
    "failures": [FAILURE],
    "reasons": [{"reason": "mamba: too long", "count": 1, "seed": 3}],
}


def test_the_page_is_what_the_numbers_say():
    assert PAGE.read_text("utf-8") == page(json.loads(NUMBERS.read_text("utf-8")))


def test_what_falls_short_is_told():
    result = store.added([RESULT, RESULT])
    numbers = {"fuzz": {"cases": 4, "commits": ["abc"], "result": result}}
    text = page(numbers)
    assert "99,996 of 100,000 were not run" in text and text.count("seed 7: wrong (mamba float32 bare): it is 1") == 2
    assert "| 2 | seed 3 | mamba | too long |" in text and "4 programs, 2 of them exact somewhere" in text
    numbers["again"] = {"cases": 1, "commits": ["def"], "result": RESULT | {"failures": []}}
    assert "run again at commit def: none fails any more" in page(numbers)
    numbers["again hostile"] = {"cases": 2, "commits": ["def"], "result": {"failures": ["case 3, own: cut"]}}
    assert "that failed were run again at commit def: 1 still fail: case 3, own: cut" in page(numbers)
    numbers["again mutation"] = {"cases": 3, "commits": ["ghi"], "result": {"failures": []}}
    assert "The 3 mutants that nobody noticed were run again at commit ghi: none fails any more" in page(numbers)


def test_every_checkpoint_gets_its_plants_and_every_construction_has_one():
    assert PARTS["plants"].cases == PLANTS * len(jobs())
    assert set(SMALL) == set(CONSTRUCTIONS)


def test_plants_count_where_they_were_planted():
    result = {"plants": {"accepted": 3, "rejected": 10}, "failures": []}
    text = page({"plants": {"cases": 125, "commits": ["abc"], "result": result}})
    assert "| one weight of a checkpoint changed | 5,000 | 13 | 0 | abc |" in text
    assert "4,987 of 5,000 were not run" in text


def test_mutants_that_stay_have_a_reason_whatever_their_line():
    entry = {"mutant": "compiler/gadgets/product.py:40  and  →  or", "outcome": "proved", "reason": "signed/mamba: "}
    text = page({"mutation": {"cases": 1, "commits": ["abc"], "result": {"outcomes": {}, "survivors": [entry]}}})
    assert "| proved | the factors are swapped: a·b = b·a (signed/mamba) |" in text
    entry["mutant"] = "compiler/gadgets/product.py:40  x  →  y"
    text = page({"mutation": {"cases": 1, "commits": ["abc"], "result": {"outcomes": {}, "survivors": [entry]}}})
    assert "not looked into" in text


def test_chunks_are_run_once_and_a_part_of_them_is_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    part = Part("fuzz", 50, 20, lambda start, count: ["m", str(start), str(count)], first=100)
    ran = []

    def run(command: list[str], **options):
        if command[0] == "git":
            return subprocess.CompletedProcess(command, 0, "abc\n", "")
        ran.append(tuple(map(int, command[-2:])))
        broken = ran[-1] == (120, 20) and len(ran) == 3
        return subprocess.CompletedProcess(command, 1, "no json" if broken else json.dumps({"n": ran[-1][1]}), "why")

    monkeypatch.setattr(store.subprocess, "run", run)
    told: list[str] = []
    store.run(part, tmp_path, 0.3, told.append)
    assert ran == [(100, 15)] and ran.pop()
    store.run(part, tmp_path, 1.0, told.append)
    assert ran == [(100, 20), (140, 10), (120, 20)] and "no result" in told[3]
    store.run(part, tmp_path, 1.0, told.append)
    assert ran[3:] == [(120, 20)]
    found = store.collect(tmp_path, ["fuzz", "kills"])
    assert found == {
        "fuzz": {"commits": ["abc+"], "cases": 50, "result": {"n": 50}}
    }  # the part of a chunk is not counted twice


def test_a_chunk_that_was_run_in_smaller_ones_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "fuzz").mkdir()
    for first, count in ((100, 10), (110, 10), (120, 5)):
        content = {"commit": "abc", "cases": count, "seconds": 1, "result": {"n": count}}
        store.keep(tmp_path / "fuzz" / f"{first}-{count}.json", content)
    ran = []

    def run(command: list[str], **options):
        ran.append(command[-2:]) if command[0] != "git" else None
        return subprocess.CompletedProcess(command, 0, json.dumps({"n": 20}), "")

    monkeypatch.setattr(store.subprocess, "run", run)
    store.run(Part("fuzz", 40, 20, lambda *case: ["m", *map(str, case)], first=100), tmp_path, 1.0, print)
    assert ran == [["120", "20"]]
    assert store.collect(tmp_path, ["fuzz"])["fuzz"]["result"] == {"n": 40}


def test_every_part_can_be_run():
    for part in PARTS.values():
        chunks = list(part.chunks(0.001))
        assert chunks and sum(count for _, count in chunks) == max(1, round(part.cases * 0.001))
        assert all(isinstance(word, str) for start, count in chunks for word in part.command(start, count))
