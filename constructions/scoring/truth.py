"""What a circuit computes at each position, and what it would answer if a variable had another value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compiler.compiled import Compiled
from compiler.tracing.intervention import Intervention, circuit_values
from constructions.scoring.asked import Inputs, StatedInputs
from constructions.scoring.variables import blocks_before, exchanged, lanes_of, left_out, standing
from verify.tasks.task import IGNORED

TRIED = 64  # pairs of inputs on which it is tried whether a variable can be exchanged


@dataclass(frozen=True, eq=False)
class Pairs:
    """Two inputs each, and what the circuit answers on the first if a variable has its value from the second
    throughout.

    base, source: (n, time) ids; answers: (n, time), IGNORED where nobody asks, or no letter alone scores highest.
    """

    base: np.ndarray
    source: np.ndarray
    answers: np.ndarray


class Truth:
    """A compiled circuit as a causal model.

    variables: those that a block writes to lanes of their own, by name, each with the streams that share these lanes
    because they are equal. All others are functions of these. left_out: what stands on lanes, but is not exchanged
    where these are, with the reason.
    """

    def __init__(self, compiled: Compiled, inputs: Inputs | None = None):
        """inputs: on which it is asked, and where; by default its language's, everywhere."""
        self.compiled = compiled
        self.inputs = inputs or StatedInputs(compiled.source.token_language)
        found = standing(compiled)
        if not found:
            raise ValueError(
                f"the circuit {compiled.source.name!r} has no variable that a block writes to lanes, so there is "
                "nothing to find in it."
            )
        self.left_out = left_out(compiled, found, *(self.draw(TRIED, seed) for seed in (0, 1)))
        self.variables = {name: equal for name, equal in found.items() if name not in self.left_out}
        if not self.variables:
            name, reason = next(iter(self.left_out.items()))
            raise ValueError(
                f"no variable of the circuit {compiled.source.name!r} can be exchanged: of {name!r}, {reason}."
            )

    def lanes(self, name: str) -> np.ndarray:
        """The lanes of a variable."""
        return lanes_of(self.compiled, self.variables[name])

    def after(self, name: str) -> int:
        """How many blocks have run when it stands on its lanes."""
        return blocks_before(self.variables[name])

    def draw(self, count: int, seed: int, held: bool = False) -> np.ndarray:
        """Inputs (count, tokens); held: of those that are held out, where there are not enough to draw anew."""
        return self.inputs.draw(count, seed, held)

    def values(self, name: str, ids: np.ndarray) -> np.ndarray:
        """(n, time, width) of a variable."""
        stream = self.variables[name][0].stream
        return circuit_values(self.compiled, ids, {}, [stream], True)[stream]

    def answers(self, ids: np.ndarray) -> np.ndarray:
        """(n, time) letters; IGNORED where nobody asks, or no letter alone scores highest."""
        return self._answers(ids, {})

    def pairs(self, name: str, base: np.ndarray, source: np.ndarray) -> Pairs:
        """The answers under an interchange at all positions, of all streams that are equal."""
        return Pairs(base, source, self._answers(base, exchanged(self.compiled, self.variables[name], source)))

    def _answers(self, ids: np.ndarray, setting: Intervention) -> np.ndarray:
        output = self.compiled.source.output
        scores = circuit_values(self.compiled, ids, setting, [output], True)[output]
        alone = (scores == scores.max(axis=-1, keepdims=True)).sum(axis=-1) == 1
        return np.where(alone & self.inputs.asked(ids), scores.argmax(axis=-1), IGNORED)
