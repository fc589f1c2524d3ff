"""Small checkpoints that the kernel proves, each made once."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.verify.kernel.attack import Target
from tests.verify.kernel.small import make
from verify.kernel.files import read
from verify.prover.prove import search_of


@pytest.fixture(scope="session")
def recall(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("kernel") / "mqar", "mqar", "mamba")


@pytest.fixture(scope="session")
def keep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("kernel") / "keep", "keep-nth", "mamba")


@pytest.fixture(scope="session")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("kernel") / "heads", "induction-heads", "mamba2")


@pytest.fixture(scope="session")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("kernel") / "copies", "selective-copy", "mamba2")


@pytest.fixture(scope="session")
def firsts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recall of the first value: what a key has written stops what it writes."""
    return make(tmp_path_factory.mktemp("kernel") / "firsts", "mqar-first-write", "mamba2")


@pytest.fixture(scope="session")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The least edit distance: two words of at most one letter."""
    return make(tmp_path_factory.mktemp("kernel") / "words", "edit-distance", "mamba", length=1)


@pytest.fixture(scope="session")
def words_claims(words: Path) -> list:
    """Claims of every kind, `same` and `weight` among them: the search goes its last way at once."""
    return search_of(read(words), first=2)[1]


@pytest.fixture(scope="session")
def longest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The least longest increasing subsequence: at most two numbers, 0 or 1."""
    return make(tmp_path_factory.mktemp("kernel") / "longest", "lis", "mamba2", length=2, values=2)


@pytest.fixture(scope="session")
def longest_claims(longest: Path) -> list:
    return search_of(read(longest), first=2)[1]


@pytest.fixture(scope="session")
def targets(recall: Path, keep: Path, heads: Path) -> list[Target]:
    return [Target(directory, random.Random(1)) for directory in (recall, keep, heads)]
