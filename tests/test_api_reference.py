"""docs/api.md is what the docstrings say today."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "scripts" / "api_reference.py"


def test_the_reference_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("api_reference", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    page = script.PAGE.read_text("utf-8")
    assert page == script.page(), "run `python scripts/api_reference.py`"
    untold = [entry.splitlines()[0] for entry in page.split("\n###")[1:] if not entry.splitlines()[2]]
    assert not untold, "these have no docstring"
