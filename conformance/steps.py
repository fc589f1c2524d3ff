"""The steps of a scan behind their bias, softplus and limits."""

from __future__ import annotations

import torch
from torch import Tensor

from conformance.loader import Case

STEPS = {"selective_scan": ("delta", "delta_bias", "delta_softplus"), "ssd": ("dt", "dt_bias", "dt_softplus")}
"""Of an operation that has steps: the names of Δ, its bias and its softplus."""


def steps_of(case: Case) -> Tensor:
    """Δ as the recurrence has it."""
    name, bias, softplus = STEPS[case.op]
    steps = case.inputs[name].float()  # as kernels have them: softplus(−128) is 0
    if bias in case.inputs:
        steps = steps + (case.inputs[bias] if case.op == "ssd" else case.inputs[bias][:, None])
    if case.options.get(softplus):
        steps = torch.nn.functional.softplus(steps)
    if limit := case.options.get("dt_limit"):
        steps = steps.clamp(*limit)
    return steps
