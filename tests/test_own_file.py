"""What a file of the user's may import from beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compiler.own_file import module_of

FILE = """
from dataclasses import dataclass
import json
import beside
from parts.more import LESS
TOTAL = beside.LETTERS + LESS
"""


def folder(place: Path, letters: str) -> Path:
    (place / "parts").mkdir(parents=True)
    (place / "parts" / "__init__.py").write_text("")
    (place / "parts" / "more.py").write_text("LESS = 'z'\n")
    (place / "beside.py").write_text(f"import dataclasses\nLETTERS = {letters!r}\n")
    (place / "own.py").write_text(FILE)
    return place / "own.py"


def test_modules_beside_two_files_are_each_its_own(tmp_path: Path) -> None:
    before, paths = set(sys.modules), [*sys.path]
    one, two = folder(tmp_path / "one", "ab"), folder(tmp_path / "two", "cd")
    assert [module_of(path).TOTAL for path in (one, two, one)] == ["abz", "cdz", "abz"]
    assert set(sys.modules) - before <= {"own_file_own"} and sys.path == paths


def test_a_link_to_a_file_finds_what_lies_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "link.py").symlink_to(folder(tmp_path / "one", "ab"))
    assert module_of(tmp_path / "link.py").TOTAL == "abz"


@pytest.mark.parametrize("name", ["json", "verify", "dataclasses"])
def test_no_file_stands_in_for_a_library_or_for_ours(name: str, tmp_path: Path) -> None:
    path = folder(tmp_path / "one", "ab")
    (path.parent / f"{name}.py").write_text("raise SystemExit('read')\n")
    path.write_text(f"import {name}\n{FILE}")
    assert module_of(path).TOTAL == "abz"


def test_what_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path, finders = folder(tmp_path / "one", "ab"), [*sys.meta_path]
    (path.parent / "beside.py").write_text("import parts\n1 // 0\n")
    with pytest.raises(ZeroDivisionError):
        module_of(path)
    path.write_text("import no_such_folder\n")
    (path.parent / "no_such_folder").mkdir()
    with pytest.raises(ModuleNotFoundError):
        module_of(path)
    assert sys.meta_path == finders and not {"beside", "parts", "no_such_folder"} & set(sys.modules)
