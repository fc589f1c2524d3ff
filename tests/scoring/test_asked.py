"""Answers are scored where a checkpoint's task asks, as verify has it, or its author's function; else it is said."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from compiler import Alphabet, Circuit, InputLanguage, Tokens, compile, readout_integer
from constructions.checkpoints.built import build
from constructions.checkpoints.saved import rebuild
from constructions.command.cli import command_line
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.lists import LongestIncreasingSubsequence
from constructions.copy_dp.local import Fibonacci
from constructions.copy_dp.phonebook import Phonebook
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.copy_dp.tables import ShortestPath
from constructions.copy_dp.words import EditDistance
from constructions.scoring import asked
from constructions.scoring.asked import KnownInputs, StatedInputs, inputs_of
from constructions.scoring.build import problem_of
from constructions.scoring.evaluate import score
from constructions.scoring.methods.baselines import oracle
from constructions.scoring.truth import Truth
from constructions.scoring.twin import trained
from constructions.token_selection.selection import TokenSelection
from verify.tasks.task import IGNORED

LETTERS = Alphabet.of("a", "b", *(str(n) for n in range(9)))


def counted(place: Path, task=None, longest: int = 8) -> Path:
    """The checkpoint of a count of a's."""
    number = Tokens(LETTERS).is_in("a").cumsum().named("seen")
    answer = readout_integer(number, LETTERS, {str(n): n for n in range(9)})
    language = InputLanguage.of(LETTERS, "any", [("any", "any", ("a", "b"))], longest, "strings of a and b")
    compile(Circuit("counted", answer, language), "mamba").save(place, task=task)
    return place


def at_a(tokens: list[str]) -> str | None:
    return str(tokens.count("a")) if tokens[-1] == "a" else None


def everywhere(tokens: list[str]) -> str:
    return str(tokens.count("a"))


def told(directory: Path, capsys) -> str:
    command_line()(["score", str(directory), "--method", "oracle", "--json"], standalone_mode=False)
    return json.loads(capsys.readouterr().out)["scored"]


def test_a_task_of_ones_own_is_asked_where_it_answers(tmp_path, capsys):
    directory = counted(tmp_path / "own", at_a)
    one = problem_of(directory)
    a = LETTERS.index("a")
    assert ((one.given.answers != IGNORED) == (one.given.ids == a)).all()
    first = next(iter(one.held.values()))
    assert ((first.answers != IGNORED) == (first.base == a)).all()
    assert told(directory, capsys) == "where at_a answers, on sequences of answers.json"
    assert score(one, oracle(one)).interchange == score(one, oracle(one)).faithfulness == 1


def test_where_no_task_is_stated_it_is_said_what_is_scored(tmp_path, capsys):
    directory = counted(tmp_path / "own")
    assert told(directory, capsys) == asked.UNTOLD
    assert (problem_of(directory).given.answers != IGNORED).all()


def test_a_function_that_answers_everything_is_asked_everywhere(tmp_path, capsys):
    directory = counted(tmp_path / "own", everywhere)
    assert told(directory, capsys).startswith("everywhere, for everywhere answers all ")
    one, language = problem_of(directory), rebuild(directory).compiled.source.token_language
    assert np.array_equal(one.given.ids.numpy(), language.sample(128, 8, 0))


STATED = [
    EditDistance(length=2, distinct_letters=2),
    Fibonacci(length=5),
    ShortestPath(nodes=3),
    Copy(n=3, vocab=2),
    SelectiveCopy(n=2, vocab=2, length=8),
    Phonebook(names=2, entries=2, digits=1),
]


@pytest.mark.parametrize("construction", STATED, ids=lambda c: c.name)
def test_the_stated_task_asks_where_the_task_of_verify_does(construction):
    """Two programs: the checker's reading of a claim, and the solver that verify runs."""
    found = inputs_of(build(construction))
    assert isinstance(found, StatedInputs)
    for batch in construction.tasks()[0].random(60, 0):
        assert np.array_equal(found.asked(batch.tokens), batch.labels != IGNORED)
    mask = found.asked(found.draw(128, 0))
    assert 60 < mask.sum() < 0.7 * mask.size  # prompts, and what stands behind the end, are not asked


def test_a_task_without_a_claim_is_asked_as_verify_draws_it():
    construction = LongestIncreasingSubsequence(length=2)
    built = build(construction)
    found = inputs_of(built)
    assert isinstance(found, KnownInputs) and found.says.startswith("where the task asks: lis")
    truth = Truth(built.compiled, found)
    rows = {
        tuple(ids): tuple(labels)
        for batch in construction.tasks()[0].random(asked.DRAWN, 0)
        for ids, labels in zip(
            batch.tokens[:, : found.length].tolist(), batch.labels[:, : found.length].tolist(), strict=True
        )
    }
    ids = truth.draw(50, 3)
    assert np.array_equal(truth.answers(ids), np.array([rows[tuple(row)] for row in ids.tolist()]))


def test_where_a_claim_hardly_asks_verify_draws():
    found = inputs_of(build(TokenSelection(size=8, values=4, length=16)))
    assert isinstance(found, KnownInputs) and found.asked(found.draw(100, 0)).sum() > 50


def test_inputs_grow_until_one_is_asked():
    grown = inputs_of(build(Phonebook()))
    assert grown.length == 24 and grown.asked(grown.draw(128, 0)).sum() > 64
    rows = [([0] * 100, [IGNORED] * 29 + [0] + [IGNORED] * 70)]
    assert KnownInputs.of(rows, "").length == 48
    assert KnownInputs.of([([0] * 100, [IGNORED] * 99 + [0])], "").length == 96


def test_what_is_held_out_is_not_drawn_elsewhere():
    found = inputs_of(build(LongestIncreasingSubsequence(length=2)))
    drawn = [
        {tuple(row) for row in found.draw(20, seed, held).tolist()}
        for seed, held in ((0, False), (1, False), (2, True))
    ]
    assert not (drawn[0] | drawn[1]) & drawn[2] and drawn[0] != drawn[1] and len(drawn[2]) > 5


def test_a_task_that_asks_nothing_is_refused(monkeypatch):
    nothing = KnownInputs({(0, 0): (False, False)}, "nowhere")
    monkeypatch.setattr(asked, "_inputs_of", lambda built: nothing)
    with pytest.raises(ValueError, match="nothing is asked in inputs of 2 tokens"):
        inputs_of(build(Fibonacci(length=3)))


def test_a_twin_of_a_task_of_ones_own_is_asked_where_it_answers(tmp_path):
    built = rebuild(counted(tmp_path / "own", at_a))
    twin = trained(Truth(built.compiled, inputs_of(built)), seed=0, steps=1)
    assert 0 < twin.faithfulness.positions < 8 * twin.faithfulness.sequences
    rarely = KnownInputs({row: (False,) * 7 + (row[0] > 0,) for row in inputs_of(built).rows}, "")
    with pytest.raises(ValueError, match="less often than once an input"):
        trained(Truth(built.compiled, rarely), seed=0, steps=1)
