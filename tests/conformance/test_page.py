"""The pages of conformance: their program runs as printed, and their lists are those of the code."""

from __future__ import annotations

import inspect
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

from conformance.cases import OPERATIONS, cases
from conformance.cases.borders import RARE_SIZES, border_cases
from conformance.cases.chunk_ends import COUNTS, chunk_end_cases
from conformance.cases.factors import CHUNK_SIZES, LENGTHS
from conformance.cases.kinds import all_of
from conformance.cases.told import told_cases
from conformance.faults import unforeseen
from conformance.faults.catalogue import Fault, faults
from conformance.faults.delta import BUGS
from conformance.faults.reported import REPORTED
from conformance.faults.runtime import MODEL_BUGS
from conformance.faults.table import MARK, NOT_FOUND, Row, seen_by_allclose, seen_by_random_operands, text
from conformance.loader import save
from conformance.models.modes import MODE_STAGES
from conformance.runtimes import NAMES
from conformance.sizes import positions_of
from conformance.stages import STAGES
from tests.conformance.mistakes import MISTAKES
from tests.conformance.pages import CASES, FOUND, PAGE, in_one_line
from tests.fresh import fresh

ROOT = Path(__file__).parents[2]
AGAIN = "run `python -m conformance.faults.table docs/conformance_found.md`"
SCAN = "from compiler.runtime.selective_scan import _chunked, selective_scan\n"
BROKEN = (
    SCAN + "right = selective_scan\ndef selective_scan(u, delta, A, *m, **k): return right(u, delta, 2 * A, *m, **k)\n"
)


@pytest.mark.parametrize(
    ("kernels", "code", "said"), [(SCAN, 0, "passed"), (BROKEN.replace("2 * A", "0 * A"), 1, "exp(ΔA) = 0")]
)
def test_the_ten_lines(kernels: str, code: int, said: str, tmp_path: Path) -> None:
    program = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    assert len([line for line in program.splitlines() if line.strip()]) <= 10
    (tmp_path / "vectors").mkdir()
    save(cases("selective_scan"), tmp_path / "vectors" / "selective_scan.safetensors")
    (tmp_path / "test_mine.py").write_text(program)
    (tmp_path / "mykernels.py").write_text(kernels)
    done = _pytest(tmp_path)
    assert done.returncode == code and said in done.stdout, done.stdout


def _pytest(place: Path) -> subprocess.CompletedProcess[str]:
    command = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_mine.py")
    return fresh(*command, cwd=place)


def rows_of_the_page() -> list[Row]:
    """The table of injected bugs, read back."""
    seen = {"yes": True, "–": False}
    line = r"^\| (\S+) \| (.*?) \| (.*?) \| (yes|–) \| (yes|–) / (yes|–) \| (yes|–) / (yes|–) \|$"
    return [
        Row(op, bug, (found := stage.removeprefix(NOT_FOUND)), found, *_paired([seen[mark] for mark in marks]))
        for op, bug, stage, *marks in re.findall(line, FOUND, re.MULTILINE)
    ]


def _paired(marks: list[bool]) -> tuple[bool, tuple[bool, bool], tuple[bool, bool]]:
    random, *four = marks
    return random, (four[0], four[1]), (four[2], four[3])


ROWS = rows_of_the_page()


def patterns(rows: list[Row]) -> list[Row]:
    """The last row of each function with each pattern of marks."""
    return list({(row.op, row.random, row.forward, row.modes): row for row in rows}.values())


@pytest.mark.quick
def test_its_table_has_every_bug_at_its_stage() -> None:
    expected = [(f.op, f.bug, f.stage) for f in faults()] + [("model", bug, mode) for bug, mode in MODEL_BUGS.items()]
    assert [(row.op, row.bug, row.caught) for row in ROWS] == expected, AGAIN


def test_its_totals_are_those_of_its_rows() -> None:
    """The rows read back and written again are the table, sums and counts of bugs included."""
    assert FOUND.partition(MARK)[2].strip() == text(ROWS).strip(), AGAIN


def test_a_kernel_engineer_reads_it_in_ten_minutes() -> None:
    """Numbers and words before the results of runs, but those of programs."""
    prose = re.sub(r"```.*?```", "", PAGE.partition("\n## What it found\n")[0], flags=re.DOTALL)
    assert 1000 < sum(any(map(str.isalnum, word)) for word in prose.split()) <= 2500


def test_what_allclose_misses_is_told_as_the_rows_have_it() -> None:
    """The shares of the first paragraph."""
    forward = sum(not row.forward[0] for row in ROWS) / len(ROWS)
    modes = sum(not row.modes[1] for row in ROWS) / len(ROWS)
    told = f"one full forward at 1e-2 misses {forward:.0%}, and five modes at 1e-3 still miss {modes:.0%}."
    assert told.replace("%", " %") in in_one_line(PAGE)


@pytest.mark.parametrize("row", patterns(ROWS), ids=lambda row: f"{row.op}: {row.bug}")
def test_marks_are_those_that_are_found_again(row: Row) -> None:
    """A sample, in which every function has every pattern of marks that it has in the table."""
    random = row.op != "model" and seen_by_random_operands(Fault(row.op, row.bug, row.expected))
    assert (random, *seen_by_allclose(row.op, row.bug)) == (row.random, row.forward, row.modes), AGAIN


def test_reported_bugs_stand_there_with_their_reports() -> None:
    """And what is not found is named, with a reason."""
    told = re.findall(r"^\| (\S+) \| (.*?) \| (\S+#\d+) \| (.*?) \|$", FOUND, re.MULTILINE)
    reported = [
        (op, bug, found.source, found.stage or NOT_FOUND) for (op, bug), found in REPORTED.items() if found.source
    ]
    assert told == reported and len(told) == 20
    not_found = [bug for _, bug, _, stage in reported if stage == NOT_FOUND]
    assert not_found == re.findall(r"^- \*(.*?)\*: no case ", FOUND, re.MULTILINE)


def test_bugs_by_one_who_had_not_seen_the_cases_stand_in_the_table() -> None:
    """As many as the page says were not found at first."""
    kept = [
        name
        for name, each in inspect.getmembers(unforeseen, inspect.isfunction)
        if each.__module__ == unforeseen.__name__
    ]
    known = {found.twist.__name__ for found in REPORTED.values()}
    authors = {1: (30, 18, 30), 2: (20, 14, 18), 3: (10, 9, 10), 5: (34, 25, 34)}
    told = re.findall(r"^\| (\d) \| .*? \| (\d+) \| (\d+) \| (\d+) \|$", FOUND, re.MULTILINE)
    assert {int(author): tuple(map(int, numbers)) for author, *numbers in told} == authors
    assert {*kept} <= known and len(kept) == (30 - 18) + (17 - 14) + (10 - 9) + (33 - 25 - 2) + 11 + 9
    assert "Eleven of these faults stand below" in in_one_line(FOUND)
    of_sizes = [bug for (_, bug), found in REPORTED.items() if found.twist.__name__ == "at_some_sizes"]
    assert "Sixteen of the kind stand below" in in_one_line(FOUND)
    assert len(of_sizes) + sum("keys" in bug for bug in [*BUGS][-3:]) == 16


def test_which_operations_have_no_cases_of_a_kind() -> None:
    """The tables have the numbers of the others; and as many mistakes are planted as the page says."""
    assert not border_cases("conv") + border_cases("norm") and not told_cases("norm")
    assert not [op for op in OPERATIONS if bool(chunk_end_cases(op)) != (op in ("ssd", "delta_rule"))]
    assert f"has {sum(map(len, MISTAKES.values()))} mistakes" in CASES


def listed(numbers: Iterable[int]) -> str:
    """1, 2 and 3."""
    *first, last = map(str, numbers)
    return " and ".join(filter(None, (", ".join(first), last)))


def test_where_other_epsilons_stand_is_told() -> None:
    other = [case for case in all_of("norm") if case.options["eps"] != 1e-5]
    assert {(case.inputs["x"].dtype, len(case.inputs["x"]), case.inputs["x"].shape[-1]) for case in other} == {
        (torch.float32, 1, 8)
    }
    assert {case.options["group_size"] for case in other} == {8} and not any("views" in case.options for case in other)
    assert "stand in float32 alone, with dense operands of one row, one group and 8 channels" in in_one_line(CASES)


def test_which_chunks_are_told() -> None:
    page = in_one_line(CASES)
    assert f"usual size of a chunk ({', '.join(map(str, CHUNK_SIZES))})" in page
    assert f"those that few kernels take ({listed(RARE_SIZES)}, of ssd)" in page
    assert COUNTS == {"ssd": (1, 2, 4), "delta_rule": (1, 2)}
    assert "its first chunk, its second and, of ssd, its fourth" in page


def test_what_few_cases_have() -> None:
    """Of a norm positions and channels together; and more positions than the crossing has."""
    page = in_one_line(CASES)
    long = [case for case in all_of("norm") if positions_of(case) > 128]
    assert {case.inputs["x"].shape[-1] for case in long} == {8, 16, 3072, 4096}
    assert "beyond 128 positions with other channels than 8 or 16, or 3,072 and more" in page
    beyond = {op: [case for case in all_of(op) if positions_of(case) > max(LENGTHS)] for op in OPERATIONS}
    basic = {op: {case.name for case in cases(op)} for op in OPERATIONS}
    assert all(case.name in basic[op] for op, some in beyond.items() for case in some)
    assert f"Beyond {max(LENGTHS):,} positions there are few cases: see *basic*" in page
    assert max(map(len, beyond.values())) <= 3


def test_what_exact_results_see_others_do_not_always() -> None:
    """What the page says of the table in words."""
    forward = sum(row.forward[0] for row in ROWS) / len(ROWS)
    modes = sum(row.modes[1] for row in ROWS) / len(ROWS)
    assert 4 / 5 <= 1 - forward < 5 / 6 and 0.6 <= 1 - modes < 2 / 3


def test_it_tells_every_stage_mode_and_runtime() -> None:
    for stage, asks in STAGES.items():
        assert f"| {stage} | {asks} |" in CASES
    for mode, asks in MODE_STAGES.items():
        assert f"| {mode} | {asks} |" in PAGE
    for name in NAMES:
        assert f"`{name}`" in PAGE
