"""`make quick`: which tests it takes, and that they reach every module of the project."""

from __future__ import annotations

from pathlib import Path

from tests.nearest import importers, nearest
from tests.quick import PACKAGES, ROOT, chosen, untouched

BY_NAME = "__main__.py"  # which is run, and not imported


class Item:
    def __init__(self, file: str, name: str, quick: bool = False):
        self.path, self.name, self.quick, self.nodeid = Path(file), name, quick, f"{file}::{name}"

    def get_closest_marker(self, name: str) -> object | None:
        return self if name == "quick" and self.quick else None


def test_of_each_file_the_first_test_or_the_one_that_is_marked():
    items = [Item("a", "first"), Item("a", "other"), Item("b", "slow"), Item("b", "quick", True), Item("b", "2", True)]
    assert [item.name for item in chosen(items, {})] == ["first", "quick"]
    assert [item.name for item in chosen(items, {"a::first": 0.6, "b::quick": 3.0})] == ["other", "2"]
    assert [item.name for item in chosen(items, {"a::first": 0.4, "a::other": 9.0})] == ["first", "quick"]


def test_a_module_of_which_no_function_ran_is_named():
    ran = ROOT / "compiler" / "driver.py"
    found = untouched({ran})
    assert "compiler/driver.py" not in found and "compiler/pipeline.py" in found


def test_every_module_is_near_a_file_that_has_a_quick_test():
    """Imported by it, also through others; or loaded by its name, beside files that are imported."""
    imports = importers()
    modules = (path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py")))
    apart = [path for path in modules if path.name != BY_NAME and "def " in path.read_text("utf-8")]
    assert len(apart) > 400 and [str(path.relative_to(ROOT)) for path in apart if not nearest(path, imports)] == []
