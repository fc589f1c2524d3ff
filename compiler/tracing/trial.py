"""Trials: a variable is set, in some runs, to what it holds in others, before anybody is told that it can be set.

Structure does not tell everything: a rewriting may have left a reader with a copy of its own. So the first patch of a
variable is preceded by a batch of interchanges, and the model must then give what the circuit gives, bit for bit.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from compiler.language.input_language import InputLanguage
from compiler.tracing.compared import differences
from compiler.tracing.forward import Run
from compiler.tracing.intervention import Carrier, LaneSetting, Setting, circuit_values, settings_of
from compiler.tracing.variables import Variables

SEQUENCES, LONGEST = 48, 16


class Runs(Protocol):
    """What a trial needs: the names, and the model that runs."""

    variables: Variables

    def run(self, ids: np.ndarray, settings: dict[int, list[LaneSetting]]) -> Run: ...


def trial(model: Runs, carrier: Carrier) -> str | None:
    """Where the model is not what the circuit is, once the variable is set; None where it is in all trials."""
    compiled, variable = model.variables.compiled, carrier.variable
    for ids in samples(compiled.source.token_language):
        values = circuit_values(compiled, ids, {}, [variable.stream], True)[variable.stream]
        rng = np.random.default_rng(0)
        moved = values.reshape(-1, variable.width)[rng.permutation(ids.size)].reshape(values.shape)
        weight = rng.random(ids.shape) + (values != moved).any(-1) + values.any(-1)  # where it matters, if anywhere
        where = np.zeros(ids.shape, dtype=bool)
        where[np.arange(len(ids)), weight.argmax(axis=1)] = True
        setting = {variable: Setting(where, moved)}
        try:
            run = model.run(ids, settings_of(compiled, {variable: carrier}, ids, setting, True))
        except ValueError as reason:
            return str(reason)
        found = differences(model.variables, run, ids, setting, True)
        if found:
            return f"where its lanes are set the model is not what the circuit is ({found[0]})"
    return None


def samples(language: InputLanguage) -> list[np.ndarray]:
    """Some random paths of the language, of a short and of a longer length it has: (sequences, time) each."""
    found: list[np.ndarray] = []
    for length in sorted({min(n, language.max_length) for n in (LONGEST, 11, 6, 4, 3, 2, 1)}, reverse=True):
        if paths := language.walks(length, SEQUENCES):
            found.append(np.array(paths))
        if len(found) == 2:
            break
    return found
