"""An initial state for each document, as kernels in use take beside offsets; other kernels take one, of the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conformance import exact
from conformance.cases.curves import half_a_unit
from conformance.cases.ordinary import FAINTEST, ROUNDED, SIGNED
from conformance.kernel.arguments import STATE_IN, TIME_AXIS
from conformance.kernel.kernel import piece
from conformance.loader import HOW, Case, ends_of_documents

_KEPT = 2048  # cases: more than a kernel is asked


@lru_cache(_KEPT)
def of_each_document(case: Case) -> Case:
    """A case in which every document of the only row is given a state; a case of other kind as it is.

    Each document has another state, made of the entries of the first: as large, and with as many bits.
    """
    name = STATE_IN.get(case.op, "")
    if not {name, "seq_idx"} <= case.inputs.keys() or len(case.inputs["seq_idx"]) > 1:
        return case
    first, ends = case.inputs[name], ends_of_documents(case.inputs["seq_idx"][0])
    given = [(-1) ** i * first.flatten(1).roll(i, 1).reshape(first.shape) for i in range(len(ends))]
    known = {key: value for key, value in case.options.items() if key not in (*HOW, "chunk_size")}
    found = _alone(case, case.inputs, known, given, ends)
    expected = {key: found[key] for key in case.expected}
    made = replace(
        case, asks=f"{case.asks}; here each document is given a state", expected=expected,
        inputs={**case.inputs, name: torch.cat(given)},
    )  # fmt: skip
    return replace(made, tolerance=_tolerance(case, made, known, given, ends)) if case.tolerance else made


def _alone(
    case: Case, inputs: Mapping[str, Tensor], options: Mapping[str, Any], states: list[Tensor], ends: list[int]
) -> dict[str, Tensor]:
    """What must come back where each document, alone in its row, begins with its state."""
    kind = exact.Double if case.tolerance else exact.Exact
    plain = {key: m for key, m in inputs.items() if key != "seq_idx"}
    found = []
    for state, start, stop in zip(states, [0, *ends], ends, strict=False):
        part = {key: piece(case.op, key, m, start, stop) for key, m in plain.items()}
        found.append(getattr(exact, case.op)(kind, **part | {STATE_IN[case.op]: state}, **options))
    y, last = (np.concatenate(
        [each[key].astype(np.float64) for each in found], axis
    ) for key, axis in (("y", TIME_AXIS[case.op]), ("last_state", 0)))  # fmt: skip
    return {
        "y": torch.from_numpy(y),
        "last_state": torch.from_numpy(last[-1:]),
        "document_states": torch.from_numpy(last),
    }


def _tolerance(
    case: Case, made: Case, options: Mapping[str, Any], states: list[Tensor], ends: list[int]
) -> dict[str, Tensor]:
    """The same part of what the equations give for absolute values; of y, what one rounding adds beside."""
    beside = lambda m: 0.0
    if case.stage == ROUNDED:
        unit = half_a_unit(case.results_in("y"))
        beside = lambda m: unit * m.abs() + FAINTEST
    none = [states[0], *(torch.zeros_like(state) for state in states[1:])]  # of all documents but the first
    before = _sizes(case, case.expected, options, none, ends)["y"]
    part = ((case.tolerance["y"] - beside(case.expected["y"])) / before).max()
    found = {key: part * m for key, m in _sizes(made, made.expected, options, states, ends).items()}
    found["y"] = found["y"] + beside(made.expected["y"])
    return {key: found[key] for key in case.tolerance}


def _sizes(
    case: Case, expected: Mapping[str, Tensor], options: Mapping[str, Any], states: list[Tensor], ends: list[int]
) -> Mapping[str, Tensor]:
    """What a tolerance is a part of, as of all ordinary numbers."""
    if case.op == "delta_rule":  # a write contracts: no error grows
        return {name: torch.full_like(m, float(m.abs().max())) for name, m in expected.items()}
    positive = {name: m.abs() if name in SIGNED else m for name, m in case.inputs.items()}
    found = _alone(case, positive, options, [state.abs() for state in states], ends)
    return {name: m.abs() for name, m in found.items()}
