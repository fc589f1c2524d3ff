"""`construct disguise`, `verify`, `prove` and `undisguise` on files, and transformers on the disguised directory."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from compiler import CheckpointError, load
from compiler.artifact import place as artifact_place
from compiler.artifact.generate import transformers_model
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import file_hash, is_disguised, text_hash
from compiler.disguise.directory import read_disguised
from compiler.disguise.errors import DisguiseError
from compiler.disguise.key import read_key
from constructions.command.cli import command_line
from tests.constructions.test_stated_tasks import counted
from tests.spread import some

ARCHES = ("mamba", "mamba2")


def run(*arguments: object) -> int:
    try:
        return command_line()([str(a) for a in arguments], standalone_mode=False) or 0
    except SystemExit as stop:
        return int(stop.code or 0)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """Recall on both mixers, plain and disguised, with the keys beside."""
    place = tmp_path_factory.mktemp("disguise")
    for arch in ARCHES:
        plain = ("mqar", "--kappa", 3, "--vocab", 6, "--arch", arch, "--samples", 20, "--no-certify")
        assert run(*plain, "--out", place / arch) == 0
        assert run("disguise", place / arch, "--out", place / f"{arch}-other", "--seed", 1, "--samples", 20) == 0
    return place


def key(place: Path, arch: str) -> Path:
    return place / f"{arch}-other.key.json"


@pytest.mark.parametrize("arch", ARCHES)
def test_transformers_gives_the_same_bits(place, arch):
    plain, other = (transformers_model(place / name, "float32") for name in (arch, f"{arch}-other"))
    letters = torch.from_numpy(np.random.default_rng(3).integers(0, 9, (4, 70)))
    bits = lambda logits: logits.contiguous().view(torch.int32)
    with torch.no_grad():
        expected = plain(letters).logits
        assert torch.equal(bits(expected), bits(other(letters).logits))
        found = other(letters[:, :60], use_cache=True)
        assert torch.equal(bits(expected[:, :60]), bits(found.logits))
        for t in range(60, 70):
            found = other(letters[:, t : t + 1], cache_params=found.cache_params, use_cache=True)
            assert torch.equal(bits(expected[:, t : t + 1]), bits(found.logits))


@pytest.mark.parametrize("arch", ARCHES)
def test_verify_and_prove_hold_with_the_key_and_without(place, arch, capsys):
    other = place / f"{arch}-other"
    assert is_disguised(other)
    for more in ((), ("--key", key(place, arch))):
        assert run("verify", other, "--samples", 20, *more) == 0
        capsys.readouterr()
        assert run("prove", other, "--json", *more) == 0
        verdict = json.loads(capsys.readouterr().out)
        assert verdict["accepted"] and all(verdict[part]["proved"] for part in ("arithmetic", "meaning", "task"))
    assert run("undisguise", other, "--key", key(place, arch), "--out", place / f"{arch}-back", "--force") == 0
    for file in (place / arch).iterdir():
        assert (place / f"{arch}-back" / file.name).read_bytes() == file.read_bytes(), file.name


def test_the_key_of_other_weights_is_told_as_such(place, capsys):
    other, wrong = place / "mamba-other", key(place, "mamba2")
    assert run("prove", other, "--key", wrong) == 1
    said = capsys.readouterr().out
    assert f"not proved with --key {wrong}: this is not the key of the weights in {other}" in said.replace("\n", " ")
    assert run("verify", other, "--key", wrong, "--samples", 2) == 1
    assert "this is not the key of its weights" in capsys.readouterr().err.replace("\n", " ")


def test_the_same_seed_gives_the_same_bytes(place, tmp_path):
    for name, seed in (("new/again", 2), ("new/again", 1), ("new/third", 2)):
        more = ("--seed", seed, "--samples", 20, "--force")
        assert run("disguise", place / "mamba", "--out", tmp_path / name, *more) == 0
    tmp_path = tmp_path / "new"
    first = place / "mamba-other" / "model.safetensors"
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == first.read_bytes()
    assert (tmp_path / "again.key.json").read_bytes() == key(place, "mamba").read_bytes()
    assert (tmp_path / "third" / "model.safetensors").read_bytes() != first.read_bytes()


@pytest.fixture
def edited_key(place, tmp_path):
    """Writes a key whose kept construction.json says something else, sealed anew or not, or that keeps more files."""

    def written(what: str) -> Path:
        said = json.loads(key(place, "mamba").read_text("utf-8"))
        if what == "file":
            said["files"]["../../evil.txt"] = "evil"
        else:
            kept = json.loads(said["files"]["construction.json"])
            kept["promise"]["length"] += 1
            if what == "sealed":
                del kept["sha256"]
                kept["sha256"] = text_hash(canonical_json(kept))
            said["files"]["construction.json"] = canonical_json(kept)
        path = tmp_path / f"{what}.json"
        path.write_text(json.dumps(said))
        return path

    return written


@pytest.mark.parametrize("what", ["file", "changed", "sealed"])
def test_a_key_that_keeps_other_files_is_no_key(what, place, edited_key, tmp_path, capsys):
    """Every command says so, and none names a file that is gone by then."""
    other, wrong = place / "mamba-other", edited_key(what)
    said = {
        "file": "the key has a file '../../evil.txt'",
        "changed": "is not the plain checkpoint: construction.json was altered",
        "sealed": "the construction.json that the key keeps has another promise than the one that stands here",
    }[what]
    assert run("verify", other, "--key", wrong, "--samples", 2) == 1
    told = capsys.readouterr().err
    assert said in " ".join(told.split()) and "partial" not in told and "/plain" not in told
    with pytest.raises(ValueError, match=re.escape(said)):
        run("score", other, "--key", wrong, "--method", "random")
    for line in (("undisguise", other, "--out", tmp_path / "out"), ("trace", other, "--input", "k0")):
        if what != "sealed" or line[0] == "trace":
            with pytest.raises(CheckpointError) as refused:
                run(*line, "--key", wrong)
            assert "partial" not in str(refused.value) and "/plain" not in str(refused.value)
    assert not (tmp_path / "evil.txt").exists()


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


def spoiled(source: Path, out: Path, name: str, at: int) -> Path:
    """A copy with one weight changed, and sealed again as if it had been written so."""
    out.mkdir()
    for file in source.iterdir():
        (out / file.name).write_bytes(file.read_bytes())
    tensors = load_file(out / "model.safetensors")
    flat = tensors[name].reshape(-1)
    flat[at] = flat[at] * 2 if flat[at] else 1
    save_file(tensors, out / "model.safetensors", {"format": "pt"})
    content = json.loads((out / "construction.json").read_text("utf-8"))
    content.pop("sha256")
    content["files"]["model.safetensors"] = file_hash(out / "model.safetensors")
    (out / "construction.json").write_text(canonical_json(content | {"sha256": text_hash(canonical_json(content))}))
    return out


def test_verify_finds_one_wrong_weight(place, tmp_path, capsys):
    """With the key every one; without, those that change what is computed."""
    source = place / "mamba-other"
    tensors = load_file(source / "model.safetensors")
    rng = np.random.default_rng(0)
    for i, name in enumerate(some(sorted(tensors), 0.25)):
        wrong = spoiled(source, tmp_path / str(i), name, int(rng.integers(tensors[name].numel())))
        assert run("verify", wrong, "--key", key(place, "mamba"), "--samples", 2) == 1, name
        assert "key" in capsys.readouterr().err
        assert run("prove", wrong, "--key", key(place, "mamba")) == 1, name
    head = tensors["lm_head.weight"]
    live = int(torch.nonzero(head[5]).reshape(-1)[0]) + 5 * head.shape[1]
    assert run("verify", spoiled(source, tmp_path / "head", "lm_head.weight", live), "--samples", 20) == 1


def test_a_file_that_was_changed_is_refused(place, tmp_path):
    out = spoiled(place / "mamba-other", tmp_path / "x", "lm_head.weight", 0)
    (out / "config.json").write_text(
        (out / "config.json").read_text("utf-8").replace('"state_size": 3', '"state_size": 4')
    )
    with pytest.raises(CheckpointError, match="damaged"):
        run("verify", out)


def test_refusals_in_one_sentence_and_nothing_written(place, tmp_path):
    other, plain, out = place / "mamba-other", place / "mamba", tmp_path / "out"
    asked = {
        "is disguised": ("disguise", other, "--out", out),
        "levels 1 to 3": ("disguise", plain, "--out", out, "--level", 4),
        "left alone": ("disguise", plain, "--out", plain),
        "already": ("disguise", plain, "--out", other),
        "exists already": ("disguise", plain, "--out", out, "--key", key(place, "mamba")),
        "lies in the disguised": ("disguise", plain, "--out", out, "--key", out / "key.json"),
        "would be lost": ("disguise", plain, "--out", out, "--key", plain / "config.json", "--force"),
        "no key of a disguise": ("undisguise", other, "--key", plain / "config.json", "--out", out),
        "key of other weights": ("undisguise", other, "--key", key(place, "mamba2"), "--out", out),
        "no disguised checkpoint": ("verify", plain, "--key", key(place, "mamba")),
    }
    for sentence, arguments in asked.items():
        with pytest.raises((ValueError, CheckpointError), match=sentence):
            run(*arguments)
        assert not out.exists() and not (tmp_path / "out.key.json").exists(), sentence
    with pytest.raises(CheckpointError, match="undisguise"):
        load(other)


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


def retold(directory: Path, change) -> None:
    """construction.json of a disguise, changed and sealed anew."""
    content = json.loads((directory / "construction.json").read_text("utf-8"))
    content.pop("sha256")
    change(content)
    content["sha256"] = text_hash(canonical_json(content))
    (directory / "construction.json").write_text(json.dumps(content), "utf-8")


@pytest.fixture(scope="module")
def noisy(place) -> tuple[Path, Path]:
    keyed = place / "noisy.key.json"
    options = ("--noise", 0.5, "--seed", 1, "--samples", 20)
    assert run("disguise", place / "mamba", "--out", place / "noisy", "--key", keyed, *options) == 0
    return place / "noisy", keyed


def test_what_is_so_without_noise_is_said_to_be(noisy, capsys):
    capsys.readouterr()
    assert run("verify", noisy[0], "--key", noisy[1], "--samples", 20) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "What follows is so without the noise in its weights. As they stand: noise of up to 0.4" in said
    assert run("verify", noisy[0], "--key", noisy[1], "--samples", 20, "--json") == 0
    assert "answers are right, the logit of a letter is off by" in json.loads(capsys.readouterr().out)["noise"]
    with pytest.raises(ValueError, match="it reads the weights with their noise"):
        run("verify", noisy[0], "--key", noisy[1], "--runtime", "transformers")


_FORGED = {"epsilon": 1e-9, "answers": 10**6, "right": 10**6, "sequences": 10**6, "largest_change": 0.0, "lead": 6e7}


@pytest.mark.parametrize("entry", [*_FORGED, "where"])
def test_a_record_of_noise_is_compared_with_what_is_measured(entry, noisy, tmp_path, capsys):
    """Nothing of the record is repeated as so: not with the key, and not without."""
    directory = Path(shutil.copytree(noisy[0], tmp_path / "noisy"))
    forged = {"where": "head"} if entry == "where" else {entry: _FORGED[entry]}
    retold(directory, lambda content: content["disguise"]["noise"].update(forged))
    capsys.readouterr()
    assert run("verify", directory, "--key", noisy[1], "--samples", 20) == 1
    found = capsys.readouterr()
    assert f"construction.json: disguise.noise.{entry} is " in found.err
    assert "As they stand: noise of up to 0.4" in " ".join(found.out.split()), "what is measured, not the record"
    with pytest.raises(DisguiseError, match="has noise. Its maker recorded, and nothing here has compared: noise"):
        run("verify", directory)


def test_noise_that_nobody_tells_of_is_said_to_be_other_bits(place, tmp_path, capsys):
    """Its answers are right, and so none is counted as wrong."""
    directory, options = tmp_path / "noisy", ("--noise", 1e-6, "--samples", 5)
    assert run("disguise", place / "mamba", "--out", directory, "--key", tmp_path / "key.json", *options) == 0
    retold(directory, lambda content: content["disguise"].pop("noise"))
    capsys.readouterr()
    assert run("verify", directory, "--samples", 20) == 1
    said = capsys.readouterr().err
    assert "every answer is right, and a score is not the circuit's to the bit; first in case" in said
    assert "answers wrong" not in said


def test_a_number_that_is_too_large_is_said_to_be(noisy, tmp_path):
    directory = Path(shutil.copytree(noisy[0], tmp_path / "noisy"))
    for epsilon in (1e308, 10**400):
        retold(directory, lambda content, told=epsilon: content["disguise"]["noise"].update(epsilon=told))
        with pytest.raises(CheckpointError, match=r"epsilon is .*, expected a number of at most 2\^1000 in size"):
            run("verify", directory, "--key", noisy[1])


def test_noise_of_a_circuit_with_answers_of_its_author_is_found_again(tmp_path, capsys):
    """A disguised directory has no answers.json, and its record tells what is found without."""
    counted(tmp_path / "own", task=lambda tokens: "0" if tokens[-1] == "b" else None)
    assert run("disguise", tmp_path / "own", "--out", tmp_path / "noisy", "--noise", 1e-5, "--samples", 20) == 0
    assert run("verify", tmp_path / "noisy", "--key", tmp_path / "noisy.key.json", "--samples", 20) == 0


@pytest.mark.parametrize("told", [None, "x", {"level": "1"}, {"level": 1, "noise": 0}, {"level": 1, "noise": {}}])
def test_a_disguise_that_is_told_otherwise_is_refused(told, noisy, tmp_path, capsys):
    directory = Path(shutil.copytree(noisy[0], tmp_path / "noisy"))
    retold(directory, lambda content: content.update(disguise=told))
    for options in ((), ("--key", noisy[1])):
        with pytest.raises(CheckpointError, match="construction.json: disguise"):
            run("verify", directory, *options)
    capsys.readouterr()
    assert run("prove", directory, "--key", noisy[1]) == 1
    assert "construction.json: disguise" in capsys.readouterr().out


@pytest.mark.parametrize("told", [{"lead": None}, {"lead": None, "unproved": None}, {"unproved": None}])
def test_a_lead_that_is_null_is_none(told, noisy, tmp_path, capsys):
    """null is what an entry of a manifest may be that is left out."""
    directory = Path(shutil.copytree(noisy[0], tmp_path / "noisy"))
    retold(directory, lambda content: content["disguise"]["noise"].update(told))
    capsys.readouterr()
    assert run("verify", directory, "--key", noisy[1], "--samples", 20) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "nothing of it is proved for other inputs" in said and "None" not in said


@pytest.mark.parametrize("entry", [{"length": 500}, {"description": "every text"}])
def test_another_promise_of_a_disguise_is_found(entry, place, tmp_path, capsys):
    directory = Path(shutil.copytree(place / "mamba-other", tmp_path / "other"))
    retold(directory, lambda content: content["promise"].update(entry))
    assert run("verify", directory, "--samples", 20) == 1
    assert f"construction.json has another promise.{next(iter(entry))}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("entry", "value"),
    [("theorem", "Theorem 0"), ("circuit", "copy"), ("format_version", 3), ("arch", "s4d")],
)
def test_another_entry_of_a_disguise_is_found_without_its_key(entry, value, place, tmp_path, capsys):
    """What its circuit would have there: only the level and the steps are known to the key alone."""
    directory = Path(shutil.copytree(place / "mamba-other", tmp_path / "other"))
    *path, last = entry.split(".")
    retold(directory, lambda content: (content[path[0]] if path else content).update({last: value}))
    try:
        assert run("verify", directory, "--samples", 20) == 1
        assert f"construction.json has another {entry}" in capsys.readouterr().err
    except CheckpointError as reason:  # for another target nothing is built at all
        assert entry == "arch" and reason.exit_code == 1


@pytest.mark.parametrize("entry", ["description", "theorem"])
def test_a_checkpoint_whose_manifest_says_something_else_is_not_disguised(entry, place, tmp_path, capsys):
    edited = Path(shutil.copytree(place / "mamba", tmp_path / "edited"))
    content = json.loads((edited / "construction.json").read_text("utf-8"))
    (content["promise"] if entry == "description" else content).update({entry: "Fermat"})
    content["sha256"] = text_hash(canonical_json({k: v for k, v in content.items() if k != "sha256"}))
    (edited / "construction.json").write_text(canonical_json(content), "utf-8")
    with pytest.raises(CheckpointError, match=f"another .*{entry}"):
        run("disguise", edited, "--out", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda content: content.pop("task"), "keeps has another task than the one that stands here"),
        (lambda content: content.update(theorem="Theorem 0"), "keeps has another theorem than the one"),
        (lambda content: content["disguise"].update(level=1), "its level is 1, and the key's is 3"),
    ],
    ids=["task", "theorem", "level"],
)
def test_prove_and_verify_refuse_with_a_key_the_same_disguise(edit, says, place, tmp_path, capsys):
    """What is edited is sealed anew: the key was written beside another construction.json."""
    directory = Path(shutil.copytree(place / "mamba-other", tmp_path / "other"))
    retold(directory, edit)
    capsys.readouterr()
    assert run("prove", directory, "--key", key(place, "mamba")) == 1
    assert says in " ".join(capsys.readouterr().out.split())
    assert run("verify", directory, "--key", key(place, "mamba"), "--samples", 2) == 1
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_level_that_no_disguise_has_is_refused_without_a_key(place, tmp_path):
    directory = Path(shutil.copytree(place / "mamba-other", tmp_path / "other"))
    retold(directory, lambda content: content["disguise"].update(level=4))
    with pytest.raises(DisguiseError, match="disguise.level is 4, and the levels are 1, 2, 3"):
        run("verify", directory)


def test_why_a_key_does_not_fit_is_said_to_the_end(place):
    """Of the matrices of another model it has places that these weights do not have."""
    _, tensors = read_disguised(place / "mamba-other")
    with pytest.raises(DisguiseError, match="which the weights do not have[.]$"):
        read_key(key(place, "mamba2")).plain(tensors)
