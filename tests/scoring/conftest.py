"""What several files of these tests read and none changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler import compile
from tests.scoring.problems import circuit, run


@pytest.fixture(scope="session")
def place(tmp_path_factory) -> Path:
    """The name that stood last, of three: plain and disguised."""
    place = tmp_path_factory.mktemp("scores")
    compile(circuit("last-name"), "mamba").save(place / "plain")
    assert run("disguise", place / "plain", "--out", place / "hidden", "--seed", 1, "--samples", 10) == 0
    return place
