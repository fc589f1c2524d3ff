"""An initial state for each document, as kernels in use take beside offsets; other kernels take one, of the first."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from conformance import exact
from conformance.kernel import STATE_IN, TIME_AXIS, piece
from conformance.loader import HOW, Case, ends_of_documents

AFTER_A_STATE = "documents after a state"
"""The case of an operation by which it is seen how many states a kernel takes."""


@cache
def of_each_document(case: Case) -> Case:
    """A case in which every document of the only row is given a state; a case of other kind as it is.

    Of exact operands each document has another state, made of the entries of the first. What is held to a tolerance has
    one for its size: there all documents but the first are given states of 0, which change nothing.
    """
    name = STATE_IN.get(case.op, "")
    if not {name, "seq_idx"} <= case.inputs.keys() or len(case.inputs["seq_idx"]) > 1:
        return case
    first, ends = case.inputs[name], ends_of_documents(case.inputs["seq_idx"][0])
    asks = f"{case.asks}; here each document is given a state"
    if case.tolerance:
        states = torch.cat([first, first.new_zeros(len(ends) - 1, *first.shape[1:])])
        return replace(case, asks=asks, inputs={**case.inputs, name: states})
    given = [(-1) ** i * first.flatten(1).roll(i, 1).reshape(first.shape) for i in range(len(ends))]
    expected = _alone(case, given, ends)
    kept = {key: expected[key] for key in case.expected}
    return replace(case, asks=asks, inputs={**case.inputs, name: torch.cat(given)}, expected=kept)


def _alone(case: Case, states: list[Tensor], ends: list[int]) -> dict[str, Tensor]:
    """What must come back where each document, alone in its row, begins with its state."""
    known = {key: value for key, value in case.options.items() if key not in (*HOW, "chunk_size")}
    inputs = {key: m for key, m in case.inputs.items() if key != "seq_idx"}
    found = []
    for state, start, stop in zip(states, [0, *ends], ends, strict=False):
        part = {key: piece(case.op, key, m, start, stop) for key, m in inputs.items()}
        found.append(getattr(exact, case.op)(exact.Exact, **part | {STATE_IN[case.op]: state}, **known))
    y, last = (np.concatenate(
        [each[key].astype(np.float64) for each in found], axis
    ) for key, axis in (("y", TIME_AXIS[case.op]), ("last_state", 0)))  # fmt: skip
    return {
        "y": torch.from_numpy(y),
        "last_state": torch.from_numpy(last[-1:]),
        "document_states": torch.from_numpy(last),
    }
