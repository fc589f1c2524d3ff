"""`construct verify` of a disguise without its key: no more is said than what is proved of its weights, or was run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from compiler.artifact.errors import EditedError
from compiler.artifact.json_files import canonical_json
from compiler.artifact.manifest import file_hash, text_hash
from compiler.disguise.errors import DisguiseError
from compiler.disguise.key import Key, read_key
from compiler.disguise.noise import noise
from compiler.disguise.steps import applied, patch_of
from tests.disguise.pairs import run

SINCE = 200  # the first position at which the clock turns answers; the tasks that are run have 64 letters


def resealed(directory: Path, **disguise: object) -> Path:
    """Its construction.json of the files that stand there now, with other entries on the disguise."""
    content = json.loads((directory / "construction.json").read_text("utf-8"))
    content.pop("sha256")
    content["files"] = {name: file_hash(directory / name) for name in content["files"]}
    content["disguise"] |= disguise
    content["sha256"] = text_hash(canonical_json(content))
    (directory / "construction.json").write_text(canonical_json(content), "utf-8")
    return directory


def with_clock(plain: Path) -> dict[str, np.ndarray]:
    """The weights of (a|b)*abb with a count of positions in free channels, which turns answers behind `SINCE`."""
    tensors = load_file(plain / "model.safetensors")

    def put(layer: int, name: str, place: tuple[int, ...], value: float) -> None:
        tensors[f"backbone.layers.{layer}.{name}"][place] = value

    counting = {"in_proj.weight": [((5, 3), 1), ((37, 3), 32)], "conv1d.weight": [((5, 0, 3), 32)]}
    counting |= {"dt_proj.bias": [((5,), 128)], "A_log": [((5,), -200)], "D": [((5,), 0)]}
    counting |= {"out_proj.weight": [((9, 5), 2.0**-15)]}
    turning = {"in_proj.weight": [((6, 9), 2**17), ((38, 3), 32)], "conv1d.weight": [((6, 0, 3), 1)]}
    turning |= {"conv1d.bias": [((6,), -128 * SINCE)], "dt_proj.bias": [((6,), -200)], "D": [((6,), 1)]}
    turning |= {"out_proj.weight": [((6, 6), 2.0**-5)]}
    put(1, "norm.weight", (9,), 2**17)
    for layer, changed in enumerate((counting, turning)):
        for name, places in changed.items():
            for place, value in places:
                put(layer, f"mixer.{name}", place, value)
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def written(directory: Path, tensors: dict[str, np.ndarray]) -> Path:
    """The same directory with these weights, and hashes of them."""
    held = {name: torch.from_numpy(tensor.copy()) for name, tensor in tensors.items()}
    save_file(held, directory / "model.safetensors", {"format": "pt"})
    return resealed(directory)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A plain automaton, its disguise, and the same with other answers behind position 200."""
    place = tmp_path_factory.mktemp("without")
    assert run("automaton", "--regex", "(a|b)*abb", "--samples", 20, "--out", place / "plain") == 0
    assert run("disguise", place / "plain", "--out", place / "other", "--level", 1, "--samples", 20) == 0
    changed = Path(shutil.copytree(place / "other", place / "changed"))
    written(changed, applied(read_key(place / "other.key.json").steps, with_clock(place / "plain")))
    return place


def answers(directory: Path) -> np.ndarray:
    """On abb, a hundred times, by transformers."""
    from compiler.artifact.generate import transformers_model

    ids = torch.tensor([[0, 1, 1] * 100])
    with torch.no_grad():
        return transformers_model(directory, "float32")(ids).logits[0].argmax(-1).numpy()


def told(capsys, *line: object) -> tuple[int, str]:
    capsys.readouterr()
    code = run(*line)
    found = capsys.readouterr()
    return code, " ".join(f"{found.out} {found.err}".split())


def test_weights_that_do_not_prove_where_those_of_the_circuit_do_are_refused(place, capsys):
    wrong = np.flatnonzero(answers(place / "changed") != answers(place / "plain"))
    assert wrong.size and wrong.min() >= SINCE, "the model is wrong where no task of it looks"
    for options in (("--samples", 20), ("--verify", "none")):
        code, said = told(capsys, "verify", place / "changed", *options)
        assert code == 1 and "not proved of its weights: arithmetic" in said and "bit-exact;" not in said
        assert "promise and proof: not shown" in said
    assert told(capsys, "verify", place / "other", "--samples", 20)[0] == 0


def test_of_weights_without_a_proof_nothing_is_promised(place, tmp_path, capsys):
    """A record that says they were never proved makes no more of them than what was run."""
    changed = resealed(Path(shutil.copytree(place / "changed", tmp_path / "changed")), certified=False)
    code, said = told(capsys, "verify", changed, "--samples", 20)
    assert code == 0 and "promise: only tested, for it is not proved of these weights" in said
    assert "bit-exact;" not in said
    capsys.readouterr()
    assert run("verify", changed, "--samples", 20, "--json") == 0
    assert json.loads(capsys.readouterr().out)["guarantee"]["level"] == "tested"
    with pytest.raises(DisguiseError, match=r"nothing was run of .* Leave out --verify none") as refused:
        run("verify", changed, "--verify", "none")
    assert refused.value.exit_code == 2
    assert run("verify", changed, "--key", place / "other.key.json", "--samples", 20) == 1


def test_what_is_proved_or_compared_needs_no_run(place, capsys):
    for options in ((), ("--key", place / "other.key.json")):
        code, said = told(capsys, "verify", place / "other", "--verify", "none", *options)
        assert code == 0 and "promise: no sequence was run" in said
        code, said = told(capsys, "verify", place / "other", "--samples", 20, *options)
        assert code == 0 and "promise: bit-exact; answers right: all" in said


def test_a_disguise_that_was_not_certified_says_what_was_looked_at(place, tmp_path, capsys):
    other = tmp_path / "other"
    options = ("--level", 1, "--samples", 20, "--no-certify")
    assert run("disguise", place / "plain", "--out", other, *options) == 0
    assert json.loads((other / "construction.json").read_text("utf-8"))["disguise"] == {"level": 1, "certified": False}
    card = " ".join((other / "README.md").read_text("utf-8").split())
    assert "For every input of its promise" not in card and "is not proved of these weights" in card
    assert "For every input of its promise it gives" in (place / "other" / "README.md").read_text("utf-8")
    code, said = told(capsys, "verify", other, "--samples", 20)
    assert code == 0 and "promise: bit-exact" in said, "its weights are proved when they are looked at"


@pytest.mark.parametrize("share", [None, 1e-7], ids=["exact", "noise"])
def test_a_key_with_a_step_of_its_own_proves_nothing(share, place, tmp_path, capsys):
    """A step may do anything: one more makes weights of the circuit's that answer otherwise, and the key fits them."""
    other, key = tmp_path / "other", tmp_path / "other.key.json"
    options = ("--level", 1, "--samples", 20, *(() if share is None else ("--noise", share)))
    assert run("disguise", place / "plain", "--out", other, *options) == 0
    plain = {name: tensor.numpy() for name, tensor in load_file(place / "plain" / "model.safetensors").items()}
    known = read_key(key)
    steps = [patch_of(plain, with_clock(place / "plain"), {"what": "decoys"}), *known.steps]
    if share is not None:
        steps = [*steps[:-1], noise(applied(steps[:-1], plain), share, 0, "all")]
    written(other, applied(steps, plain))
    key.write_text(Key(known.level, file_hash(other / "model.safetensors"), steps, known.files).text())
    for more in ((), ("--verify", "none")):
        code, said = told(capsys, "verify", other, "--key", key, "--samples", 20, *more)
        assert code == 1 and "not proved of its weights: arithmetic" in said and "bit-exact;" not in said
    with pytest.raises(EditedError, match="is not scored.*not proved of its weights: arithmetic") as refused:
        run("score", other, "--key", key, "--method", "oracle")
    assert refused.value.exit_code == 1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int32], ids=str)
@pytest.mark.parametrize("command", [("verify", "{}"), ("prove", "{}"), ("undisguise", "{}", "--out", "{}-back")])
def test_weights_stored_otherwise_are_damage(command, dtype, place, tmp_path):
    """Also where every number is the same: programs that load them compute in another format."""
    other = Path(shutil.copytree(place / "other", tmp_path / "other"))
    tensors = load_file(other / "model.safetensors")
    tensors["backbone.layers.0.norm.weight"] = tensors["backbone.layers.0.norm.weight"].to(dtype)
    save_file(tensors, other / "model.safetensors", {"format": "pt"})
    resealed(other)
    keyed = ("--key", place / "other.key.json") if command[0] == "undisguise" else ()
    line = (*(word.format(other) for word in command), *keyed)
    if command[0] == "prove":
        assert run(*line) == 1
        return
    with pytest.raises(DisguiseError, match="weights stand in float32") as refused:
        run(*line)
    assert refused.value.exit_code == 1


@pytest.mark.parametrize("change", ["lacks", "more", "shape"])
@pytest.mark.parametrize("keyed", [False, True])
def test_weights_that_no_model_has_are_a_failed_verification(change, keyed, place, tmp_path, capsys):
    other = Path(shutil.copytree(place / "other", tmp_path / "other"))
    tensors = {name: tensor.numpy() for name, tensor in load_file(other / "model.safetensors").items()}
    name = "backbone.layers.0.mixer.A_log"
    tensors |= {"lacks": {}, "more": {"zzz": tensors[name]}, "shape": {name: tensors[name][:-1]}}[change]
    written(other, {n: tensor for n, tensor in tensors.items() if change != "lacks" or n != name})
    says = {"lacks": "has no tensor", "more": "has no place", "shape": "of shape"}[change]
    code, said = told(capsys, "verify", other, *(("--key", place / "other.key.json") if keyed else ()))
    assert code == 1 and says in said and "promise" not in said


@pytest.mark.parametrize("key", [False, True])
def test_no_lane_of_a_disguise_is_said_to_be_wrong(key, place, tmp_path, capsys):
    """Of labels that are wrong it is said that they are; of wrong weights, which score is."""
    data, keyed = tmp_path / "data.npz", ("--key", place / "other.key.json") if key else ()
    np.savez(data, inputs=np.array([[0, 1, 1, 0]]), labels=np.array([[0, 0, 0, 0]]))
    code, said = told(capsys, "verify", place / "other", "--data", data, *keyed)
    assert code == 1 and "the label of the data is another than the circuit's answer there" in said
    assert "lane" not in said and "embedding" not in said.replace("norms and an embedding", "")
    wrong = Path(shutil.copytree(place / "other", tmp_path / "wrong"))
    tensors = load_file(wrong / "model.safetensors")
    head = tensors["lm_head.weight"]
    head[tuple(torch.nonzero(head)[0].tolist())] *= 2
    save_file(tensors, wrong / "model.safetensors", {"format": "pt"})
    code, said = told(capsys, "verify", resealed(wrong), "--samples", 20, *keyed)
    assert code == 1 and "the model first leaves the circuit in a score (its lanes have no names)" in said
    assert "no sequence was run" not in said and "first leaves the circuit in the embedding" not in said


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("verify", "{}", "--stream", "--length", 4), "is disguised"),
        (("verify", "{}", "--workers", 2), "is disguised, and --workers and --scheduler share .* leave them out"),
        (("inspect", "{}"), "is disguised"),
        (("trace", "{}", "--input", "a b b"), "is disguised: give its key with --key FILE"),
    ],
    ids=["stream", "workers", "inspect", "trace"],
)
def test_what_needs_names_refuses_a_whole_disguise_as_bad_usage(line, says, place, capsys):
    """In one sentence, and without a word of a process that was started in vain."""
    with pytest.raises(ValueError, match=says) as refused:
        run(*(str(word).format(place / "other") for word in line))
    assert getattr(refused.value, "exit_code", None) in (None, 2) and "worker" not in capsys.readouterr().err


@pytest.mark.parametrize("line", [("undisguise", "{}", "--out", "{}-back"), ("trace", "{}", "--input", "a b b")])
def test_another_file_beside_the_weights_of_a_key_is_damage(line, place, tmp_path):
    """The key is that of the weights; another circuit stands beside them."""
    other = Path(shutil.copytree(place / "other", tmp_path / "other"))
    circuit = json.loads((other / "circuit.json").read_text("utf-8"))
    (other / "circuit.json").write_text(json.dumps(circuit | {"name": "another"}), "utf-8")
    resealed(other)
    with pytest.raises(DisguiseError, match="is not the plain checkpoint: circuit.json") as refused:
        run(*(word.format(other) for word in line), "--key", place / "other.key.json")
    assert refused.value.exit_code == 1


def test_the_card_of_noise_names_what_can_be_run(place, tmp_path):
    other = tmp_path / "noisy"
    assert run("disguise", place / "plain", "--out", other, "--level", 1, "--samples", 20, "--noise", 1e-3) == 0
    card = " ".join((other / "README.md").read_text("utf-8").split())
    assert "`construct verify DIRECTORY --key FILE` measures that anew" in card
    assert "`construct verify DIRECTORY` runs" not in card
    assert "`construct verify DIRECTORY` runs" in (place / "other" / "README.md").read_text("utf-8")
