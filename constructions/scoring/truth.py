"""What a circuit computes at each position, and what it would answer if a variable had another value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.compiled import Compiled
from compiler.tracing.intervention import Setting, circuit_values
from compiler.tracing.variables import Variable, Variables
from verify.tasks.task import IGNORED


@dataclass(frozen=True, eq=False)
class Pairs:
    """Two inputs each, and what the circuit answers on the first if a variable has its value from the second
    throughout.

    base, source: (n, time) ids; answers: (n, time), IGNORED where no letter alone scores highest.
    """

    base: np.ndarray
    source: np.ndarray
    answers: np.ndarray


class Truth:
    """A compiled circuit as a causal model.

    variables: those that a block writes to lanes of their own, by name. All of the others are functions of these.
    """

    def __init__(self, compiled: Compiled):
        self.compiled = compiled
        found = [v for v in Variables(compiled) if _stands(compiled, v)]
        self.variables = {v.name: v for v in found}
        if not found:
            raise ValueError(
                f"the circuit {compiled.source.name!r} has no variable that a block writes to lanes, so there is "
                "nothing to find in it."
            )

    def lanes(self, name: str) -> np.ndarray:
        """The lanes of a variable."""
        return self.compiled.lanes.index[self.variables[name].core]

    def after(self, name: str) -> int:
        """How many blocks have run when it stands on its lanes."""
        reading = self.variables[name].reading
        return 0 if reading is None else reading.after

    def draw(self, count: int, length: int, seed: int) -> np.ndarray:
        """Inputs (count, length) of the language, shorter where it has none as long."""
        language = self.compiled.source.token_language
        return language.sample(count, language.longest(length), seed)

    def values(self, name: str, ids: np.ndarray) -> np.ndarray:
        """(n, time, width) of a variable."""
        stream = self.variables[name].stream
        return circuit_values(self.compiled, ids, {}, [stream], True)[stream]

    def answers(self, ids: np.ndarray) -> np.ndarray:
        """(n, time) letters."""
        return self._answers(ids, {})

    def pairs(self, name: str, base: np.ndarray, source: np.ndarray) -> Pairs:
        """The answers under an interchange at all positions."""
        everywhere = Setting(np.ones(base.shape, dtype=bool), self.values(name, source))
        return Pairs(base, source, self._answers(base, {self.variables[name]: everywhere}))

    def _answers(self, ids: np.ndarray, setting: dict[Variable, Setting]) -> np.ndarray:
        output = self.compiled.source.output
        scores = circuit_values(self.compiled, ids, setting, [output], True)[output]
        alone = (scores == scores.max(axis=-1, keepdims=True)).sum(axis=-1) == 1
        return np.where(alone, scores.argmax(axis=-1), IGNORED)


def _stands(compiled: Compiled, variable: Variable) -> bool:
    reading = variable.reading
    placed = reading is not None and reading.after > 0 and reading.whole and variable.core in compiled.lanes.index
    return placed and bool((compiled.lanes.index[variable.core] >= 0).all())
