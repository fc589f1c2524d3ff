"""`make test`: which cases of a test with many it takes."""

from __future__ import annotations

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


def test_seconds_are_read_from_a_report(tmp_path) -> None:
    noted = f'<properties><property name="{spread.CPU}" value="{{}}"/></properties>'
    case = '<testcase classname="tests.a.test_b" name="{}[{}]">' + noted + "</testcase>"
    cases = [case.format(*of) for of in (("test_c", 0, 0.4), ("test_c", 1, 0.6), ("test_d", "x", 0.1))]
    (tmp_path / "r.xml").write_text(f"<testsuites><testsuite>{''.join(cases)}</testsuite></testsuites>")
    assert spread.measured(tmp_path / "r.xml") == {"tests/a/test_b.py::test_c": 0.5}


def test_what_was_measured_is_there() -> None:
    for name in spread.read():
        file, _, test = name.partition("::")
        assert f"def {test.rpartition('::')[2]}(" in (spread.FILE.parents[1] / file).read_text("utf-8"), name


def test_cases_inside_a_test_are_taken_in_the_same_way(monkeypatch) -> None:
    monkeypatch.setattr(spread, "_whole", True)
    assert spread.some(range(40), 0.1) == [*range(40)]
    monkeypatch.setattr(spread, "_whole", False)
    assert spread.some(range(40), 0.1) == [0, 8, 16, 24, 32] and spread.some(range(3), 0.1) == [0, 1, 2]
    assert spread.some("abcd", 9.0) == ["a"] and spread.some("abcd", 9.0, least=2) == ["a", "c"]
