"""`make test`: which cases of a test with many it takes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import spread


def _cases(name: str, count: int) -> list[SimpleNamespace]:
    return [SimpleNamespace(nodeid=f"tests/{name}[{i}]") for i in range(count)]


def _kept(cases, seconds: dict[str, float]) -> list[int]:
    return [cases.index(item) for item in spread.spread(cases, seconds)]


@pytest.mark.parametrize(
    ("count", "seconds", "kept"), [(40, 0.005, 40), (40, 0.05, 5), (3, 0.1, 2), (7, 9.0, 1), (1, 9.0, 1)]
)
def test_as_many_as_take_a_quarter_of_a_second_and_one_at_least(count, seconds, kept) -> None:
    cases = _cases("t.py::test_it", count)
    found = _kept(cases, {"tests/t.py::test_it": seconds})
    assert len(found) == kept and found == sorted(found)
    gaps = [b - a for a, b in zip(found, [*found[1:], found[0] + count])]
    assert max(gaps) - min(gaps) <= 1  # at equal distances, round the end


def test_what_was_never_measured_runs_whole() -> None:
    assert len(_kept(_cases("t.py::test_new", 500), {})) == 500


def test_every_test_has_a_case_and_names_begin_at_different_ones() -> None:
    cases = [case for i in range(60) for case in _cases(f"t.py::test_{i}", 2)]
    found = _kept(cases, {f"tests/t.py::test_{i}": 3.0 for i in range(60)})
    assert [i // 2 for i in found] == list(range(60))
    assert 15 < sum(i % 2 for i in found) < 45


def _report(place: Path, cases: list[tuple[str, object, float]]) -> Path:
    noted = f'<properties><property name="{spread.CPU}" value="{{}}"/></properties>'
    case = '<testcase classname="tests.a.test_b" name="{}[{}]">' + noted + "</testcase>"
    text = "".join(case.format(*of) for of in cases)
    (place / "r.xml").write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")
    return place / "r.xml"


def test_seconds_are_read_from_a_report(tmp_path) -> None:
    report = _report(tmp_path, [("test_c", 0, 0.4), ("test_c", 1, 0.6), ("test_d", "x", 0.1)])
    assert spread.measured(report) == {"tests/a/test_b.py::test_c": 0.5}


def test_a_case_that_takes_far_longer_is_left_out_where_there_are_others(tmp_path) -> None:
    took = [0.1, 0.2, 7.5, 0.3, 0.4]
    seconds = spread.measured(_report(tmp_path, [("test_c", i, each) for i, each in enumerate(took)]))
    assert seconds == {"tests/a/test_b.py::test_c": 0.25, "tests/a/test_b.py::test_c[2]": 7.5}
    assert len(_kept(_cases("a/test_b.py::test_c", 5), seconds)) == 1
    assert all(_kept(_cases(f"{name}::test_c", 3), {f"tests/{name}::test_c[1]": 9.0}) == [0, 2] for name in "abcdef")
    assert _kept(_cases("a", 1), {"tests/a": 9.0, "tests/a[0]": 9.0}) == [0]


def test_what_was_measured_is_there() -> None:
    for name in spread.read():
        file, _, test = spread.test_of(name).partition("::")
        assert f"def {test.rpartition('::')[2]}(" in (spread.FILE.parents[1] / file).read_text("utf-8"), name


def test_cases_inside_a_test_are_taken_in_the_same_way(monkeypatch) -> None:
    monkeypatch.setattr(spread, "_whole", True)
    assert spread.some(range(40), 0.1) == [*range(40)]
    monkeypatch.setattr(spread, "_whole", False)
    assert spread.some(range(40), 0.1) == [0, 8, 16, 24, 32] and spread.some(range(3), 0.1) == [0, 1, 2]
    assert spread.some("abcd", 9.0) == ["a"] and spread.some("abcd", 9.0, least=2) == ["a", "c"]
