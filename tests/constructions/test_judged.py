"""Wrong answers beside a promise of most answers: none under a proof, and not more than the rate allows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

from constructions.checkpoints import artifact, judged
from constructions.checkpoints.built import build
from constructions.checkpoints.guarantee import NOT_ASKED, proof_of
from constructions.command.cli import app
from constructions.selectivity.mqar import MQAR
from verify.check import Verification


def saved(place: Path, **sizes: Any) -> Path:
    built = build(MQAR(guarantee="random", **sizes))
    artifact.save(built, artifact.not_run(built), place, None, proof_of(built))
    return place


def verified(directory: Path, labels: np.ndarray, inputs: np.ndarray, *options: str) -> Any:
    np.savez(directory.parent / "data.npz", inputs=inputs, labels=labels)
    return CliRunner().invoke(app, ["verify", str(directory), "--data", str(directory.parent / "data.npz"), *options])


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_wrong_answer_contradicts_a_proof_of_all(tmp_path, options):
    """kappa = 2 has codes that never fail, and the manifest says that all answers are proved."""
    directory = saved(tmp_path / "proved", kappa=2, vocab=4, key_code=4)
    kept = json.loads((directory / "construction.json").read_text())["guarantee"]
    assert kept["answers"] == "random" and kept["certificate"]["holds"]
    sequence = np.array([[1, 4, 1]])  # k0 v1 k0
    told = verified(directory, np.array([[-100, -100, 5]]), sequence, *options)
    assert told.exit_code == 1
    assert "1 of 1 answers are wrong, and every answer is proved right on the promise's inputs" in told.stderr
    assert not options or "proved right" in json.loads(told.stdout)["wrong"]
    assert verified(directory, np.array([[-100, -100, 4]]), sequence, *options).exit_code == 0


def test_wrong_answers_beyond_the_rate_and_within_it(tmp_path):
    directory = saved(tmp_path / "codes", kappa=8, vocab=8, key_code=16)
    assert not json.loads((directory / "construction.json").read_text())["guarantee"]["certificate"]["holds"]
    sequences = np.tile([[1, 9, 1]], (20, 1))  # k0 v0 k0: with one pair nothing interferes, so v0 is the answer
    right, wrong = np.full((20, 3), -100), np.full((20, 3), -100)
    right[:, -1], wrong[:, -1] = 9, 10
    assert verified(directory, right, sequences).exit_code == 0
    told = verified(directory, wrong, sequences)
    assert told.exit_code == 1 and "so this contradicts the promise" in told.stderr
    right[0, -1] = 10
    told = verified(directory, right, sequences)
    assert told.exit_code == 0 and "1 of 20 answers are wrong" in told.stderr and "the rate allows that" in told.stderr


@pytest.mark.parametrize("kappa, code", [(8, 16), (16, 0), (16, 24)])
def test_a_code_fails_no_more_than_its_rate_allows(kappa, code):
    built = build(MQAR(kappa=kappa, vocab=8, key_code=code, guarantee="random"))
    results = artifact.verify(built, built.stack(), "random", 200, seed=3)
    assert artifact.passed(built, results), judged.judged(built, sum(results.values(), Verification()), NOT_ASKED)


@pytest.mark.parametrize("wrong, of, rate", [(3, 10, 0.1), (9, 20, 0.05), (20, 20, 0.3), (1, 5, 0.001)])
def test_the_chance_is_a_bound_of_the_binomial_tail(wrong, of, rate):
    bound, tail = judged.chance_of(wrong / of, rate, of), float(binom.sf(wrong - 1, of, rate))
    assert tail * (1 - 1e-12) <= bound <= 30 * tail  # but for the rounding of both
    assert judged.chance_of(rate / 2, rate, of) == 1.0 and judged.chance_of(0.5, 0.0, of) == 0.0
