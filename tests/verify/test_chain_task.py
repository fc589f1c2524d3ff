"""Chain tasks: ragged rows, chains outside of the language, and wrong chains are found."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.copy_dp.copy import Copy
from verify.generation import check_generation
from verify.tasks.chain import ChainTask
from verify.tasks.solvers.copying import CopySolver
from verify.tasks.solvers.recall import SelectiveCopySolver
from verify.tasks.task import IGNORED

COPY = Copy(n=3, vocab=2)


class Swapped(CopySolver):
    """A solver that is wrong for every prompt but the empty one."""

    def chain(self, prompt):
        return [{"x0": "x1", "x1": "x0"}.get(letter, letter) for letter in super().chain(prompt)]


def task(solver=CopySolver, language=None) -> ChainTask:
    return ChainTask(solver(3, ["x0", "x1"]), language or COPY.language())


def test_rows_of_different_lengths_stand_in_one_batch():
    (batch,) = task().exhaustive(batch_size=100)
    letters = COPY.alphabet()
    row = 0  # the empty string
    assert letters.decode(batch.tokens[row][:1]) == "|" and batch.labels[row][0] == letters.index(".")
    assert (batch.labels[row][1:] == IGNORED).all() and (batch.tokens[row][1:] == letters.index(".")).all()
    asked = (batch.labels != IGNORED).sum(axis=1)
    assert sorted(asked) == sorted(length + 1 for length in range(4) for _ in range(2**length))


def test_every_label_is_the_next_token():
    for batch in task().random(40, seed=1, batch_size=7):
        for tokens, labels in zip(batch.tokens, batch.labels, strict=True):
            places = np.flatnonzero(labels != IGNORED)
            assert (tokens[places[1:]] == labels[places[:-1]]).all()


def test_the_first_chains_do_not_depend_on_how_many_are_drawn():
    assert list(task().cases(5, seed=3)) == list(task().cases(9, seed=3))[:5]


def test_a_chain_that_leaves_the_language_is_refused():
    shorter = COPY.language().with_length(5)
    with pytest.raises(ValueError, match="leaves the language that bounds the circuit .* at most 5 tokens"):
        task(language=shorter).ids(["x0", "x1", "x0", "|"])


def test_wrong_chains_fail_the_forced_pass_and_the_generation(tmp_path):
    built = build(COPY)
    artifact.save(built, {}, tmp_path / "c")
    wrong = task(Swapped)
    assert all(run.wrong is None for run in check_generation(task(), tmp_path / "c", seed=0))
    assert all(run.wrong is not None for run in check_generation(wrong, tmp_path / "c", seed=0))
    results = artifact.verify(replace(built, construction=_With(wrong)), built.stack(), "exhaustive", 1, seed=0)
    result = next(iter(results.values()))
    assert result.bit_exact and 0 < result.exact_sequences < result.sequences


class _With:
    """COPY with another task."""

    def __init__(self, other: ChainTask):
        self.tasks, self.promise, self.name = (lambda: [other]), COPY.promise, COPY.name
        self.asked_at = COPY.asked_at


@pytest.mark.parametrize(("longest", "kept", "letters"), [(5, 2, 2), (4, 4, 3), (6, 1, 2), (3, 0, 2), (0, 0, 1)])
def test_prompts_of_selective_copying_are_the_words_with_few_tokens(longest, kept, letters):
    solver = SelectiveCopySolver(longest, kept, [f"x{i}" for i in range(letters)])
    every = (word for length in range(longest + 1) for word in product(("_", *solver.letters), repeat=length))
    wanted = [(*word, "|") for word in every if sum(name != "_" for name in word) <= kept]
    assert list(solver.prompts()) == wanted and len(wanted) == solver.count()


def test_prompts_of_selective_copying_take_no_longer_than_there_are_some():
    """Of 3^16 words 3,009 are prompts: to go through all of them took 20 seconds of each disguise."""
    began = time.process_time()
    assert len(list(SelectiveCopySolver(16, 2, ["x0", "x1"]).prompts())) == 3009
    assert time.process_time() - began < 1
