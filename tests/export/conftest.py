"""The checkpoints, made once for all tests of this folder."""

import pytest

from tests.export.cases import LARGE, SMALL, made


@pytest.fixture(scope="session")
def cases(tmp_path_factory):
    place = tmp_path_factory.mktemp("checkpoints")
    return {name: made(name, construction, place / name) for name, construction in SMALL.items()}


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    ((name, construction),) = LARGE.items()
    return made(name, construction, tmp_path_factory.mktemp("large") / name)
