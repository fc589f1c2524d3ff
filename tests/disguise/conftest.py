"""What several files of these tests read and none changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.disguise.pairs import ARCHES, run


@pytest.fixture(scope="session")
def place(tmp_path_factory) -> Path:
    """Recall on both mixers, plain and disguised, with the keys beside."""
    place = tmp_path_factory.mktemp("disguise")
    for arch in ARCHES:
        plain = ("mqar", "--kappa", 3, "--vocab", 6, "--arch", arch, "--samples", 20, "--no-certify")
        assert run(*plain, "--out", place / arch) == 0
        assert run("disguise", place / arch, "--out", place / f"{arch}-other", "--seed", 1, "--samples", 20) == 0
    return place
