"""The checkpoints, each made once for all tests of this folder, when the first of them asks for it."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from tests.export.cases import LARGE, SMALL, Case, made


class Cases(Mapping[str, Case]):
    """The small cases by name."""

    def __init__(self, make: Callable[[str], Case]):
        self._make, self._made = make, dict[str, Case]()

    def __getitem__(self, name: str) -> Case:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(SMALL)

    def __len__(self) -> int:
        return len(SMALL)


@pytest.fixture(scope="session")
def cases(tmp_path_factory):
    place = tmp_path_factory.mktemp("checkpoints")
    return Cases(lambda name: made(name, SMALL[name], place / name))


@pytest.fixture(scope="session")
def large(tmp_path_factory):
    ((name, construction),) = LARGE.items()
    return made(name, construction, tmp_path_factory.mktemp("large") / name)
