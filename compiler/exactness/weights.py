"""Weights: every number that becomes a weight is one of the dtype, before anything is cast.

A weight that is rounded on its way into a tensor makes a module that differs from the circuit,
and after the cast nothing shows it (exactness E12). What is refused here names the operation
whose lanes, pre-activation or scores would need the weight.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compiler.analysis.affine_form import AffineForm
from compiler.formats import FLOAT32, Format
from compiler.language.stream import Stream
from compiler.passes.schedule import Schedule


def unheld_weights(plan: Schedule, output: AffineForm, format: Format) -> list[tuple[Stream, str]]:
    """(stream, reason) for every folded row, table and score with a weight that the format does not hold."""
    reasons: dict[Stream, str] = {}
    for stream, weights in _weights(plan, output):
        bad = weights[~format.holds(weights)]
        if bad.size and stream not in reasons:
            reasons[stream] = _refusal(float(bad[0]), format)
    return list(reasons.items())


def _weights(plan: Schedule, output: AffineForm) -> Iterator[tuple[Stream, np.ndarray]]:
    for atom, wanted in plan.on_lanes.items():
        table = atom.operation.token_table
        if table is not None:
            yield atom, table.data[wanted[table.indices]]
    for stream, form in (*plan.forms.items(), (plan.circuit.output, output)):
        for matrix in form.values():
            yield stream, matrix.data


def _refusal(weight: float, format: Format) -> str:
    wider = " or float32" if format is not FLOAT32 else ""
    return (
        f"it needs the weight {weight!r}, which no {format.name} holds exactly; use k/2^n with k of at most "
        f"{format.significand} bits{wider}"
    )
