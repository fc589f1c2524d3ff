"""What a disguise says of itself, of its noise and of its promise, is held to what is so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from compiler import CheckpointError
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import text_hash
from compiler.disguise.directory import read_disguised
from compiler.disguise.errors import DisguiseError
from compiler.disguise.key import read_key
from tests.constructions.test_stated_tasks import counted
from tests.disguise.pairs import key, retold, run


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
