"""`make quick`: one test of each file, marked `quick` or else soon done, and what of the project they left out.

    python -m pytest --quick             the tests
    python -m pytest --quick --touched   and the modules of which no function ran, in twice the time

A module counts as touched when one of its functions runs in a test; of a module without functions, when it is imported.
So no list is kept: a new file of tests has its test here, and a new module that no quick test reaches is named.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

import pytest

from tests.spread import test_of

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("compiler", "verify", "constructions", "conformance")


class Item(Protocol):
    """What is read of a test."""

    path: Path
    nodeid: str

    def get_closest_marker(self, name: str) -> object | None: ...


def chosen(items: Iterable[Any], seconds: Mapping[str, float]) -> list[Any]:
    """Of each file the test that is marked `quick`, or else the first of those that take least of it, by whole halves
    of a second, in the order of the files. seconds: what a case takes of a test that takes long (tests/seconds.json).
    """
    found: dict[Path, Any] = {}
    took = lambda node: seconds.get(node, seconds.get(test_of(node), 0))
    rank = lambda item: (not _marked(item), took(item.nodeid) // 0.5)
    for item in items:
        if item.path not in found or rank(item) < rank(found[item.path]):
            found[item.path] = item
    return list(found.values())


def _marked(item: Item) -> bool:
    return item.get_closest_marker("quick") is not None


class Touched:
    """Files of the project of which a function ran in this process, while it was told of every call."""

    def __init__(self) -> None:
        self.seen: set[CodeType] = set()

    def _called(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            self.seen.add(frame.f_code)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Any:
        threading.setprofile(self._called)
        sys.setprofile(self._called)
        try:
            return (yield)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        left = untouched({Path(code.co_filename) for code in self.seen})
        terminalreporter.section(f"modules of the project of which no function ran: {len(left)}")
        for name in left:
            terminalreporter.write_line(name)


def untouched(ran: set[Path]) -> list[str]:
    """The files of the project that are not among those that ran, without the ones that hold no function."""
    files = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    return [str(path.relative_to(ROOT)) for path in files if path not in ran and "def " in path.read_text("utf-8")]
