"""A case of a sequence, one position at a time: what a step is given at each, and what its results are in sum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from conformance.kernel.documents import without_last_none
from conformance.kernel.layouts import is_dense
from conformance.kernel.misbehaved import Misbehaved
from conformance.loader import Case


def at_position(
    case: Case, inputs: Mapping[str, Tensor], t: int, state: Tensor | None
) -> tuple[Tensor, dict[str, Any]]:
    """The state before position t, and the arguments of the step there. state: None before the first one."""
    return (_scan_step if case.op == "selective_scan" else _ssd_step)(case, inputs, t, state)


def _scan_step(case: Case, inputs: Mapping[str, Tensor], t: int, state: Tensor | None) -> tuple[Tensor, dict[str, Any]]:
    if state is None:
        batch, channels = inputs["u"].shape[:2]
        state = inputs.get("initial_state", inputs["A"].new_zeros(batch, channels, inputs["A"].shape[1]))
    now: dict[str, Any] = {
        name: inputs[key][..., t] for name, key in (("x", "u"), ("dt", "delta"), ("B", "B"), ("C", "C"))
    }
    z = inputs["z"][..., t] if "z" in inputs else None
    more = {"A": inputs["A"], "D": inputs.get("D"), "z": z, "dt_bias": inputs.get("delta_bias")}
    return state, now | more | {"dt_softplus": case.options["delta_softplus"]}


def _ssd_step(case: Case, inputs: Mapping[str, Tensor], t: int, state: Tensor | None) -> tuple[Tensor, dict[str, Any]]:
    x, B = inputs["x"], inputs["B"]
    (batch, _, heads, p), n = x.shape, B.shape[-1]
    if state is None:
        state = inputs.get("initial_states", inputs["A"].new_zeros(batch, heads, p, n))
    wide: Any = lambda m: None if m is None else m[..., None].expand(*m.shape, p)
    D = inputs.get("D")
    return state, {
        "x": x[:, t],
        "dt": wide(inputs["dt"][:, t]),
        "A": wide(inputs["A"])[..., None].expand(heads, p, n),
        "B": B[:, t],
        "C": inputs["C"][:, t],
        "D": D if D is not None and D.dim() == 2 else wide(D),
        "z": inputs["z"][:, t] if "z" in inputs else None,
        "dt_bias": wide(inputs.get("dt_bias")),
        "dt_softplus": case.options["dt_softplus"],
    }


def by_head(op: str, case: Case) -> bool:
    """Whether a step gets a case of the scan as one of heads, of which each channel has a Δ and a decay of its own."""
    return case.op == "selective_scan" and (op == "head step" or case.inputs["B"].dim() == 4)


def alone(results: Any) -> Any:
    """What a step returns, without None behind it: no state is asked of it, for that is updated in place."""
    found = without_last_none(tuple(results)) if isinstance(results, (tuple, list)) else ()
    return found[0] if len(found) == 1 else results


def in_heads(
    inputs: Mapping[str, Tensor], state: Tensor, arguments: Mapping[str, Any]
) -> tuple[Tensor, dict[str, Any]]:
    """A step of channels as one of heads, each of as few channels of one group as it can have, but more than one."""
    channels, groups = inputs["A"].shape[0], inputs["B"].shape[1] if inputs["B"].dim() == 4 else 1
    of_group = channels // groups
    p = next((p for p in range(2, of_group + 1) if of_group % p == 0), 1)
    split: Any = lambda m, axis: m if m is None else m.unflatten(axis, (channels // p, p))
    found = {name: split(arguments[name], axis) for name, axis in (("x", 1), ("dt", 1), ("z", 1), ("A", 0), ("D", 0))}
    found["dt_bias"] = split(arguments["dt_bias"], 0)
    found |= {name: m[:, None] if m.dim() == 2 else m for name, m in arguments.items() if name in ("B", "C")}
    own = split(state, 1).clone() if state.dim() == 3 else state  # no view: what lies beside one is looked at
    return own, {**arguments, **found}


def in_channels(y: Any, state: Tensor) -> dict[str, Any]:
    """The results of heads, y (b, h, p, …) of all positions, as those of channels."""
    if not is_dense(y):
        return {"y": y, "last_state": state}
    batch, heads, p, _ = state.shape
    if y.dim() != 4 or (y.shape[0], y.shape[1], y.shape[3]) != (batch, heads, p):
        raise Misbehaved(f"y has shape {(*y.shape[:2], *y.shape[3:])}, but must have {(batch, heads, p)}.")
    return {"y": y.movedim(2, -1).flatten(1, 2), "last_state": state.flatten(1, 2)}
