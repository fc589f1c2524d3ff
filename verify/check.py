"""Running a model against a task's answers and against the interpreter's scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from verify.scores import Scored, Scores, Split, at_every_position, of_distinct_rows
from verify.tasks.task import IGNORED, Batch


@dataclass(frozen=True)
class Verification:
    """What was run and how it came out.

    sequences, queries: how many; correct: queries whose strictly highest score is the answer;
    exact_sequences: sequences with every query correct; bit_exact: whether all scores equalled
    the interpreter's, at every position; margin: the least lead of an answer over the best
    other token (negative where one was wrong); failure: (case, tokens, position) of the first
    wrong answer or differing score, None if there is none; within: whether all scores were as near as promised;
    share: the largest error of an output over what it may be, None where the promise is for bits.
    left_out, not_drawn: adversarial and random sequences that were not run, because all are beyond the budget.
    """

    sequences: int = 0
    queries: int = 0
    correct: int = 0
    exact_sequences: int = 0
    bit_exact: bool = True
    margin: float = float("inf")
    failure: tuple[str, list[int], int] | None = None
    within: bool = True
    share: float | None = None
    left_out: int = 0
    not_drawn: int = 0

    @property
    def accuracy(self) -> float:
        return self.correct / self.queries if self.queries else 1.0

    @property
    def passed(self) -> bool:
        return self.within and self.correct == self.queries

    def __add__(self, other: Verification) -> Verification:
        return Verification(
            self.sequences + other.sequences,
            self.queries + other.queries,
            self.correct + other.correct,
            self.exact_sequences + other.exact_sequences,
            self.bit_exact and other.bit_exact,
            min(self.margin, other.margin),
            self.failure or other.failure,
            self.within and other.within,
            max((s for s in (self.share, other.share) if s is not None), default=None),
            self.left_out + other.left_out,
            self.not_drawn + other.not_drawn,
        )

    def to_json(self) -> dict:
        """Plain values; None for what nothing was run for."""
        return {
            "sequences": self.sequences,
            "queries": self.queries,
            "accuracy": self.accuracy if self.queries else None,
            "exact_sequences": self.exact_sequences,
            "bit_exact": self.bit_exact if self.sequences else None,
            "margin": self.margin if np.isfinite(self.margin) else None,
        } | {
            name: value
            for name, value in {
                "share_of_bound": self.share,
                "left_out": self.left_out or None,
                "not_drawn": self.not_drawn or None,
            }.items()
            if value is not None
        }


@dataclass(frozen=True)
class CheckedForm:
    """One form of a model: its scores, what the reference's become in its vocabulary, and who hears how far it is.

    progress: told how many sequences each step finished.
    """

    scores: Scores
    widened: Callable[[np.ndarray], np.ndarray] = lambda scores: scores
    progress: Callable[[int], None] = lambda n: None


def check(
    model: Scores,
    reference: Scores,
    batches: Iterable[Batch],
    progress: Callable[[int], None] = lambda n: None,
    bound: float = 0.0,
) -> Verification:
    """Run every batch; `progress` is told how many sequences each step finished.

    bound: how far a score may be from the interpreter's, 0 where the promise is for bits.
    """
    return check_forms([CheckedForm(model, progress=progress)], reference, batches, bound)[0]


def check_forms(
    forms: Sequence[CheckedForm], reference: Scores, batches: Iterable[Batch], bound: float = 0.0
) -> list[Verification]:
    """`check` for every form of a model on the same sequences, for which the reference is asked once.

    Where the reference and all forms are `Split` and the promise is for bits, each distinct row is scored once.
    """
    totals = [Verification() for _ in forms]
    for batch in batches:
        found = [_Found(batch, bound) for _ in forms]
        for scored in _scored(forms, reference, batch.tokens, bound):
            for each, form, scores in zip(found, forms, scored.found, strict=True):
                each.add(scored, scores, form.widened(scored.expected))
        for i, form in enumerate(forms):
            totals[i] = totals[i] + found[i].verification()
            form.progress(len(batch))
    return totals


def _scored(forms: Sequence[CheckedForm], reference: Scores, tokens: np.ndarray, bound: float) -> Iterator[Scored]:
    models = [form.scores for form in forms]
    splits = [model for model in models if isinstance(model, Split)]
    if isinstance(reference, Split) and len(splits) == len(models) and not bound:
        return of_distinct_rows(splits, reference, tokens)
    return at_every_position(models, reference, tokens)


class _Found:
    """What is found of one form on one batch."""

    def __init__(self, batch: Batch, bound: float):
        self.batch, self.bound = batch, bound
        self.labels = batch.labels.reshape(-1)
        self.differs = np.zeros(batch.tokens.size, dtype=bool)
        self.margins = np.full(batch.tokens.size, np.inf)
        self.same = True

    def add(self, scored: Scored, scores: np.ndarray, expected: np.ndarray) -> None:
        """Scores of some positions, and what they should be."""
        near = equal = (scores == expected).all(axis=-1)
        if self.bound:
            near = (np.abs(scores.astype(np.float64) - expected) <= self.bound).all(axis=-1)
        self.same &= bool(equal.all())
        self.differs[scored.where] = ~near[scored.row]
        asked = self.labels[scored.where] != IGNORED
        where, row = scored.where[asked], scored.row[asked]
        self.margins[where] = _margins(scores, row, self.labels[where])

    def verification(self) -> Verification:
        """The sum of it."""
        batch, shape = self.batch, self.batch.tokens.shape
        differs, margins = self.differs.reshape(shape), self.margins.reshape(shape)
        wrong, asked = ~(margins > 0), batch.labels != IGNORED
        failure = None
        if differs.any() or wrong.any():
            row, position = np.argwhere(differs | wrong)[0]
            failure = (batch.case or "random", batch.tokens[row].tolist(), int(position))
        return Verification(
            len(batch),
            int(asked.sum()),
            int((~wrong[asked]).sum()),
            int((~wrong.any(axis=1)).sum()),
            self.same,
            float(margins.min(initial=np.inf)),
            failure,
            not differs.any(),
        )


def _margins(scores: np.ndarray, row: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """How far each answer leads the best other token: (queries,); NaN scores count as wrong.

    scores: (rows, tokens); row, labels: (queries,), the row and the answer of each query.
    """
    needed, row = np.unique(row, return_inverse=True)
    others = scores[needed]
    answer = others[row, labels].astype(np.float64)
    every, best = np.arange(len(others)), others.argmax(axis=-1)
    first = others[every, best]
    others[every, best] = -np.inf
    second = others.max(axis=-1, initial=-np.inf)
    return answer - np.where(best[row] == labels, second[row], first[row])
