"""Wrong answers beside a promise of most answers: none of those proved, and not more than the rate allows."""

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
from constructions.token_selection.copy_ngram import CopyNgram
from verify.check import Verification
from verify.checker.tasks.task import read_task


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


@pytest.fixture(scope="module")
def ngrams(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copies of two tokens by their 1-grams, whose proof is of contexts with one continuation."""
    place = tmp_path_factory.mktemp("ngrams") / "copy"
    built = build(CopyNgram(n=1, vocab=2, length=2))
    proof = proof_of(built)
    assert proof[0] is not None and proof[0]["holds"] and built.construction.asks_where()
    artifact.save(built, artifact.not_run(built), place, None, proof)
    return place


BEGIN, BAR, X0, X1 = 0, 1, 3, 4


@pytest.mark.parametrize(
    ("word", "position", "wrong", "exit_code"),
    [((X0, X1), 3, X1, 1), ((X0, X1), 4, X0, 1), ((X0, X0), 3, X1, 1), ((X0, X0), 4, X1, 0)],
    ids=["first token", "one follower", "first token again", "two followers"],
)
def test_a_proof_under_a_condition_speaks_of_the_answers_inside_of_it(ngrams, word, position, wrong, exit_code):
    """^ x0 x0 | x0: behind x0 stood x0 and |, so nothing is proved of what follows; the rate allows any answer."""
    sequence = np.array([[BEGIN, *word, BAR, *word[:1]]])
    labels = np.full_like(sequence, -100)
    labels[0, position] = wrong
    told = verified(ngrams, labels, sequence)
    where = "where a context has had one continuation"
    assert told.exit_code == exit_code, told.stderr
    if exit_code:
        assert f"1 of 1 answers are wrong, 1 of them {where}, and every answer is proved right there" in told.stderr
    else:
        assert f"1 of 1 answers are wrong, none of them {where}" in told.stderr and "the rate allows" in told.stderr


def test_a_build_that_contradicts_its_proof_says_so_and_saves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(CopyNgram, "asked_at", lambda self, tokens: np.ones(len(tokens), dtype=bool))
    options = ["--n", "1", "--vocab", "2", "--length", "2", "--out", str(tmp_path / "c")]
    told = CliRunner().invoke(app, ["copy-ngram", *options])
    assert told.exit_code == 1 and "and every answer is proved right there" in told.stderr
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_where_a_context_has_had_one_continuation_is_where_the_checker_answers(n):
    construction, rng = CopyNgram(n=n, vocab=3, length=4), np.random.default_rng(n)
    letters = construction.circuit().alphabet.tokens
    rule = read_task(construction.asks(), letters).task
    for length in (*range(1, 12), *[40] * 20):
        row = rng.choice(len(letters), size=length, p=[0.05, 0.05, 0.05, 0.5, 0.2, 0.15])
        assert construction.asked_at(row).tolist() == [answer is not None for answer in rule.answers(row.tolist())]


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
