"""The model beside the circuit under the same intervention: every variable and every score, bit for bit.

Two kinds of variables are left out: those that stand on no lane, and those whose lanes hold another that was set.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import networkx as nx
import numpy as np

from compiler.tracing.forward import Run
from compiler.tracing.intervention import Intervention, circuit_values
from compiler.tracing.variables import Variable, Variables


@dataclass(frozen=True, eq=False)
class Difference:
    """The first number in which a variable differs: of which sequence, where, and what it is in both."""

    variable: Variable
    sequence: int
    position: int
    number: int
    model: float
    circuit: float

    def __str__(self) -> str:
        return (
            f"{self.variable.name!r} at position {self.position}: number {self.number} is {self.model:g} in the model "
            f"and {self.circuit:g} in the circuit"
        )


class Unread(KeyError):
    """A variable whose value stands on no lanes; it says what does."""

    def __str__(self) -> str:
        return str(self.args[0])


def model_values(variables: Variables, variable: Variable, run: Run) -> np.ndarray:
    """The numbers of a variable as the lanes hold them: (batch, time, width) float64; Unread where no lanes do."""
    compiled = variables.compiled
    if variable.stream is compiled.source.output:
        return run.scores[..., : variable.width].double().numpy()
    if variable.reading is None:
        raise Unread(
            f"{variable.name!r} is computed within a block and stands on no lane; t.circuit[{variable.name!r}] has the "
            "circuit's own value"
        )
    found = variables.numbers(variable, run.lanes(compiled.lanes.count))
    if found is None:
        raise Unread(
            f"{variable.name!r} stands on lanes but for one number that nothing reads, and its value is no letter that "
            f"the others tell; t.circuit[{variable.name!r}] has the circuit's own value"
        )
    return found


def overwritten(variables: Variables, setting: Collection[Variable]) -> set[Variable]:
    """Variables that are not set, nor behind one that is, but whose lanes hold one that is instead."""
    graph, one = variables.compiled.source.graph, variables.one
    found: set[Variable] = set()
    for variable in setting:
        assert variable.reading is not None
        lanes = set(variable.reading.lanes.tolist()) - {one}
        behind = nx.descendants(graph, variable.stream)
        shared = {v for v in variables if v.reading is not None and lanes & set(v.reading.lanes.tolist())}
        found |= {v for v in shared if v.stream not in behind}
    return found - set(setting)


def differences(
    variables: Variables, run: Run, ids: np.ndarray, setting: Intervention, inside: bool
) -> list[Difference]:
    """Where variables and scores are not the circuit's: the first place of each, [] where there is none.

    ids: (batch, time), what was run; inside: whether every value that is set is one that its variable can have.
    """
    compiled = variables.compiled
    skipped = overwritten(variables, setting)
    asked = [v for v in variables if not v.constant and v not in skipped]
    expected = circuit_values(compiled, ids, setting, [v.stream for v in asked], inside)
    tolerance = compiled.error_bound or 0.0
    found = []
    for variable in asked:
        try:
            here = model_values(variables, variable, run)
        except Unread:
            continue
        wrong = np.argwhere(np.abs(here - expected[variable.stream]) > tolerance)
        if len(wrong):
            at = sequence, position, number = tuple(wrong[0].tolist())
            numbers = float(here[at]), float(expected[variable.stream][at])
            found.append(Difference(variable, sequence, position, number, *numbers))
    return found
