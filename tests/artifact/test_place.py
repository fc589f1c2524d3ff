"""A directory is replaced whole or not at all, whatever happens to the process that does it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from compiler.artifact import place
from compiler.artifact.errors import CheckpointError
from compiler.artifact.manifest import read_manifest
from compiler.artifact.plain_files import placed_first
from tests.artifact import kills
from tests.spread import some


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_save_loses_nothing(tmp_path: Path) -> None:
    lost = kills.run(len(some(range(50), 0.05)), 0, tmp_path)
    assert not lost, "\n".join(lost)
    kills.replace(tmp_path / "out", "one")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # what the dead left is swept


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is Linux's")
def test_this_system_exchanges_directories(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    assert place._exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "b").exists() and (tmp_path / "b" / "a").exists()


def test_a_target_that_was_renamed_away_comes_back(tmp_path: Path) -> None:
    """What a kill between the two renames of a system without exchange leaves."""
    kills.replace(tmp_path / "out", "one")
    (tmp_path / "out").rename(tmp_path / ".out.0a1b2c3d.retired")
    assert read_manifest(tmp_path / "out").circuit == "one"
    (tmp_path / "out").rename(tmp_path / ".out.0a1b2c3d.retired")
    kills.replace(tmp_path / "out", "two")
    assert read_manifest(tmp_path / "out").circuit == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_the_working_directory_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    with place.staging(tmp_path / "out") as mine:
        (mine / "half").touch()
        kills.replace(tmp_path / "out", "one")
        assert (mine / "half").exists()
    assert (tmp_path / "out" / "half").exists()


def test_a_pipe_under_the_name_of_litter_is_not_opened(tmp_path: Path) -> None:
    """Nobody may ever write into it; a link to one is kept as it is, and not opened to be flushed."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(10)
    litter = tmp_path / ".out.00000000.partial"
    os.mkfifo(litter)
    with place.staging(tmp_path / "out") as mine:
        (mine / "kept").symlink_to(litter)
    signal.alarm(0)
    assert litter.is_fifo() and (tmp_path / "out" / "kept").is_symlink()


def test_other_targets_litter_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".outer.00000000.partial").mkdir()
    (tmp_path / ".out.00000000.partial").mkdir()
    kills.replace(tmp_path / "out", "one")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".outer.00000000.partial", "out"]


def test_a_link_is_followed_and_stays(tmp_path: Path) -> None:
    """What it leads to is replaced, where that is; nothing is left beside either."""
    real, link = tmp_path / "real" / "out", tmp_path / "links" / "out"
    real.mkdir(parents=True)
    link.parent.mkdir()
    link.symlink_to("../real/out")
    (real / "old").write_text("old")
    place.check_place(link)
    with place.staging(link) as new:
        (new / "new").write_text("new")
    assert link.is_symlink() and [path.name for path in real.iterdir()] == ["new"]
    assert [path.name for side in (real, link) for path in side.parent.iterdir()] == ["out", "out"]


def test_what_another_run_made_meanwhile_is_left_alone(tmp_path: Path) -> None:
    out, refused = tmp_path / "out", pytest.raises(CheckpointError, match="made by another run meanwhile")
    with refused, place.staging(out, new=True) as mine:
        (mine / "a").write_text("mine")
        with place.staging(tmp_path / "out") as other:
            (other / "a").write_text("other")
    assert (tmp_path / "out" / "a").read_text() == "other"
    with place.staging(tmp_path / "out") as mine:
        (mine / "a").write_text("mine")
    assert (tmp_path / "out" / "a").read_text() == "mine"  # what stood before is replaced


@pytest.mark.parametrize("links", [True, False])
def test_a_key_that_another_run_made_meanwhile_is_left_alone(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, link = tmp_path / "key", os.link

    def late(*paths: Path) -> None:
        key.write_text("other")
        if not links:
            raise PermissionError
        link(*paths)

    monkeypatch.setattr(os, "link", late)
    with (
        pytest.raises(CheckpointError, match="made by another run meanwhile"),
        placed_first(key, "mine", lambda: False, new=True),
    ):
        pass
    assert key.read_text() == "other" and [path.name for path in tmp_path.iterdir()] == ["key"]
