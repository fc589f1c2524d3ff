"""An option is a factor and a value of it that not every kernel takes: which there are, and which a case has."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from conformance.cases.draw import name_of
from conformance.cases.factors import factors_of
from conformance.loader import Case

Option = tuple[str, Any]
"""A factor, and a value of it that not every kernel takes."""
PACKED_ROWS: Option = ("documents", "in each of several rows")
"""What a kernel does not take that is told of documents by offsets alone: a row with both would not be run."""


def varied(op: str) -> Iterator[Option]:
    """Every value of a factor that a kernel may not take."""
    for name, values in factors_of(op).items():
        if name not in ("length", "chunk", "last state", "sizes", "spread"):
            yield from ((name, value) for value in values[1:])


def firsts(op: str) -> Iterator[Option]:
    """The first value of each of these factors, which most kernels take."""
    varying = {name for name, _ in varied(op)}
    yield from (option_of(name, values[0]) for name, values in factors_of(op).items() if name in varying)


def option_of(name: str, value: Any) -> Option:
    """What `options_of` says of a value: several groups or rows are one option."""
    if name in ("groups", "batch"):
        return name, min(2, value)
    return name, False if value == "no" else value


def options_of(case: Case) -> frozenset[Option]:
    """The values of factors that a case has, of those that not every kernel takes."""
    inputs, options, op = case.inputs, case.options, case.op
    operand = inputs[{"selective_scan": "u", "delta_rule": "v"}.get(op, "x")]
    found: dict[str, Any] = {"dtype": name_of(operand.dtype), "batch": min(2, len(operand))}
    state, packed = bool(_STATES & inputs.keys()), "seq_idx" in inputs
    begun = " and ".join([*["state"] * state, *["documents"] * packed]) or "nothing"
    found["start"] = "pieces" if "cuts" in options else begun
    found |= {"z": "z" in inputs, "bias": bool(_BIASES & inputs.keys()), "views": options.get("views", False)}
    limit = options.get("dt_limit")
    found |= {"limit": limit and _side(*limit), "D": "D" in inputs}
    found["softplus"] = bool(options.get("delta_softplus") or options.get("dt_softplus"))
    if op == "ssd" and "D" in inputs:
        found["D"] = "of heads" if inputs["D"].dim() == 1 else "of channels"
    if op in ("selective_scan", "ssd"):
        B = inputs["B"]
        found["groups"] = min(2, B.shape[2] if op == "ssd" else B.shape[1] if B.dim() == 4 else 1)
    if op == "conv":
        found |= {"activation": options["activation"], "taps": inputs["weight"].shape[1]}
    if op == "delta_rule":
        found["normed"] = options["use_qk_l2norm_in_kernel"]
    if op == "norm":
        found["groups"] = min(2, operand.shape[-1] // options["group_size"])
        found["gate"] = "after" if options["norm_before_gate"] else "before"
    return frozenset(found.items())


def _side(least: float, most: float) -> str:
    return "above" if least <= 0 else "both" if math.isfinite(most) else "below"


_STATES = {"initial_state", "initial_states"}
_BIASES = {"delta_bias", "dt_bias", "bias"}
