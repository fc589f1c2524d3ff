"""The nearest tests of a file are those that import it, or what imports it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.nearest import ROOT, importers, main, nearest


@pytest.fixture(scope="module")
def imports():
    return importers()


def test_a_file_is_nearest_to_the_tests_that_import_it(tmp_path: Path) -> None:
    texts = {
        "compiler/low.py": "",
        "compiler/middle.py": "def f():\n    from compiler.low import x\n",
        "tests/passes/test_middle.py": "from compiler import middle\n",
        "tests/test_other.py": "import compiler.middle\n",
        "tests/ir/test_low.py": "import os\n",
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = importers(tmp_path)
    names = lambda name: [path.name for path in nearest(tmp_path / name, found)]
    assert names("compiler/middle.py") == ["test_middle.py", "test_other.py"]
    assert names("tests/test_other.py") == ["test_other.py"]
    assert names("compiler/low.py") == ["test_middle.py", "test_other.py"]


@pytest.mark.parametrize("folder", ["compiler", "constructions", "conformance", "verify"])
def test_every_module_has_tests_nearby(folder: str, imports) -> None:
    assert not [path for path in (ROOT / folder).rglob("*.py") if not nearest(path, imports)]


def test_a_name_that_is_no_file_is_refused(capsys: pytest.CaptureFixture) -> None:
    assert main(["compiler/none.py"]) == 2
    assert capsys.readouterr().err.startswith("compiler/none.py is no file; name one of the project")


def test_the_command_prints_paths(capsys: pytest.CaptureFixture) -> None:
    assert main([str(ROOT / "compiler" / "passes" / "schedule.py")]) == 0
    assert "tests/passes/test_schedule.py" in capsys.readouterr().out.splitlines()
