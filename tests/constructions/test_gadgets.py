"""Lemmas 1–5 and Theorem 1 of paper B by their commands, and the words of the lemmas against plain integers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from constructions.command.cli import app
from constructions.gadgets import copy_decay, lemmas


@pytest.mark.parametrize("word", lemmas.ON_INTEGERS, ids=lambda word: word.name)
def test_words_are_exact_on_integers(word: lemmas.Word) -> None:
    row = lemmas.on_integers(word, 9)
    assert row["wrong"] == 0 and row["proved"] and row["cases"] >= 19**2


@pytest.mark.parametrize("word", lemmas.ON_REALS, ids=lambda word: word.name)
def test_words_are_within_their_bound_on_reals(word: lemmas.Word) -> None:
    row = lemmas.on_reals(word, 2000)
    assert row["error"] <= row["bound"] <= 1e-3


def test_a_word_that_is_another_is_found() -> None:
    wrong = lemmas.Word("5", "[a > b]", lambda x, y, t: x >= y, lambda v: v["x"] > v["y"])
    assert lemmas.on_integers(wrong, 3)["wrong"] == 7


def test_the_scale_of_the_paper_is_too_large_for_float32() -> None:
    rows = {row["of_epsilon"]: row for row in lemmas.silu_products(2000) if row["of_epsilon"]}
    best = min(lemmas.silu_products(2000), key=lambda row: row["error"])
    assert all(row["error"] <= row["bound"] for row in rows.values())
    assert rows[1e-3]["error"] > 1e-3 and rows[1e-5]["error"] > 0.1, "below ε, as Lemma 1 says of real arithmetic"
    within = {epsilon: row["error"] <= epsilon for epsilon, row in rows.items()}
    assert within == {epsilon: row["within"] for epsilon, row in rows.items()}
    assert within == {epsilon: epsilon > 0.003 for epsilon in (0.1, 0.01, 0.005, 0.002, 1e-3, 1e-5)}
    assert 64 <= best["scale"] <= 512 and best["error"] < 4e-5


def test_the_module_copies_within_the_bound() -> None:
    result = copy_decay.report(samples=500, length=12, window=3)
    assert result["good"]
    assert all(row["instances"] == 500 and row["module_off"] <= row["module_bound"] for row in result["rows"])
    fixed, by_token = ([row for row in result["rows"] if ("Δ" in row["decay"]) == found] for found in (False, True))
    assert all(row["tightness"] > 0.99 and row["module_bound"] < 0.01 for row in fixed) and len(fixed) == 3
    assert all(row["tightness"] > 0.85 and row["module_bound"] < 0.05 for row in by_token) and len(by_token) == 2
    assert all(row["named"] > 0.5 for row in result["broken"])


def test_a_module_that_is_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = copy_decay.module_outputs
    monkeypatch.setattr(copy_decay, "module_outputs", lambda *a: (real(*a)[0] * 1.5, 0.0))
    assert not copy_decay.report(samples=200, length=12, window=3)["good"]


@pytest.mark.parametrize(("name", "options"), [("gadgets", ["--largest", "4"]), ("copy-decay", ["--length", "8"])])
def test_the_commands(name: str, options: list[str], tmp_path: Path) -> None:
    run, picture = CliRunner().invoke, tmp_path / "it.png"
    done = run(app, [name, *options, "--samples", "300", "--json", "--plot", str(picture)])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["good"] and picture.stat().st_size > 1000
    assert run(app, [name, *options, "--samples", "100"]).exit_code == 0


def test_a_window_beyond_the_sequence_is_refused() -> None:
    done = CliRunner().invoke(app, ["copy-decay", "--length", "4", "--window", "5"])
    assert isinstance(done.exception, ValueError) and "use at most 4" in str(done.exception)


@pytest.mark.parametrize(
    "length, window, delta, samples",
    [
        (24, 6, 0.03, 300),
        (1, 1, 0.25, 2),
        (2, 1, 2**-12, 300),
        (12, 12, 0.03, 20),
        (64, 16, 0.1, 50),
        (256, 4, 0.03, 9),
    ],
)
def test_every_window_that_float32_reaches_runs(length: int, window: int, delta: float, samples: int) -> None:
    with np.errstate(all="raise", under="ignore"):
        result = copy_decay.report(samples, length, window, delta)
    assert result["good"] and all(row["module_bound"] < row["largest_bound"] for row in result["rows"])
    assert len(result["broken"]) == 3 + (window < length), "nothing lies outside of a window over all positions"
    json.dumps(result, allow_nan=False)


@pytest.mark.parametrize(
    "options, said",
    [
        (["--length", "64", "--window", "64"], "float32 may then be off by"),
        (["--length", "256", "--window", "256"], "keys of up to"),
        (["--length", "256", "--samples", "1000000"], "use at most 16384 samples"),
    ],
)
def test_what_no_float32_module_copies_is_refused(options: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["copy-decay", "--samples", "50", *options])
    assert isinstance(done.exception, ValueError) and said in str(done.exception)


def test_keys_stand_in_the_declared_range() -> None:
    """A token that has faded to α is read by a score of 1/α: the range grows with the window, by powers of two."""
    drawn = [copy_decay.draw(100, 40, window, 1 / 32, 7 / 8, seed=1, selective=True) for window in (4, 12, 24)]
    ranges = [copy_decay.key_range(instances) for instances in drawn]
    assert ranges == sorted(ranges) and ranges[0] == 2 and ranges[2] > 16
    for instances, reach in zip(drawn, ranges, strict=True):
        assert np.abs(instances.b).max() <= reach


def test_factors_that_depend_on_the_token_are_those_of_the_theorem() -> None:
    """a_t = decay^Δ_t, v_t = Δ_t·x_t, where Δ_t is 0, 1 and 3."""
    drawn = copy_decay.draw(40, 9, 3, 1 / 16, 7 / 8, seed=5, selective=True)
    steps = drawn.step[..., 0]
    assert set(np.unique(steps)) == {0, 1, 3} and np.allclose(drawn.a, (7 / 8) ** steps)
    report = drawn.report()
    assert report.holds.all() and (report.error <= report.bound).all()


def test_instances_are_the_same_for_the_same_seed() -> None:
    one, other = (copy_decay.draw(20, 8, 2, 1 / 16, None, seed=3) for _ in range(2))
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("a", "b", "c", "x", "pos", "rho"))
