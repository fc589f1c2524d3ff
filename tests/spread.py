"""`make test`: of a test with many cases, as many as take a quarter of a second, spread over all of them.

    python -m pytest --spread                                      as `make test` does
    python -m pytest -n 2 --junitxml F && python -m tests.spread F      measure all anew, into tests/seconds.json

tests/seconds.json has the processor seconds of one case, of tests that take longer than that in all. A test that is not
there runs whole. A case that takes far longer than the others of its test has a line of its own: it is left to `make
whole`. Which cases run is decided by names and by that file alone: the same on every machine.

A test that goes through many cases itself, because all of them share what is built or count together, takes `some` of
them in the same way.
"""

from __future__ import annotations

import json
import resource
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree
from zlib import crc32

import pytest

from tests import fresh

FILE = Path(__file__).with_name("seconds.json")
ALLOWED = 0.25  # processor seconds of all cases of one test that run
INSIDE = 0.5  # of those that one test goes through: what it counts over them needs a few more
FAR = 4  # times what one of the quicker cases takes, and `make test` takes others
CPU = "processor seconds"

Case = TypeVar("Case")
_whole = True


def begin(whole: bool) -> None:
    """Whether `some` are all, as in `make whole`, or as many as are allowed. Before the tests are read."""
    global _whole
    _whole = whole


def some(cases: Iterable[Case], seconds: float, least: int = 1) -> Sequence[Case]:
    """Of the cases inside a test those that `make test` takes: as many as take half a second at `seconds` of a
    processor each, and `least` where fewer would show nothing, at equal distances. `make whole` takes all.
    """
    cases = list(cases)
    wanted = max(least, int(INSIDE / seconds))
    return cases if _whole or wanted >= len(cases) else [cases[i * len(cases) // wanted] for i in range(wanted)]


def read() -> dict[str, float]:
    """The seconds of one case by test: file::name, or file::class::name. Of a case that takes far longer, with its
    [parameters].
    """
    return json.loads(FILE.read_text("utf-8"))


def test_of(node: str) -> str:
    """The test of a case."""
    return node.partition("[")[0]


def spread(items: Iterable[Any], seconds: Mapping[str, float]) -> list[Any]:
    """The cases that run, in the order in which they came: of each test one at least."""
    items, cases = list(items), defaultdict(list)
    for item in items:
        cases[test_of(item.nodeid)].append(item)
    usual = {name: [item for item in each if item.nodeid not in seconds] or each for name, each in cases.items()}
    kept = {id(item) for name, each in usual.items() for item in _some(name, each, seconds.get(name, 0))}
    return [item for item in items if id(item) in kept]


def _some(name: str, cases: list[Any], seconds: float) -> list[Any]:
    """So many cases at equal distances; the name says where they begin, so that not all tests leave out the same."""
    count = len(cases)
    if count * seconds <= ALLOWED:
        return cases
    wanted = max(1, int(ALLOWED / seconds))
    first = crc32(name.encode()) % count
    return [cases[(first + i * count // wanted) % count] for i in range(wanted)]


class Measured:
    """Notes with every case the processor seconds that it took, those of processes that it started among them."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: Any) -> Any:
        before = _spent()
        try:
            return (yield)
        finally:
            item.user_properties.append((CPU, f"{_spent() - before:.3f}"))


def _spent() -> float:
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) + fresh.spent()


def measured(report: Path) -> dict[str, float]:
    """The seconds of one case, of the tests of a JUnit file that take more than is allowed, in order."""
    cases: dict[str, dict[str, float]] = defaultdict(dict)
    for case in ElementTree.parse(report).iter("testcase"):
        spent = [float(found.get("value", 0)) for found in case.iter("property") if found.get("name") == CPU]
        if spent and case.find("skipped") is None:
            folder = "/".join(str(case.get("classname")).split("."))
            node = f"{folder}.py::{case.get('name')}"
            cases[test_of(node)][node] = sum(spent)
    found: dict[str, float] = {}
    for name, each in sorted(cases.items()):
        if sum(each.values()) > ALLOWED:
            far = max(2 * ALLOWED, FAR * sorted(each.values())[len(each) // 4])
            usual = [took for took in each.values() if took <= far]
            found[name] = round(sum(usual) / len(usual), 3)
            found |= {node: round(took, 3) for node, took in each.items() if took > far}
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(measured(Path(sys.argv[1])), indent=0) + "\n", "utf-8")
