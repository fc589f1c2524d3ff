"""Where a checkpoint's task asks, and inputs that are asked: the positions whose answers are scored.

A task that the checker knows says of any input where it asks (`StatedInputs`). Others are known by their questions
alone: those that verify draws, or those that an author's function was asked (`KnownInputs`).
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from compiler.artifact.answers import Answers
from compiler.language.arguments import counted
from compiler.language.input_language import InputLanguage
from constructions.checkpoints.built import Built
from constructions.checkpoints.saved_circuit import SavedCircuit
from constructions.construction import Construction
from verify.checker.tasks.names import Stated
from verify.tasks.answers import AuthorsAnswers
from verify.tasks.stated import stated_rule
from verify.tasks.task import IGNORED, Task

LENGTH, LONGEST = 12, 96  # tokens of an input; of one where the task asks later
DRAWN = 1024  # inputs of a task that is known by its questions
_TRIED = 64
_HELD = 4  # one in so many is held out
WHEREVER = "wherever one letter alone scores highest in the circuit"
UNTOLD = f"{WHEREVER}, for the checkpoint states no task"
Rule = Callable[[list[int]], Sequence[int | None]]


class Inputs(ABC):
    """What a model is run on, and where it is scored. says: where that is, in words; length: tokens of an input."""

    says: str

    @property
    @abstractmethod
    def length(self) -> int: ...

    @abstractmethod
    def draw(self, count: int, seed: int, held: bool = False) -> np.ndarray:
        """(count, length) ids; held: of those that are held out, where there are not enough to draw anew."""

    @abstractmethod
    def asked(self, ids: np.ndarray) -> np.ndarray:
        """Whether each position of drawn inputs (n, length) is asked, by its tokens so far: bool."""


@dataclass(frozen=True, eq=False)
class StatedInputs(Inputs):
    """Random inputs of a language. rule: the answers to an input, None where nobody asks; itself None where all is."""

    language: InputLanguage
    says: str = UNTOLD
    rule: Rule | None = None

    @cached_property
    def length(self) -> int:
        """12 tokens, or twice as many, and so on, until an input is asked once, as far as the language has any."""
        length = self.language.longest(LENGTH)
        while self._rare_at(length):
            longer = self.language.longest(min(2 * length, LONGEST))
            if longer <= length:
                break
            length = longer
        return length

    @property
    def rare(self) -> bool:
        """Whether fewer positions are asked than there are inputs."""
        return self._rare_at(self.length)

    def _rare_at(self, length: int) -> bool:
        return self.asked(self.language.sample(_TRIED, length, 0)).sum() < _TRIED

    def draw(self, count: int, seed: int, held: bool = False) -> np.ndarray:
        return self.language.sample(count, self.length, seed)

    def asked(self, ids: np.ndarray) -> np.ndarray:
        if self.rule is None:
            return np.ones(ids.shape, dtype=bool)
        answers = map(self.rule, ids.tolist())
        return np.array([[a is not None for a in row] for row in answers], dtype=bool).reshape(ids.shape)


@dataclass(frozen=True, eq=False)
class KnownInputs(Inputs):
    """Inputs of which each is known where it is asked. rows: {its ids: where it is asked}, all of one length."""

    rows: dict[tuple[int, ...], tuple[bool, ...]]
    says: str

    @classmethod
    def of(cls, rows: Iterable[tuple[Sequence[int], Sequence[int]]], says: str) -> KnownInputs:
        """Of (tokens, labels), cut to 12 tokens, or twice as many, and so on, until a row is asked once."""
        given = [(tuple(ids), tuple(label != IGNORED for label in labels)) for ids, labels in rows]
        longest = min(max(len(ids) for ids, _ in given), LONGEST)
        length = min(LENGTH, longest)
        while True:
            cut = {ids[:length]: asked[:length] for ids, asked in given if len(ids) >= length}
            if length == longest or sum(map(sum, cut.values())) >= len(cut):
                return cls(cut, says)
            length = min(2 * length, longest)

    @property
    def length(self) -> int:
        return len(next(iter(self.rows)))

    @cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray]:
        """(those that are seen, those that are held out); all are both where there is one alone."""
        rows = np.array(list(self.rows), dtype=np.int64)
        rows = rows[np.random.default_rng(0).permutation(len(rows))]
        held = np.arange(len(rows)) % _HELD == 0
        return (rows[~held], rows[held]) if len(rows) > 1 else (rows, rows)

    def draw(self, count: int, seed: int, held: bool = False) -> np.ndarray:
        part = self._parts[held]
        return part[np.random.default_rng(seed).choice(len(part), count, replace=count > len(part))]

    def asked(self, ids: np.ndarray) -> np.ndarray:
        return np.array([self.rows[tuple(row)] for row in ids.tolist()], dtype=bool).reshape(ids.shape)


def inputs_of(built: Built) -> Inputs:
    """The inputs on which a checkpoint's model is scored; ValueError where its task asks nothing in all of them."""
    found = _inputs_of(built)
    if not found.asked(found.draw(_TRIED, 0)).any():
        raise ValueError(f"nothing is asked in inputs of {found.length} tokens, so nothing could be scored.")
    return found


def _inputs_of(built: Built) -> Inputs:
    construction, language = built.construction, built.compiled.source.token_language
    assert isinstance(construction, Construction), "a language model has letters"
    stated = construction.rule if isinstance(construction, SavedCircuit) else _rule(construction, language)
    if stated is not None:
        found = StatedInputs(language, f"where the stated task asks: {stated.says}", stated.task.answers)
        if isinstance(construction, SavedCircuit) or not found.rare:
            return found
    elif isinstance(construction, SavedCircuit):
        return _of_author(construction.answers, language, construction.refused)
    return _of_task(construction.tasks()[0])


def _rule(construction: Construction, language: InputLanguage) -> Stated | None:
    claim = construction.asks()
    return None if claim is None else stated_rule(json.loads(json.dumps(claim)), language.alphabet.tokens)


def _of_task(task: Task) -> KnownInputs:
    """What verify draws, with its questions."""
    rows = (
        row for batch in task.random(DRAWN, 0) for row in zip(batch.tokens.tolist(), batch.labels.tolist(), strict=True)
    )
    return KnownInputs.of(rows, f"where the task asks: {task.describe()}")


def _of_author(answers: Answers | None, language: InputLanguage, refused: str) -> Inputs:
    """A function that answered every question is taken to answer everywhere. refused: why the stated task is, if so."""
    if answers is None:
        return StatedInputs(
            language, f"{WHEREVER}, for the task that is stated is refused: {refused}" if refused else UNTOLD
        )
    if all(answer is not None for row in answers.sequences for answer in row.answers):
        said = f"{answers.function} answers all {counted(answers.questions, 'question')} of answers.json"
        return StatedInputs(language, f"everywhere, for {said}")
    rows = AuthorsAnswers(answers, language.alphabet.tokens).rows()
    return KnownInputs.of(rows, f"where {answers.function} answers, on sequences of answers.json")
