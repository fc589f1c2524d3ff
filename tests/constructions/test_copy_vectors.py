"""Theorem 2 of paper B for vectors of numbers: one block, bits for integers, a proved bound for real numbers."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import compiler
from compiler.artifact.numeric import numeric_stack
from compiler.artifact.package import bare_sizes
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.command.cli import app
from constructions.copy_dp.copy_vectors import CopyVectors


def looked_up(x: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """y_i = x_pos(i), one by one; what has not come reads as 0."""
    found = np.zeros_like(x)
    for row, i in product(range(len(x)), range(x.shape[1])):
        if asked[row, i] <= i:
            found[row, i] = x[row, asked[row, i]]
    return found


def run(made, x: np.ndarray, asked: np.ndarray) -> np.ndarray:
    one_hot = np.eye(x.shape[1])
    places = np.tile(one_hot[None], (len(x), 1, 1))
    return numeric_stack(made).run({"x": x, "place": places, "asked": one_hot[asked]})


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
def test_integers_are_copied_bit_for_bit_from_every_place(arch: str) -> None:
    """All of pos: {1 … 3}³, those that ask for what has not come among them."""
    made = CopyVectors(n=3, width=2, largest=1000, integers=True, arch=arch).compiled()
    asked = np.array(list(product(range(3), repeat=3)))
    rng = np.random.default_rng(0)
    x = rng.integers(-1000, 1001, (len(asked), 3, 2)).astype(float)
    x[::5] = 1000 * np.sign(x[::5] + 0.5)
    assert len(made.blocks) == 1 and made.error_bound == 0
    assert np.array_equal(run(made, x, asked), looked_up(x, asked))


@pytest.mark.parametrize("arch", ["mamba", "mamba2"])
@pytest.mark.parametrize("largest", [1.0, 3.7, 2.0**20])
def test_real_numbers_are_copied_within_the_bound_at_every_size(largest: float, arch: str) -> None:
    made = CopyVectors(n=6, width=3, largest=largest, arch=arch).compiled()
    rng = np.random.default_rng(1)
    for size in (largest, largest / 2**10, largest / 2**30):
        x = np.float32(rng.uniform(-size, size, (200, 6, 3)) * 0.999).astype(float)
        asked = rng.integers(0, 6, (200, 6))
        off = np.abs(run(made, x, asked) - looked_up(x, asked)).max()
        assert off <= made.error_bound_within(size) <= 0.01 * size + 1e-6, "a share of M, and not vacuous"
        assert off <= 2e-6 * largest


@pytest.mark.parametrize("n, width, arch", [(1, 1, "mamba"), (5, 2, "mamba"), (16, 4, "mamba"), (16, 4, "mamba2")])
def test_one_block_of_the_theorem_s_size(n: int, width: int, arch: str) -> None:
    construction = CopyVectors(n=n, width=width, arch=arch)
    made, (stated, source) = construction.compiled(), construction.stated_bound()
    (size,) = bare_sizes(made)
    assert len(made.blocks) == stated["layers"] == 1 and "one block of N columns" in source
    assert size.d_model <= stated["d_model"] and size.d_inner <= stated["d_inner"] and size.d_state <= stated["d_state"]
    assert construction.bound() == (stated if arch == "mamba" else {})  # the theorem's mixer


def test_a_model_that_copies_another_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    built = build(CopyVectors(n=4, width=2))
    stack = built.stack()
    real = type(stack).run
    monkeypatch.setattr(type(stack), "run", lambda self, *given: np.roll(real(self, *given), 1, axis=1))
    assert not artifact.passed(built, artifact.verify(built, stack, "random", 16, 0))


def test_the_command_saves_what_verifies(tmp_path: Path) -> None:
    out = tmp_path / "copy"
    options = ["--n", "4", "--width", "2", "--samples", "8", "--out", str(out), "--json"]
    told = CliRunner().invoke(app, ["copy-vectors", *options])
    assert told.exit_code == 0, told.output
    assert json.loads(told.output)["layers"] == 1 and json.loads(told.output)["level"] == "bounded-error"
    assert CliRunner().invoke(app, ["verify", str(out), "--samples", "8"]).exit_code == 0
    x, eye = np.float32([[[0.25, -1], [0.5, 0.75], [-0.125, 1]]]), np.eye(4)[:3][None]
    found = compiler.load(out).run({"x": x, "place": eye, "asked": np.eye(4)[[[0, 0, 1]]]})
    assert np.abs(found - x[:, [0, 0, 1]]).max() < 1e-6


def test_two_places_at_once_are_refused(tmp_path: Path) -> None:
    """Three places of the largest number gave 37748728, and the circuit 37748727: the promise was for any flags."""
    construction = CopyVectors(n=4, width=1, largest=4194303, integers=True)
    built = build(construction)
    artifact.save(built, {}, tmp_path / "out")
    x, ones, few = np.full((1, 4, 1), 4194303.0), np.ones((1, 4, 4)), np.tile([1.0, 1, 1, 0], (1, 4, 1))
    for model in (built.stack(), compiler.load(tmp_path / "out")):
        for place, asked in ((ones, np.eye(4)[None]), (np.eye(4)[None], few)):
            with pytest.raises(ValueError, match="has a 1 in lanes 0, 1, 2.* and it must be one-hot or all 0"):
                model.run({"x": x, "place": place, "asked": asked})


def test_which_answers_are_right_is_said_everywhere(tmp_path: Path) -> None:
    """A place that is written twice gives the sum of two vectors, as the circuit does."""
    out = tmp_path / "copy"
    options = ["copy-vectors", "--n", "4", "--width", "1", "--integers", "--largest", "9", "--samples", "8"]
    where = "where each place is written once, and pos(i) ≤ i"
    shown = CliRunner().invoke(app, [*options, "--out", str(out)])
    tested = f"all that were tested ({compiler.load(out).manifest.verification.queries}), {where}"
    assert "(0)" not in tested and f"answers right: {tested}" in " ".join(shown.output.split())
    told = json.loads(CliRunner().invoke(app, [*options, "--json"]).output)["guarantee"]
    assert told["answers"] == "tested" and told["asks_where"].startswith(where)
    assert told["domain"].startswith("x: an integer from -9 to 9; place: one-hot or all 0; asked: one-hot or all 0;")
    saved = compiler.load(out).manifest.guarantee
    assert saved is not None and (saved.answers, saved.asks_where) == ("tested", told["asks_where"])
    assert f"Answers right: {tested}" in (out / "README.md").read_text()
    help = " ".join(CliRunner().invoke(app, ["copy-vectors", "--help"]).output.split())
    assert "one-hot or all 0" in help and "each place is written once" in help
    assert CliRunner().invoke(app, ["verify", str(out), "--samples", "8"]).exit_code == 0
    first = np.eye(4)[[[0, 0]]]
    found = compiler.load(out).run({"x": np.array([[[2.0], [5.0]]]), "place": first, "asked": first})
    assert found.ravel().tolist() == [2, 7]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"arch": "s4d"}, "arch"),
        ({"n": 0}, "n = 0 is too small"),
        ({"n": 257}, "n = 257 is too large"),
        ({"largest": 0.0}, "largest = 0.0 must lie above 0"),
        ({"largest": float("nan")}, "largest = nan must lie above 0"),
        ({"largest": 1.5, "integers": True}, "no whole number"),
    ],
)
def test_sizes_that_are_refused(changed: dict, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        CopyVectors(**changed).circuit()
