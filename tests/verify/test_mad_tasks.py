"""The formats that users bring: counts by enumeration, labels by walks of their own."""

from __future__ import annotations

import numpy as np
import pytest

from verify.tasks.fuzzy import FuzzyRecall
from verify.tasks.mad import InContextRecall, MadCopying
from verify.tasks.mad_memory import Compression, Memorization, random_map
from verify.tasks.mqar import BenchmarkLayout, ForgettingLayout, mqar_oracle
from verify.tasks.recorded import Recorded
from verify.tasks.task import IGNORED

TASKS = [
    InContextRecall(2, 2, 0, 8),
    InContextRecall(2, 2, 1, 6, 0.3),
    InContextRecall(1, 3, 2, 6, 0.3),
    InContextRecall(2, 2, 0, 8, every=True),
    MadCopying(2, 2, 7),
    MadCopying(3, 2, 9, selective=True),
    ForgettingLayout(2, 2, 12, 2, updates=1),
    ForgettingLayout(3, 3, 10, 2, updates=1),
    Compression(3, 2, 6),
    Memorization((1, 0, 1), 2, 6),
    FuzzyRecall(2, 2, 1, 1, 9),
    FuzzyRecall(2, 2, 2, 2, 12),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.describe()[:60])
def test_every_sequence_once_and_as_many_as_told(task) -> None:
    rows = [(tuple(tokens), tuple(labels)) for tokens, labels in task.rows()]
    assert len(rows) == task.exhaustive_count() == len(set(rows))
    assert {len(tokens) for tokens, _ in rows} == {len(labels) for _, labels in rows}
    assert all(any(label != IGNORED for label in labels) for _, labels in rows)


@pytest.mark.parametrize("task", TASKS[:10], ids=lambda task: task.describe()[:60])
def test_random_sequences_are_among_them(task) -> None:
    rows = {(tuple(tokens), tuple(labels)) for tokens, labels in task.rows()}
    for batch in [*task.random(40, 0), *task.adversarial()]:
        for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
            assert (tuple(tokens), tuple(labels)) in rows, batch.case


def test_the_suites_shift_by_one() -> None:
    """k1 v k0 w | k1: the label stands at the key that is asked, the prefix before it."""
    assert InContextRecall(2, 2, 1, 6).assemble([(1, 3), (0, 2)], 1) == (
        [1, 3, 0, 2, 5, 1],
        [IGNORED] * 5 + [3],
    )
    every = InContextRecall(2, 2, 0, 8, every=True).assemble([(1, 3), (0, 2), (1, 3)], 0)
    assert every == ([1, 3, 0, 2, 1, 3, 0], [IGNORED] * 4 + [3, IGNORED, 2])


def test_copying_by_hand() -> None:
    assert MadCopying(2, 3, 7).assemble([2, 0], (0, 1)) == ([2, 0, 3, 3, 4, 3, 3], [IGNORED] * 5 + [2, 0])


def test_compression_and_memorization_by_hand() -> None:
    assert Compression(3, 2, 6).assemble([1, 0, 1], [2, 1]) == ([1, 0, 1, 2, 5, 4], [IGNORED] * 4 + [1, 0])
    assert Memorization((1, 0), 2, 4).assemble([1, 0]) == ([1, 4, 0, 4], [IGNORED, 2, IGNORED, 3])


def test_facts_are_in_the_weights_or_nowhere() -> None:
    """Two maps ask the same sequences and want different answers: no model is right for both."""
    one, other = (Memorization(facts, 2, 4) for facts in ((0, 1), (1, 0)))
    for (tokens, labels), (same, wanted) in zip(one.rows(), other.rows(), strict=True):
        assert tokens == same and all(a != b for a, b in zip(labels[1::2], wanted[1::2], strict=True))
    assert random_map(9, 4, 0) == random_map(9, 4, 0) != random_map(9, 4, 1)


@pytest.mark.parametrize("task", [ForgettingLayout(9, 12, 60, 6, updates=3), ForgettingLayout(4, 4, 24, 4, updates=4)])
def test_the_last_value_counts(task) -> None:
    different = 0
    for batch in [*task.random(50, 1), *task.adversarial()]:
        for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
            answers = mqar_oracle(tokens, task.kappa, task.vocab, "last")
            firsts = mqar_oracle(tokens, task.kappa, task.vocab, "first")
            asked = [t for t, label in enumerate(labels) if label != IGNORED]
            assert len(asked) == task.pairs and all(answers[t] == labels[t] for t in asked)
            different += sum(firsts[t] != labels[t] for t in asked)
    assert different > 0


def test_no_circuit_is_right_where_filler_may_rebind() -> None:
    """One sequence, two labels: k0 v1 is an update in a context of three pairs, and filler behind one of two."""
    updated, labels = ForgettingLayout(2, 2, 10, 2, updates=1).forgetting([1, 2], [3, 4], [0, 1], [0], [4])
    filled, others = BenchmarkLayout(2, 2, 10, 2, filler="vocabulary").assemble([1, 2], [3, 4], [1, 2], [1, 4, 0, 0])
    assert updated == filled and (labels[6], others[6]) == (4, 3)


def test_fuzzy_labels_by_a_walk() -> None:
    """Split runs of key tokens and of value tokens, remember, and read the probe off."""
    task = FuzzyRecall(4, 3, 2, 3, 40)
    for batch in [*task.random(30, 0), *task.adversarial()]:
        for tokens, labels in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True):
            text = tokens[: tokens.index(8)]
            words: list[list[int]] = []
            for before, token in zip([7, *text], text, strict=False):
                if token < 7:
                    new = before == 7 or (before < 4) != (token < 4)
                    words.append([token]) if new else words[-1].append(token)
            known = {tuple(k): v for k, v in zip(words[::2], words[1::2], strict=True)}
            start = tokens.index(8) + 1
            wanted = known[tuple(tokens[start : start + 2])]
            assert [label for label in labels if label != IGNORED] == wanted
            assert labels.index(wanted[0], start) == start + 1


def test_files_of_ones_own(tmp_path) -> None:
    inputs, labels = np.array([[0, 1, 2], [2, 1, 0]]), np.array([[-100, -100, 1], [-100, 0, -100]])
    np.savez(tmp_path / "d.npz", inputs=inputs, labels=labels)
    task = Recorded(tmp_path / "d.npz", 3)
    (batch,) = task.exhaustive()
    assert batch.tokens.tolist() == inputs.tolist() and batch.labels.tolist() == [[-100, -100, 1], [-100, 0, -100]]
    assert [len(b) for b in task.random(5, 0, batch_size=1)] == [1, 1] and task.exhaustive_count() == 2
    with pytest.raises(ValueError, match="token ids from 0 to 1"):
        Recorded(tmp_path / "d.npz", 2)
    np.savez(tmp_path / "n.npz", inputs=inputs, labels=np.minimum(labels, -1))
    with pytest.raises(ValueError, match="or -100 where nobody asks"):
        Recorded(tmp_path / "n.npz", 3)
    np.savez(tmp_path / "e.npz", inputs=inputs)
    with pytest.raises(ValueError, match="has no array labels"):
        Recorded(tmp_path / "e.npz", 3)
    np.savez(tmp_path / "f.npz", inputs=inputs, labels=labels[:1])
    with pytest.raises(ValueError, match="one common shape"):
        Recorded(tmp_path / "f.npz", 3)
