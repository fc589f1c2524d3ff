"""Running a model against a task's answers and against the interpreter's scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np

from verify.scores import DistinctRows, Met, Scores, Split, at_every_position
from verify.tasks.task import IGNORED, Batch

Asked = Callable[[np.ndarray], np.ndarray]
"""Of the tokens of a sequence (length,), at which positions a proof says what is right: bool (length,)."""


@dataclass(frozen=True)
class Verification:
    """What was run and how it came out.

    sequences, queries: how many; correct: queries whose strictly highest score is the answer;
    exact_sequences: sequences with every query correct; bit_exact: whether all scores equalled
    the interpreter's, at every position; margin: the least lead of an answer over the best
    other token (negative where one was wrong); failure: (case, tokens, position) of the first
    wrong answer or differing score, None if there is none; within: whether all scores were as near as promised;
    share: the largest error of an output over what it may be, None where the promise is for bits.
    wrong_inside: wrong answers to questions of which a proof speaks, all of them where its condition is not told.
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
    wrong_inside: int = 0

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
            self.wrong_inside + other.wrong_inside,
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
    asked: Asked | None = None,
) -> Verification:
    """Run every batch; `progress` is told how many sequences each step finished.

    bound: how far a score may be from the interpreter's, 0 where the promise is for bits. asked: at which positions a
    proof says what is right; None: at all.
    """
    return check_forms([CheckedForm(model, progress=progress)], reference, batches, bound, asked)[0]


def check_forms(
    forms: Sequence[CheckedForm],
    reference: Scores,
    batches: Iterable[Batch],
    bound: float = 0.0,
    asked: Asked | None = None,
) -> list[Verification]:
    """`check` for every form of a model on the same sequences, for which the reference is asked once.

    Where the reference and all forms are `Split` and the promise is for bits, each distinct row is scored once.
    """
    totals = [Verification() for _ in forms]
    verdicts = [_Verdicts.none() for _ in forms]
    meet = _meeting([form.scores for form in forms], reference, bound)
    for batch in batches:
        met = meet(batch.tokens)
        judged = [[verdict.upto(met.known)] for verdict in verdicts]
        for expected, found in met.new:
            for each, form, scores in zip(judged, forms, found, strict=True):
                each.append(_Verdicts.of(scores, form.widened(expected), bound))
        verdicts = [_Verdicts.joined(each) for each in judged]
        for i, form in enumerate(forms):
            totals[i] = totals[i] + _verified(batch, met.row, verdicts[i], partial(met.again, i), asked)
            form.progress(len(batch))
    return totals


def _meeting(models: Sequence[Scores], reference: Scores, bound: float) -> Callable[[np.ndarray], Met]:
    splits = [model for model in models if isinstance(model, Split)]
    if isinstance(reference, Split) and len(splits) == len(models) and not bound:
        return DistinctRows(splits, reference).meet
    return partial(at_every_position, models, reference)


@dataclass(frozen=True, eq=False)
class _Verdicts:
    """What is found of each of some rows of scores.

    near, same: whether all its scores are as near as promised, and equal; best: the token that scores highest; first,
    second: the two highest scores.
    """

    near: np.ndarray
    same: np.ndarray
    best: np.ndarray
    first: np.ndarray
    second: np.ndarray

    @classmethod
    def none(cls) -> _Verdicts:
        """Of no row."""
        return cls.of(np.zeros((0, 1)), np.zeros((0, 1)), 0.0)

    @classmethod
    def of(cls, scores: np.ndarray, expected: np.ndarray, bound: float) -> _Verdicts:
        """scores, and what they should be: (rows, tokens)."""
        near = same = (scores == expected).all(axis=-1)
        if bound:
            near = (np.abs(scores.astype(np.float64) - expected) <= bound).all(axis=-1)
        every, best = np.arange(len(scores)), scores.argmax(axis=-1)
        others = scores.copy()
        others[every, best] = -np.inf
        second = others.max(axis=-1, initial=-np.inf)
        return cls(near, same, best, scores[every, best].astype(np.float64), second.astype(np.float64))

    @classmethod
    def joined(cls, parts: Sequence[_Verdicts]) -> _Verdicts:
        """Of the rows of all parts, in order."""
        return cls(*(np.concatenate([vars(part)[field.name] for part in parts]) for field in fields(cls)))

    def upto(self, count: int) -> _Verdicts:
        """Of the first so many rows."""
        return _Verdicts(*(vars(self)[field.name][:count] for field in fields(self)))

    @np.errstate(invalid="ignore")  # of scores that overflow, inf - inf is no number
    def margins(self, row: np.ndarray, labels: np.ndarray, scores: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """How far each answer leads the best other token: (queries,); not above 0, or no number, where it is wrong.

        row, labels: (queries,), the row and the answer of each query. scores: those of some queries (n, tokens).
        """
        first, right = self.first[row], self.best[row] == labels
        if right.all():
            return first - self.second[row]
        margins, others = np.empty(len(row)), np.flatnonzero(~right)
        margins[right] = first[right] - self.second[row[right]]
        answers = scores(others)[np.arange(len(others)), labels[others]]
        margins[others] = answers.astype(np.float64) - first[others]
        return margins


def _verified(
    batch: Batch,
    row: np.ndarray,
    verdicts: _Verdicts,
    scores: Callable[[np.ndarray], np.ndarray],
    asked: Asked | None,
) -> Verification:
    """What is found of one form on one batch; scores: those of some positions (n, tokens)."""
    labels = batch.labels.reshape(-1)
    queries = np.flatnonzero(labels != IGNORED)
    margins = verdicts.margins(row[queries], labels[queries], lambda which: scores(queries[which]))
    wrong = queries[~(margins > 0)]
    differs = np.flatnonzero(~verdicts.near[row])
    failure, length = None, batch.tokens.shape[1]
    if len(wrong) or len(differs):
        number, position = divmod(int(min([*wrong[:1], *differs[:1]])), length)
        failure = (batch.case or "random", batch.tokens[number].tolist(), position)
    return Verification(
        len(batch),
        len(queries),
        len(queries) - len(wrong),
        len(batch) - len(np.unique(wrong // length)),
        bool(verdicts.same[row].all()),
        float(margins.min(initial=np.inf)),
        failure,
        not len(differs),
        wrong_inside=_inside(batch.tokens, wrong, asked),
    )


def _inside(tokens: np.ndarray, wrong: np.ndarray, asked: Asked | None) -> int:
    """How many of these positions, numbered through the whole batch, are asked."""
    if asked is None:
        return len(wrong)
    numbers, positions = np.divmod(wrong, tokens.shape[1])
    return sum(int(asked(tokens[i])[positions[numbers == i]].sum()) for i in np.unique(numbers))
