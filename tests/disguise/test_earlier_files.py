"""What stands where a disguise or a key is to be written: replaced, kept, or refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from compiler import CheckpointError
from compiler.artifact import place as artifact_place
from compiler.artifact.manifest import file_hash
from compiler.disguise.key import read_key
from tests.disguise.pairs import key, run


def test_force_is_not_named_where_it_replaces_nothing(place, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("diary")
    for force in ((), ("--force",)):
        with pytest.raises(ValueError, match="it would be lost") as refused:
            run("disguise", place / "mamba", "--out", tmp_path / "out", "--key", notes, "--level", 1, *force)
        assert "--force" not in str(refused.value) and notes.read_text() == "diary"


def test_a_key_takes_the_place_of_a_key_however_long_and_of_nothing_else(place, tmp_path):
    said = json.loads(key(place, "mamba").read_text("utf-8"))
    said["files"] |= {f"file-{i:08d}": "0" * 64 for i in range(2_000)}
    earlier, notes = tmp_path / "earlier.json", tmp_path / "notes.txt"
    earlier.write_text(json.dumps(said, indent=1, sort_keys=True))
    assert earlier.read_text().index("disguise-key") > 1 << 16
    notes.write_text('a key says "format": "disguise-key"')
    asked = ("disguise", place / "mamba", "--out", tmp_path / "out", "--samples", 2, "--force", "--no-certify", "--key")
    with pytest.raises(ValueError, match="would be lost"):
        run(*asked, notes)
    assert run(*asked, earlier) == 0 and len(read_key(earlier).files) < 100


def test_what_is_the_users_stays_where_a_disguise_is_taken_back(place, tmp_path):
    """As where a checkpoint is built anew, and also through a link, which stays one."""
    back, link = Path(shutil.copytree(place / "mamba", tmp_path / "back")), tmp_path / "link"
    (back / "notes").mkdir()
    (back / "notes" / "mine.txt").write_text("mine")
    (back / "README.md").write_text("mine")
    link.symlink_to("back")
    assert run("undisguise", place / "mamba-other", "--key", key(place, "mamba"), "--out", link, "--force") == 0
    assert (back / "notes" / "mine.txt").read_text() == (back / "README.md").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "link"] and link.is_symlink()
    (back / "README.md").unlink()
    assert run("undisguise", place / "mamba-other", "--key", key(place, "mamba"), "--out", back, "--force") == 0
    assert (back / "README.md").read_bytes() == (place / "mamba" / "README.md").read_bytes()


@pytest.fixture
def earlier(place, tmp_path) -> tuple[Path, Path]:
    """A disguise and its key, which may be replaced."""
    out = Path(shutil.copytree(place / "mamba-other", tmp_path / "out"))
    return out, Path(shutil.copy(key(place, "mamba"), tmp_path / "out.key.json"))


def test_what_the_user_put_beside_an_earlier_disguise_stays(place, earlier):
    out, _ = earlier
    (out / "notes.txt").write_text("mine")
    (out / "below").mkdir()
    (out / "below" / "more.txt").write_text("mine too")
    before = (out / "README.md").read_text()
    again = ("disguise", place / "mamba", "--out", out, "--seed", 3, "--samples", 2, "--no-certify", "--force")
    assert run(*again, "--level", 1) == 0
    assert (out / "README.md").read_text() != before  # it was ours, and says of another level
    (out / "README.md").write_text("my card")
    assert run(*again) == 0
    there = {name: (out / name).read_text() for name in ("notes.txt", "below/more.txt", "README.md")}
    assert there == {"notes.txt": "mine", "below/more.txt": "mine too", "README.md": "my card"}


def fits(out: Path, kept: Path) -> bool:
    return read_key(kept).weights == file_hash(out / "model.safetensors")


NO_KEYS = ["/dev/null", "/proc/none.json", "{}/" + 250 * "k", "{}/there/is/none.json", "{}/nowhere"]


@pytest.mark.parametrize("kept", NO_KEYS, ids=lambda kept: kept[:20])
def test_where_no_key_can_be_written_nothing_is_disguised(kept, place, tmp_path, monkeypatch):
    (tmp_path / "nowhere").symlink_to("else")
    monkeypatch.setattr("constructions.checkpoints.disguised.disguise_checkpoint", None)  # is not come to
    for out in (tmp_path / "out", tmp_path / "new" / "out"):
        with pytest.raises((ValueError, CheckpointError), match=str(Path(kept.format(tmp_path)))):
            run("disguise", place / "mamba", "--out", out, "--key", kept.format(tmp_path), "--force")
    long = tmp_path / "new" / (235 * "d")
    with pytest.raises(CheckpointError, match="key.json cannot be made, for .* takes no new files: file name too long"):
        run("disguise", place / "mamba", "--out", long)
    assert [path.name for path in tmp_path.iterdir()] == ["nowhere"]


def disguised_again(place: Path, out: Path) -> int:
    return run("disguise", place / "mamba", "--out", out, "--seed", 2, "--samples", 5, "--no-certify", "--force")


def test_the_key_stands_before_the_weights(place, earlier, monkeypatch):
    """And that of the earlier weights comes back where the new ones do not come."""
    out, kept = earlier
    seen, moved = [], artifact_place._move_in

    def fails(new: Path, target: Path) -> None:
        there = target.exists() and fits(target, kept)
        seen.append(
            (fits(new, target.with_name(f"{target.name}.key.json")), there, len(list(out.parent.glob(".*.retired"))))
        )
        raise RuntimeError("stopped")

    def ends_late(new: Path, target: Path) -> None:
        moved(new, target)
        raise RuntimeError("stopped")

    monkeypatch.setattr(artifact_place, "_move_in", fails)
    with pytest.raises(RuntimeError, match="stopped"):
        disguised_again(place, out)
    assert seen == [(True, False, 1)] and fits(out, kept) and kept.read_bytes() == key(place, "mamba").read_bytes()
    with pytest.raises(RuntimeError, match="stopped"):
        disguised_again(place, out.with_name("other"))
    monkeypatch.setattr(artifact_place, "_move_in", ends_late)
    with pytest.raises(RuntimeError, match="stopped"):
        disguised_again(place, out)
    assert fits(out, kept) and kept.read_bytes() != key(place, "mamba").read_bytes()
    assert sorted(path.name for path in out.parent.iterdir()) == ["out", "out.key.json"]


def test_a_key_that_is_not_written_leaves_the_earlier_pair(place, earlier, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "key")

    monkeypatch.setattr("compiler.artifact.plain_files.write_whole", full)
    for out in (earlier[0], earlier[0].with_name("other")):
        with pytest.raises(OSError, match="No space left"):
            disguised_again(place, out)
    assert fits(*earlier) and sorted(path.name for path in earlier[0].parent.iterdir()) == ["out", "out.key.json"]
