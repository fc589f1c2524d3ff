"""A construction small enough that all its short sequences are gone through."""

from __future__ import annotations

import json
from functools import cache

import numpy as np

from compiler.language.data import language_to_data, to_data
from constructions.registry import CONSTRUCTIONS
from tests.verify.checker.evaluator import evaluate
from verify.checker.formats import Rejected
from verify.checker.tasks.task import Answers, prove_task, read_task
from verify.checker.values.language import parse
from verify.tasks.task import IGNORED


class Case:
    """A construction's circuit and claim as data, and all short sequences of its language."""

    def __init__(self, name: str, params: dict, length: int):
        """Where every path goes on, the longest sequences hold the shorter ones."""
        construction = CONSTRUCTIONS[name](**params)
        circuit = construction.circuit()
        self.circuit = json.loads(json.dumps(to_data(circuit)))
        self.claim = construction.asks()
        self.language = parse(language_to_data(circuit.language))
        lengths = range(1 if any(e.distinct for e in self.language.edges) else length, length + 1)
        self.rows = [np.array(list(circuit.language.strings(n))) for n in lengths]

    def prove(self, circuit: dict | None = None, claim: dict | None = None) -> float:
        """The proved margin; 0 where none is."""
        return float(self.answers(circuit, claim).margin or 0)

    def answers(self, circuit: dict | None = None, claim: dict | None = None) -> Answers:
        """What the checker says of a circuit, with this one's letters and end where it names none."""
        named = {name: self.circuit[name] for name in ("alphabet", "end")} | (circuit or self.circuit)
        return prove_task(self.language, named, claim or self.claim)

    def lead(self, circuit: dict | None = None, claim: dict | None = None) -> float | None:
        """The least lead of a right letter over all these sequences, by `evaluate`; None if this is no circuit."""
        try:
            right = self._right(
                json.dumps(claim or self.claim), tuple((circuit or {}).get("alphabet", self.circuit["alphabet"]))
            )
            pairs = zip(self.rows, right, strict=True)
            return min(self._lead(circuit or self.circuit, rows, labels) for rows, labels in pairs if rows.size)
        except (Rejected, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError):
            return None

    @cache  # noqa: B019 - cases live as long as the tests
    def _right(self, claim: str, letters: tuple[str, ...]) -> list[np.ndarray]:
        task = read_task(json.loads(claim), letters).task
        answers = [[task.answers(row) for row in rows.tolist()] for rows in self.rows]
        return [np.array([[IGNORED if a is None else a for a in row] for row in rows]) for rows in answers]

    def _lead(self, circuit: dict, rows: np.ndarray, right: np.ndarray) -> float:
        scores = evaluate(circuit, rows)
        scores, right = scores[right != IGNORED], right[right != IGNORED]
        if not len(right):
            return np.inf
        full = np.zeros((len(right), self.language.tokens))
        full[:, : scores.shape[1]] = scores
        own = full[np.arange(len(right)), right].copy()
        full[np.arange(len(right)), right] = -np.inf
        return float((own - full.max(axis=1)).min())
