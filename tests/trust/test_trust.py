"""docs/trust.md says what its numbers say, and they are added as they were kept."""

from __future__ import annotations

import hashlib
import json
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks import mutation_guard
from benchmarks.mutation import mutants
from benchmarks.named_mutants import NAMED, mutant
from compiler import CompileError
from constructions.registry import CONSTRUCTIONS
from constructions.shards.shard import Shard
from constructions.shards.table import Table
from tests.trust import process, store
from tests.trust.__main__ import NUMBERS, PAGE
from tests.trust.page import page
from tests.trust.parts import PARTS, Part
from tests.trust.process import ROOT
from tests.trust.ranges import merged, missing
from tests.trust.reasons import REASONS_OF_MUTANTS
from tests.trust.refusals import TODAY
from tests.verify.checker.evidence import FAULTS, SMALL, jobs, title

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


def test_what_was_run_again_is_told_and_what_was_not():
    numbers = {
        name: {"cases": 9, "commits": ["abc"], "ranges": [[0, 9]], "result": RESULT | {"failures": failures}}
        for name, failures in {
            "fuzz": [FAILURE, FAILURE],
            "hostile": ["case 3, own: cut", "case 4, own: cut"],
            "oversized": ["case 5, own: web 7"],
            "mutation": ["a.py:1  +  →  -", "a.py:2  +  →  -"],
        }.items()
    }
    numbers["oversized"]["result"] |= {"kinds": {}, "most": {"seconds": 1.5, "mebibytes": 300}}
    numbers["mutation"]["result"] |= {"outcomes": {}, "survivors": []}
    assert store.failed(numbers) == {
        "again": ["7"], "again hostile": ["3", "4"], "again mutation": numbers["mutation"]["result"]["failures"],
        "again plants": [], "again oversized": ["5"],
        "again refusals": ["3"], "again refusals in every form": [],
    }  # fmt: skip
    text = page(numbers)
    assert "- 1 failing programs were not run again." in text
    assert "- 2 damaged checkpoints that failed were not run again." in text
    numbers["again"] = {"cases": 1, "commits": ["def"], "result": RESULT | {"failures": [], "ran": ["7"]}}
    text = page(numbers)
    assert "The 1 failing programs were run again at commit def: none fails any more" in text
    assert "failing programs were not run again" not in text
    still = {"failures": ["case 3, own: cut"], "ran": ["3", "4"]}
    numbers["again hostile"] = {"cases": 2, "commits": ["def"], "result": still}
    assert "that failed were run again at commit def: 1 still fail: case 3, own: cut" in page(numbers)
    gone = {"failures": [], "ran": ["a.py:2  +  →  -"], "gone": ["a.py:2  +  →  -"]}
    numbers["again mutation"] = {"cases": 1, "commits": ["ghi"], "result": gone}
    text = page(numbers)
    assert "The 1 mutants that nobody noticed were run again at commit ghi: none fails any more" in text
    assert "- Of these 1 are no longer in the source: a.py:2" in text
    assert "- 1 mutants that nobody noticed were not run again." in text


def test_what_is_said_today_of_an_example_of_a_refusal():
    """The same, another reason, or nothing any more: each target that refused it, and the language before them."""
    old = [("mamba: too long", 3), ("mamba2: too long", 5), ("mamba2: real N", 4), (": it holds N", 6), (": no", 7)]
    reasons = [{"reason": reason, "count": 9 - seed, "seed": seed} for reason, seed in old]
    numbers = {"sizes": {"cases": 9, "commits": ["abc"], "result": RESULT | {"reasons": reasons}}}
    assert store.failed(numbers)["again refusals"] == ["3", "4", "6", "7"] and "today |\n| 10 | seed 3" not in page(
        numbers
    )
    said = {"3": ["mamba2: too long"], "4": ["mamba: wide"], "6": [": it holds '…' → '…', N"], "7": [": '…' → '…', no"]}
    numbers["again refusals"] = {"cases": 4, "commits": ["def"], "result": {"failures": [FAILURE], "refused": said}}
    text = page(numbers)
    assert (
        "seed of one program each, which was run again at commit def:" in text and "- run again, seed 7: wrong" in text
    )
    assert "| 10 | seed 3 | mamba, mamba2 | too long | the same |" in text
    assert "| 5 | seed 4 | mamba2 | real N | compiled |" in text
    assert "| 3 | seed 6 | the language | it holds N | the same |" in text
    assert "| 2 | seed 7 | the language | no | the same |" in text
    said["4"], said["6"], said["7"] = ["mamba2: other", "mamba2: more"], [], ["mamba: wide", "mamba2: wide"]
    text = page(numbers)
    assert "| real N | mamba2: other (and 1 more) |" in text and "| it holds N | compiled |" in text
    assert "| no | mamba, mamba2: wide |" in text


def test_the_examples_of_the_page_are_of_today():
    """A reason that no compiler gives any more stands beside what it says now."""
    record = json.loads(NUMBERS.read_text("utf-8"))
    for name in TODAY:
        assert record[name]["result"]["ran"] == store.failed(record)[name]
        assert record[name]["result"]["refused"].keys() == {*store.failed(record)[name]}


def test_no_program_that_failed_fails_any_more_as_it_was_kept():
    """Whatever program its number names today: it is compiled, or refused."""
    for found in json.loads(NUMBERS.read_text("utf-8")).values():
        for failure in found["result"].get("failures", ()):
            if isinstance(failure, dict):
                names: dict = {}
                with suppress(CompileError):  # a comparison that fails, and any other error, is none
                    exec(failure["program"], names)
                assert "circuit" in names


def test_every_checkpoint_gets_its_plants_and_every_construction_has_one():
    assert PARTS["plants"].cases == FAULTS * len(jobs())
    assert set(SMALL) == set(CONSTRUCTIONS)


def test_plants_keep_their_numbers():
    """What docs/trust.json says of a number is of this checkpoint: a new one comes after the 549 that were numbered."""
    names = "\n".join(title(job) for job in jobs()[:549])
    assert hashlib.sha256(names.encode()).hexdigest()[:16] == "7b162d1c19be3ecf"


def test_plants_count_where_they_were_planted():
    result = {"plants": {"accepted": 3, "rejected": 10, "no score changes": 40}, "failures": []}
    text = page({"plants": {"cases": 125, "commits": ["abc"], "result": result}})
    assert "| one weight of a checkpoint changed | 5,000 | 13 | 0 | abc |" in text
    assert "4,987 of 5,000 were not run" in text


def test_mutants_that_stay_have_a_reason_whatever_their_line():
    entry = {
        "mutant": "compiler/gadgets/product.py:40  and  →  or",
        "outcome": "proved", "reason": "signed/mamba: ", "commit": "abc",
    }  # fmt: skip
    text = page({"mutation": {"cases": 1, "commits": ["abc"], "result": {"outcomes": {}, "survivors": [entry]}}})
    assert "| abc | proved | the factors are swapped: a·b = b·a (signed/mamba) |" in text
    found = {"outcomes": {}, "survivors": [entry | {"outcome": "HOLE"}]}
    assert "| abc | HOLE | a defect (signed/mamba) |" in page(
        {"mutation": {"cases": 1, "commits": [], "result": found}}
    )
    entry["mutant"] = "compiler/gadgets/product.py:40  x  →  y"
    text = page({"mutation": {"cases": 1, "commits": ["abc"], "result": {"outcomes": {}, "survivors": [entry]}}})
    assert "not looked into" in text


def test_every_mutant_that_stays_was_looked_into():
    assert "not looked into" not in PAGE.read_text("utf-8")


def test_reasons_are_of_mutants_of_today():
    for file, change in REASONS_OF_MUTANTS:
        assert change in {f"{m.before}  →  {m.after}" for m in mutants([ROOT / "compiler" / file])}, (
            file,
            change,
        )


def test_named_mutants_are_of_today():
    for file, before, after, tests in NAMED:
        assert mutant(file, before, after).applied() != (ROOT / file).read_bytes()
        assert all((ROOT / test).exists() for test in tests)


def test_a_name_that_is_no_mutant_is_told(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mutation_guard, "run", lambda chosen, tell: [])
    monkeypatch.setattr(mutation_guard.sys, "argv", ["guard", "--json", "--named", "compiler/gone.py:1  +  →  -"])
    assert mutation_guard.main() == 0
    assert json.loads(capsys.readouterr().out)["gone"] == ["compiler/gone.py:1  +  →  -"]


Ran = list[tuple[int, int]]


def opened(folder: Path) -> Table:
    return store.opened(folder / "trust.parquet")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """(first case, how many) of each process, none of which is started; its result counts its cases."""
    ran: Ran = []

    def run(command: list[str], **options):
        if command[0] == "git":
            return subprocess.CompletedProcess(command, 0, "abc\n", "")
        ran.append(tuple(map(int, command[-2:])))
        broken = ran[-1] == (120, 20) and ran.count((120, 20)) == 1
        return subprocess.CompletedProcess(command, 1, "no json" if broken else json.dumps({"n": ran[-1][1]}), "why")

    monkeypatch.setattr(process.subprocess, "run", run)
    return ran


PART = Part("fuzz", 50, 20, lambda start, count: ["m", str(start), str(count)], first=100)


def test_chunks_are_run_once_and_a_part_of_them_is_gone_on_with(tmp_path: Path, ran: Ran):
    told: list[str] = []
    store.run([PART], [opened(tmp_path)], {}, 0.3, told.append)
    assert ran == [(100, 15)] and ran.pop()
    store.run([PART], [opened(tmp_path)], {}, 1.0, told.append)
    assert ran == [(115, 5), (140, 10), (120, 20)] and "no result" in told[3]
    store.run([PART], [opened(tmp_path)], {}, 1.0, told.append)
    assert ran[3:] == [(120, 20)]
    found = store.collect([opened(tmp_path)], ["fuzz", "kills"], {})
    assert found == {"fuzz": {"commits": ["abc+"], "cases": 50, "ranges": [[100, 150]], "result": {"n": 50}}}


def test_chunks_are_shared_out_and_kept_as_they_come(tmp_path: Path):
    """A part of `tests.trust` in two processes of its own: the same chunks as one after the other give."""
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    part = Part("fuzz", 4, 2, lambda start, count: ["tests.trust.counting", str(start), str(count)], first=100)
    for place, workers in (("alone", None), ("shared", 2)):
        store.run([part], [opened(tmp_path / place)], {}, 1.0, print, workers=workers)
    alone, shared = (store.collect([opened(tmp_path / place)], ["fuzz"], {}) for place in ("alone", "shared"))
    assert shared == alone and shared["fuzz"]["result"] == {"sum": 100 + 101 + 102 + 103}


def test_what_the_record_has_is_neither_run_nor_counted_again(tmp_path: Path, ran: Ran):
    recorded = {"commits": ["old"], "cases": 17, "ranges": [[100, 115], [120, 122]], "result": {"n": 17}}
    store.run([PART], [opened(tmp_path)], {"fuzz": recorded}, 1.0, print)
    assert ran == [(115, 5), (140, 10), (122, 18)]
    found = store.collect([opened(tmp_path)], ["fuzz"], {"fuzz": recorded})
    whole = {"fuzz": {"commits": ["abc+", "old"], "cases": 50, "ranges": [[100, 150]], "result": {"n": 50}}}
    assert found == whole == store.collect([opened(tmp_path)], ["fuzz"], whole)
    store.run([PART], [opened(tmp_path / "fresh")], found, 1.0, print)
    assert len(ran) == 3


def test_chunks_of_several_stores_are_added_and_none_twice(tmp_path: Path, ran: Ran):
    """Chunks of any size: what another one has a part of is left out, and run where it is missing."""
    stores = [opened(tmp_path / "a"), opened(tmp_path / "b")]
    for place, first, count in ((0, 100, 10), (1, 110, 10), (1, 100, 10), (1, 100, 5), (0, 115, 20)):
        stores[place].add(Shard("fuzz", first, count, ""), {"commit": "abc", "result": {"n": count}})
    found = store.collect(stores, ["fuzz"], {})["fuzz"]
    assert found["ranges"] == [[100, 120]] and found["result"] == {"n": 20}
    store.run([PART], stores, {}, 0.5, print)
    assert ran == [(120, 5)] and (120, 5) in stores[0].places("fuzz")


def test_the_most_of_all_chunks_counts():
    result = lambda seconds: {"cases": 1, "kinds": {"web": {"refused": 1}}, "most": {"seconds": seconds}}
    found = store.added([result(2.5), result(4.0), result(1.0)])
    assert found == {"cases": 3, "kinds": {"web": {"refused": 3}}, "most": {"seconds": 4.0}}


def test_ranges_are_merged_and_what_they_lack_is_found():
    assert merged([(5, 7), [0, 2], (2, 3), (6, 6)]) == [(0, 3), (5, 7)]
    assert missing((0, 10), [(5, 7), (0, 3)]) == [(3, 5), (7, 10)]
    assert missing((2, 6), [(0, 3), (4, 9)]) == [(3, 4)] and missing((4, 5), [(0, 9)]) == []
    assert missing((4, 5), [(0, 4), (5, 9)]) == missing((4, 5), []) == [(4, 5)]


def test_equal_reasons_become_one_and_the_page_stays_the_same(tmp_path: Path):
    table = opened(tmp_path)
    for first, seed in ((100, 103), (200, 201)):
        reasons = [{"reason": "mamba: too long", "count": 2, "seed": seed}]
        reasons += [{"reason": f"mamba: reason {first}", "count": 3, "seed": first}]
        result = RESULT | {"start": first, "reasons": reasons}
        table.add(Shard("fuzz", first, 2, ""), {"commit": "abc", "result": result})
    found = store.collect([table], ["fuzz"], {})
    assert found["fuzz"]["result"].keys() == RESULT.keys()
    assert found["fuzz"]["result"]["reasons"] == [
        {"reason": "mamba: too long", "count": 4, "seed": 103},
        {"reason": "mamba: reason 100", "count": 3, "seed": 100},
        {"reason": "mamba: reason 200", "count": 3, "seed": 200},
    ]
    assert "| 4 | seed 103 | mamba | too long |" in page(found)


def test_what_is_not_proved_and_what_stays_is_told_with_its_commit(tmp_path: Path):
    table = opened(tmp_path)
    survivor = {"mutant": "compiler/a.py:1  x  →  y", "outcome": "sampled", "reason": "it: "}
    for name, result in (
        ("plants", {"failures": [], "not proved": {"lis": "too large"}}),
        ("mutation", {"failures": [], "outcomes": {"sampled": 1}, "survivors": [survivor]}),
    ):
        table.add(Shard(name, 0, 25, ""), {"commit": "abc", "result": result})
    text = page(store.collect([table], PARTS, {}))
    assert "- not proved at abc: `lis`: too large" in text
    assert "| `compiler/a.py:1  x  →  y` | abc | sampled |" in text


def test_failures_of_the_record_are_run_again_and_the_last_word_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A fresh machine has no store: what failed elsewhere is run by the numbers of docs/trust.json."""
    commands, left = [], [[FAILURE], []]

    def run(command: list[str], **options):
        if command[0] == "git":
            return subprocess.CompletedProcess(command, 0, "abc\n" if "rev-parse" in command else "", "")
        commands.append(command[2:])
        answer = RESULT | {"start": 0, "failures": left[0]}
        return subprocess.CompletedProcess(command, 0, json.dumps(answer), "")

    monkeypatch.setattr(process.subprocess, "run", run)
    record = {"fuzz": {"commits": ["old"], "cases": 2, "ranges": [[0, 2]], "result": RESULT}}
    for told in ("1 still fail: seed 7", "none fails any more"):
        found = store.collect([opened(tmp_path)], PARTS, record)
        store.again([opened(tmp_path)], found, print, ["again"])
        record = found | store.collect_again([opened(tmp_path)], record)
        assert told in page(record)
        left.pop(0)
    assert commands[0] == commands[1] and len(commands) == 2
    assert " ".join(commands[0]) == "tests.fuzz --json --targets mamba --dtypes float32 --forms bare --seeds 7"
    assert "start" not in record["again"]["result"]
    assert store.collect_again([opened(tmp_path / "fresh")], record) == {"again": record["again"]}


def test_what_was_not_proved_is_checked_again_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of two checkpoints that an earlier checker did not prove, today's proves one."""
    commands = []
    names = ["lis-0-mamba-float16", "recall-0-mamba-float32"]
    answer = {"failures": [], "not proved": {names[0]: "a new reason"}, "plants": {"rejected": 1300}}
    answer["checkpoints"] = {"not proved": 1, "proved": 1}

    def child(command: list[str]) -> subprocess.CompletedProcess:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, json.dumps(answer), "")

    monkeypatch.setattr(store, "finished", child)
    unproved = {name: {"reason": "an old reason", "commit": "old"} for name in names}
    result = {"failures": [], "not proved": unproved}
    record = {"plants": {"commits": ["old"], "cases": 50, "ranges": [[0, 50]], "result": result}}
    assert page(record).count("not proved at old") == 2
    store.again([opened(tmp_path)], record, print)
    assert commands == [["tests.verify.checker.evidence", "--json", "--named", *names]]
    text = page(record | store.collect_again([opened(tmp_path)], record))
    assert "an old reason" not in text and f"`{names[1]}`" not in text
    assert f": `{names[0]}`: a new reason" in text
    assert "The 2 checkpoints that were not proved were checked again" in text
    assert ": 1 are proved now, and 1,300 plants of theirs that change a score were rejected" in text
    answer["checkpoints"] = {"not proved": 1, "refused by the compiler": 1}
    store.again([opened(tmp_path)], record, print)
    text = page(record | store.collect_again([opened(tmp_path)], record))
    assert ": 0 are proved now, the compiler refuses 1 by now, and 1,300 plants" in text


def test_every_name_is_that_of_one_checkpoint():
    names = [title(job) for job in jobs()]
    assert len(set(names)) == len(names)
    record = json.loads(NUMBERS.read_text("utf-8"))
    assert set(store.failed(record)[store.UNPROVED]) <= set(names)


def test_the_record_says_which_cases_it_counts():
    for name, found in json.loads(NUMBERS.read_text("utf-8")).items():
        if name in PARTS:
            assert found["cases"] == sum(last - first for first, last in found["ranges"])
            part = PARTS[name]
            assert [list(cases) for cases in merged(found["ranges"])] == found["ranges"]
            assert part.first <= found["ranges"][0][0] and found["ranges"][-1][1] <= part.first + part.cases


def test_every_part_can_be_run():
    for part in PARTS.values():
        chunks = list(part.chunks(0.001))
        assert chunks and sum(count for _, count in chunks) == part.unit * max(1, round(part.cases / part.unit / 1000))
        assert all(count % part.unit == 0 for share in (0.01, 1.0) for _, count in part.chunks(share))
        assert all(isinstance(word, str) for start, count in chunks for word in part.command(start, count))
