"""A circuit over numbers as a checkpoint: the same model after loading, and every change of a file is found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import compiler
from compiler import Circuit, CompileError, Int, OneHot, Real, concatenate, dot, fading_sum, latch_bank, numbers
from compiler.artifact import CheckpointError
from compiler.artifact.artifact import Artifact
from compiler.artifact.compare import differences
from compiler.artifact.files import CARD, GRAPH, MANIFEST, NUMBERS_FILES
from compiler.artifact.load import load_over_tokens
from compiler.artifact.manifest import sealed
from compiler.artifact.numbers_config import NumberInput
from compiler.artifact.numeric import numeric_stack

X, N, PLACE = numbers(Real(-8, 8, 2), "x"), numbers(Int(-9, 9), "n"), numbers(OneHot(4), "position")
CIRCUITS = {
    "product": dot(X, X) * N,
    "exact": N.cumsum() * N,
    "bank": latch_bank(concatenate(X, N), PLACE),
    "linear": 3 * X.shift(2) - 1,
    "halved": fading_sum(N, 0.5),
}


def compiled(name: str, target: str = "mamba"):
    return compiler.compile(Circuit(name, CIRCUITS[name], length=4), target)


def values(made, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    drawn = {"x": rng.uniform(-8, 8, (5, 4, 2)).astype(np.float32), "n": rng.integers(-9, 10, (5, 4, 1))}
    names = {record.name for record in numeric_stack(made).inputs}
    return {name: array for name, array in drawn.items() if name in names}


def reseal(directory: Path) -> None:
    """What an attacker does who knows how checkpoints are sealed."""
    content = sealed(json.loads((directory / MANIFEST).read_text()), directory)
    (directory / MANIFEST).write_text(json.dumps(content, sort_keys=True, indent=2, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("name", CIRCUITS)
def test_a_saved_model_gives_the_same_numbers(name: str, tmp_path: Path) -> None:
    made = compiled(name)
    made.save(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {MANIFEST, CARD, GRAPH, *NUMBERS_FILES}
    loaded = compiler.load(tmp_path / "out")
    assert np.array_equal(loaded.run(values(made)), numeric_stack(made).run(values(made)))
    assert loaded.manifest.promise.inputs == list(loaded.inputs)
    assert differences(tmp_path / "out", Artifact.of(made)) == []


def test_more_positions_than_promised_are_refused(tmp_path: Path) -> None:
    made = compiled("exact")
    made.save(tmp_path / "out")
    for model in (compiler.load(tmp_path / "out"), numeric_stack(made)):
        with pytest.raises(ValueError, match="the inputs have 5 positions, and the promise is for at most 4"):
            model.run({"n": np.zeros((1, 5, 1))})


def test_an_exact_circuit_on_mamba2_lives_on(tmp_path: Path) -> None:
    made = compiler.compile(Circuit("sum", N.cumsum(), length=4), "mamba2")
    made.save(tmp_path / "out")
    loaded = compiler.load(tmp_path / "out")
    assert loaded.manifest.promise.level == "bit-exact"
    n = values(made)["n"]
    assert np.array_equal(loaded.run({"n": n}), n.cumsum(axis=1))


def test_the_same_circuit_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        compiled("product").save(tmp_path / name)
    for name in (*NUMBERS_FILES, CARD, GRAPH, MANIFEST):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_changed_weight_is_found_even_if_sealed_again(tmp_path: Path) -> None:
    made = compiled("product")
    made.save(tmp_path / "out")
    weights = tmp_path / "out" / "model.safetensors"
    tensors = load_file(weights)
    tensors["head.weight"][0, -1] += 2.0**-20
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="damaged"):
        compiler.load(tmp_path / "out")
    reseal(tmp_path / "out")
    compiler.load(tmp_path / "out")
    assert differences(tmp_path / "out", Artifact.of(made)) == ["its weights head.weight differ"]


@pytest.mark.parametrize("path", [("promise", "length"), ("promise", "error_bound"), ("sizes", "d_inner")])
def test_a_changed_claim_is_found(path: tuple[str, str], tmp_path: Path) -> None:
    made = compiled("product")
    made.save(tmp_path / "out")
    manifest = tmp_path / "out" / MANIFEST
    content = json.loads(manifest.read_text())
    content[path[0]][path[1]] = content[path[0]][path[1]] / 2 if path[1] == "error_bound" else 3
    manifest.write_text(json.dumps(content))
    reseal(tmp_path / "out")
    (found,) = differences(tmp_path / "out", Artifact.of(made))
    assert ".".join(path) in found


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mixer": "s4d"}, "mixer"),
        ({"blocks": [{}]}, "another d_model"),
        ({"outputs": 0}, "outputs"),
        ({"d_model": 1 << 40}, "d_model"),
        ({"inputs": []}, "inputs stand"),
        ({"auto_map": {}}, "auto_map"),
        ({"blocks": [{"d_model": 8}] * 1000}, "2000 layers"),
    ],
)
def test_a_hostile_config_is_refused(change: dict, reason: str, tmp_path: Path) -> None:
    compiled("product").save(tmp_path / "out")
    path = tmp_path / "out" / "config.json"
    config = json.loads(path.read_text())
    if reason == "2000 layers":
        change = {"blocks": config["blocks"] * 1000}
    path.write_text(json.dumps(config | change))
    reseal(tmp_path / "out")
    with pytest.raises(CheckpointError, match=reason):
        compiler.load(tmp_path / "out")


def test_what_has_no_saved_form_is_refused_in_a_sentence(tmp_path: Path) -> None:
    twice = numbers(Int(0, 3), "n") + numbers(Int(0, 3), "n")
    with pytest.raises(CompileError, match="two of its inputs are called 'n'"):
        compiler.compile(Circuit("twice", twice, length=4)).save(tmp_path / "out")
    with pytest.raises(CompileError, match="compile it for mamba"):
        compiler.compile(Circuit("sum", N.cumsum(), length=4), "mamba-delta-t").save(tmp_path / "out")


def test_values_are_given_by_name(tmp_path: Path) -> None:
    compiled("bank").save(tmp_path / "out")
    loaded = compiler.load(tmp_path / "out")
    x, n = np.ones((1, 4, 2)), np.ones((1, 4, 1))
    places = np.eye(4)[None]
    assert np.array_equal(loaded.run({"x": x, "n": n}), loaded.run({"x": x, "n": n, "position": places}))
    with pytest.raises(ValueError, match="there is no numeric input 'y'; the inputs are x, n, position"):
        loaded.run({"y": x})
    with pytest.raises(ValueError, match="'n' has no values"):
        loaded.run({"x": x})
    with pytest.raises(ValueError, match="must be an integer from -9 to 9"):
        loaded.run({"x": x, "n": n / 2})
    with pytest.raises(ValueError, match=r"'x' has the shape \(1, 4, 1\), and \(1, 4, 2\) is needed"):
        loaded.run({"x": n, "n": n})
    for few in (x[0], x[0, 0], x[None]):
        with pytest.raises(ValueError, match=r"and \(sequences, positions, 2\) is needed"):
            loaded.run({"x": few, "n": n})


@pytest.mark.parametrize(
    "lo, hi, said",
    [
        (-(2.0**24), 2.0**24, "an integer from -16777216 to 16777216"),
        (0.0, 1.0, "an integer from 0 to 1"),
        (-(2.0**24), 2.0**100, "an integer from -16777216 to 1.26765e+30"),
        (None, 1234567.0, "an integer to 1234567"),
    ],
)
def test_bounds_of_integers_are_shown_whole(lo: float | None, hi: float, said: str) -> None:
    assert NumberInput("x", True, lo, hi, [0]).kind == said


def test_a_model_over_numbers_writes_no_tokens(tmp_path: Path) -> None:
    compiled("exact").save(tmp_path / "out")
    with pytest.raises(CheckpointError, match="holds a model over numbers, and only one over tokens writes"):
        compiler.generate(tmp_path / "out", "a")
    with pytest.raises(CheckpointError, match="one over tokens is needed"):
        load_over_tokens(tmp_path / "out")
