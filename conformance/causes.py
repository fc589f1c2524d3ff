"""The likely cause of a wrong result: the mistake that gives exactly this result, if one on the list does.

Each mistake is a change of a case's operands. The plain operations are run on the changed operands; where every entry
is then what the kernel returned, that is named, and else what the case asks for that none before it did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conformance import exact
from conformance.kernel import TIME_AXIS
from conformance.loader import Case

Operands = dict[str, Any]


def cause(case: Case, results: Mapping[str, Tensor]) -> str:
    """What is likely wrong, in a few words."""
    kind = exact.Near if case.tolerance else exact.Exact
    options = {key: value for key, value in case.options.items() if key not in ("cuts", "chunk_size")}
    inputs = {key: m.float() if m.is_floating_point() else m for key, m in case.inputs.items()}
    for name, change in (_MISTAKES | _lost_where(case, results)).items():
        changed = change({**inputs, **options}, case)
        if changed is not None and _gives(kind, case, changed, results):
            return name
    if torch.isnan(results["y"]).any():
        return f"NaN: {case.asks}"
    return case.asks


def _gives(kind: exact.Kind, case: Case, operands: Operands, results: Mapping[str, Tensor]) -> bool:
    try:
        found = getattr(exact, case.op)(kind, **operands)
    except (exact.Inexact, ArithmeticError, IndexError, ValueError):
        return False
    slack = 4 * float(case.tolerance["y"].max()) if case.tolerance else 0.0
    for name in ("y", "last_state"):
        if name in results and name in found and (name == "y" or name in case.expected):
            expected = torch.from_numpy(found[name].astype(np.float64)).to(results[name].dtype).double()
            same = (results[name].double() - expected).abs() <= slack
            if not same.all():
                return False
    return True


def _lost_where(case: Case, results: Mapping[str, Tensor]) -> dict[str, Callable[[Operands, Case], Operands | None]]:
    """A loss with the period that the first wrong position has, whatever it is."""
    wrong = case.wrong("y", results["y"])
    axis = TIME_AXIS[case.op]
    first = next((place for place in range(wrong.shape[axis]) if wrong.select(axis, place).any()), 0)
    return {f"the state is lost every {first} steps": _lost_at("", first)} if first else {}


def _without(*names: str) -> Callable[[Operands, Case], Operands | None]:
    def change(operands: Operands, case: Case) -> Operands | None:
        present = [name for name in names if operands.get(name) is not None and operands[name] is not False]
        return {key: value for key, value in operands.items() if key not in present} if present else None

    return change


def _with(names: tuple[str, ...], new: Callable[[Tensor], Tensor]) -> Callable[[Operands, Case], Operands | None]:
    def change(operands: Operands, case: Case) -> Operands | None:
        present = {name: new(operands[name]) for name in names if operands.get(name) is not None}
        return operands | present if present else None

    return change


def _by_group(reorder: Callable[[Tensor], Tensor]) -> Callable[[Operands, Case], Operands | None]:
    """B and C given to every channel or head in another order of groups; reorder: (groups,) of each reader, a new one.

    Readers are the heads of ssd, the channels of the scan.
    """

    def change(operands: Operands, case: Case) -> Operands | None:
        axis = 2 if case.op == "ssd" else 1
        if case.op not in ("ssd", "selective_scan") or operands["B"].dim() < 4 or operands["B"].shape[axis] == 1:
            return None
        readers = operands["x"].shape[2] if case.op == "ssd" else operands["u"].shape[1]
        groups = operands["B"].shape[axis]
        group = reorder(torch.arange(readers) * groups // readers)
        return operands | {name: operands[name].index_select(axis, group) for name in ("B", "C")}

    return change


def _restarts(operands: Operands, case: Case, places: list[int]) -> Operands:
    time = operands["u"].shape[2] if case.op == "selective_scan" else operands["x"].shape[2 if case.op == "conv" else 1]
    batch = operands["u" if case.op == "selective_scan" else "x"].shape[0]
    starts = torch.zeros(time, dtype=torch.int32)
    starts[[place for place in places if 0 < place < time]] = 1
    return operands | {"seq_idx": starts.cumsum(0)[None].expand(batch, -1)}


def _lost_at(what: str, size: int | None = None) -> Callable[[Operands, Case], Operands | None]:
    def change(operands: Operands, case: Case) -> Operands | None:
        if case.op == "norm" or "seq_idx" in operands:
            return None
        places = list(range(size, 4096, size)) if size else case.borders.get(what, [])
        return _restarts(operands, case, places) if places else None

    return change


def _rolled(names: tuple[str, ...]) -> Callable[[Operands, Case], Operands | None]:
    """The operand of the step before."""

    def change(operands: Operands, case: Case) -> Operands | None:
        if case.op not in ("ssd", "selective_scan"):
            return None
        axis = 1 if case.op == "ssd" else -1
        return operands | {name: operands[name].roll(1, dims=axis) for name in names}

    return change


_BIAS = ("delta_bias", "dt_bias")
_MISTAKES: dict[str, Callable[[Operands, Case], Operands | None]] = {
    "D u is left out": _without("D"),
    "D u is added twice": _with(("D",), lambda m: 2 * m),
    "the gate is left out": _without("z"),
    "the bias of Δ is left out": _without(*_BIAS),
    "the bias of Δ is added twice": _with(_BIAS, lambda m: 2 * m),
    "the softplus is left out": _without("delta_softplus", "dt_softplus"),
    "the limits of Δ are ignored": _without("dt_limit"),
    "the initial state is ignored": _without("initial_state", "initial_states"),
    "the documents are ignored: their states meet": _without("seq_idx"),
    "the bias of the convolution is left out": lambda operands, case: _without("bias")(operands, case),
    "the activation is left out": _without("activation"),
    "the taps are in reverse order": lambda operands, case: (
        operands | {"weight": operands["weight"].flip(1)} if case.op == "conv" else None
    ),
    "groups are tiled (i % g), not interleaved (i // (h/g))": _by_group(
        lambda group: torch.arange(len(group)) % (int(group.max()) + 1)
    ),
    "group 0 is read by all": _by_group(torch.zeros_like),
    "the mean is not taken group by group": _without("group_size"),
    "the gate comes after the norm": lambda operands, case: (
        operands | {"norm_before_gate": True} if case.op == "norm" and "z" in operands else None
    ),
    "the gate comes before the norm": lambda operands, case: (
        operands | {"norm_before_gate": False} if case.op == "norm" and "z" in operands else None
    ),
    "the state is lost at every cut": _lost_at("cut"),
    "the state is lost at every chunk border": _lost_at("chunk"),
    **{f"the state is lost every {size} steps": _lost_at("", size) for size in (16, 32, 64, 128, 256, 512, 1024, 2048)},
    "B of the step before is written": _rolled(("B",)),
    "C of the step before reads": _rolled(("C",)),
    "all rows read B and C of row 0": lambda operands, case: (
        _with(("B", "C"), lambda m: m[:1].expand_as(m))(operands, case) if "B" in operands else None
    ),
    "z of another row": lambda operands, case: _with(("z",), lambda m: m.roll(1, dims=0))(operands, case),
}
