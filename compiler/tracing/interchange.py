"""Interchange interventions: a variable takes the value that it has in another run, and the model must answer as the
circuit does under the same intervention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compiler.language.arguments import integer
from compiler.tracing.patch import Patch
from compiler.tracing.truth import Text, Truth


@dataclass(frozen=True)
class Interchange:
    """runs: how many pairs were run; accuracy: the share of positions, of all runs, at which the model's answer is the
    circuit's; exact: the share of runs in which every score is, bit for bit; moved: the share of runs in which the
    intervention changed an answer at all (of the circuit).
    """

    variable: str
    runs: int
    accuracy: float
    exact: float
    moved: float


def interchange(truth: Truth, name: str, pairs: Sequence[tuple[Text, Text, int]]) -> Interchange:
    """pairs: (base, source, position): the base is run with the variable, at this position, as it is in the source.

    NotCarried where the variable cannot be set; ValueError where there is no pair.
    """
    if not pairs:
        raise ValueError("interchange was given no pairs, and at least one (base, source, position) is needed")
    output = truth.variables.output.name
    right = asked = exact = moved = 0
    for base, source, position in pairs:
        at = integer(position, "the position of an interchange")
        trace = Patch(truth).also({name: [at]}, source).trace(base)
        model, circuit = trace[output], trace.circuit[output]
        before = truth.trace(truth.ids(base), {}).circuit[output]
        right += sum(a == b for a, b in zip(model, circuit, strict=True))
        asked += len(circuit)
        exact += bool(np.array_equal(model.raw, circuit.raw))
        moved += list(circuit) != list(before)
    return Interchange(truth.variables[name].name, len(pairs), right / asked, exact / len(pairs), moved / len(pairs))
