"""A command runs on one thread, unless the environment says otherwise."""

from __future__ import annotations

import os

import pytest

from constructions.__main__ import main


@pytest.mark.parametrize(("given", "taken"), [(None, "1"), ("4", "4")])
def test_the_environment_decides_how_many_threads_there_are(monkeypatch, given: str | None, taken: str) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given or "")
    if given is None:
        monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("constructions.__main__._run", lambda: int(os.environ["OMP_NUM_THREADS"]))
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == int(taken)
