"""The likely cause of wrong results: known mistakes that give exactly all that was seen, if there are such.

Each mistake is a change of a case's operands. The plain operations are run on the changed operands. A mistake, or
several together, are named only where every entry of every wrong case is then what the kernel returned, and every
right case is still right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conformance import exact
from conformance.kernel import TIME_AXIS
from conformance.loader import HOW, Case

Operands = dict[str, Any]
Change = Callable[[Operands, Case], Operands | None]

_TRIED = 12  # wrong cases, the smallest ones, on which each mistake is tried alone


@dataclass(frozen=True)
class Seen:
    """A wrong case, its results if they can be compared, and the first wrong position."""

    case: Case
    results: Mapping[str, Tensor] | None
    position: int | None


def likely(wrong: Sequence[Seen], right: Sequence[Case]) -> str:
    """The mistakes with which the plain operations give all that was seen, in a few words; "" where none are known."""
    if not wrong or any(each.results is None for each in wrong):
        return ""
    by_size = sorted(wrong, key=lambda each: each.case.expected["y"].numel())
    known = _MISTAKES | dict(_lost_where(by_size))
    few = by_size[:_TRIED]
    explaining = {name: [each for each in few if _explains(each, [known[name]])] for name in known}
    for name, explained in explaining.items():
        if len(explained) == len(few) and _explains_all(by_size[_TRIED:], right, [known[name]]):
            return name
    # Of each case the first that explains it alone; a case in which several meet is explained by none.
    firsts = {next((name for name, explained in explaining.items() if each in explained), None) for each in few}
    chosen = [name for name in known if name in firsts]
    together = [known[name] for name in chosen]
    if len(chosen) > 1 and _explains_all(by_size, right, together):
        return " and ".join(chosen)
    return ""


def _explains_all(wrong: Sequence[Seen], right: Sequence[Case], mistakes: Sequence[Change]) -> bool:
    return all(_explains(each, mistakes) for each in wrong) and all(_spares(case, mistakes) for case in right)


def _explains(seen: Seen, mistakes: Sequence[Change]) -> bool:
    changed = _changed(seen.case, mistakes)
    return changed is not None and seen.results is not None and _gives(seen.case, changed, seen.results)


def _spares(case: Case, mistakes: Sequence[Change]) -> bool:
    """Whether a right case is right with these mistakes as well."""
    changed = _changed(case, mistakes)
    if changed is None:
        return True
    found = _computed(case, changed)
    return found is not None and all(
        not case.wrong(name, torch.from_numpy(found[name].astype(np.float64))).any()
        for name in case.expected
        if name in found
    )


def _changed(case: Case, mistakes: Sequence[Change]) -> Operands | None:
    """The operands of a case after each of the mistakes that it has; None where it has none of them."""
    inputs = {key: m.float() if m.is_floating_point() else m for key, m in case.inputs.items()}
    operands: Operands = {**inputs, **{k: v for k, v in case.options.items() if k not in (*HOW, "chunk_size")}}
    touched = False
    for mistake in mistakes:
        changed = mistake(operands, case)
        touched |= changed is not None
        operands = operands if changed is None else changed
    return operands if touched else None


def _computed(case: Case, operands: Operands) -> dict[str, Any] | None:
    """The plain operation; floats of 64 bits will do where a case has a tolerance."""
    try:
        return getattr(exact, case.op)(exact.Double if case.tolerance else exact.Exact, **operands)
    except (exact.Inexact, ArithmeticError, IndexError, ValueError):
        return None


def _gives(case: Case, operands: Operands, results: Mapping[str, Tensor]) -> bool:
    found = _computed(case, operands)
    if found is None:
        return False
    slack = 4 * float(case.tolerance["y"].max()) if case.tolerance else 0.0
    for name in ("y", "last_state"):
        if name in results and name in found and (name == "y" or name in case.expected):
            expected = torch.from_numpy(found[name].astype(np.float64)).to(results[name].dtype).double()
            if not ((results[name].double() - expected).abs() <= slack).all():
                return False
    return True


def _lost_where(wrong: Sequence[Seen]) -> Iterator[tuple[str, Change]]:
    """A loss with the periods that the first wrong positions have, whatever they are."""
    for period in sorted({each.position for each in wrong if each.position}):
        yield f"the state is lost every {period} steps", _lost_at("", period)


def _without(*names: str) -> Change:
    def change(operands: Operands, case: Case) -> Operands | None:
        present = [name for name in names if operands.get(name) is not None and operands[name] is not False]
        return {key: value for key, value in operands.items() if key not in present} if present else None

    return change


def _with(names: tuple[str, ...], new: Callable[[Tensor], Tensor]) -> Change:
    def change(operands: Operands, case: Case) -> Operands | None:
        present = {name: new(operands[name]) for name in names if operands.get(name) is not None}
        return operands | present if present else None

    return change


def _by_group(reorder: Callable[[Tensor], Tensor]) -> Change:
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
    x = operands[{"selective_scan": "u", "delta_rule": "v"}.get(case.op, "x")]
    batch, time = x.shape[0], x.shape[TIME_AXIS[case.op]]
    starts = torch.zeros(time, dtype=torch.int32)
    starts[[place for place in places if 0 < place < time]] = 1
    return operands | {"seq_idx": starts.cumsum(0)[None].expand(batch, -1)}


def _lost_at(what: str, size: int | None = None) -> Change:
    def change(operands: Operands, case: Case) -> Operands | None:
        if case.op == "norm" or "seq_idx" in operands:
            return None
        places = list(range(size, 4096, size)) if size else case.borders.get(what, [])
        return _restarts(operands, case, places) if places else None

    return change


def _rolled(names: tuple[str, ...]) -> Change:
    """The operand of the step before."""

    def change(operands: Operands, case: Case) -> Operands | None:
        if case.op not in ("ssd", "selective_scan"):
            return None
        axis = 1 if case.op == "ssd" else -1
        return operands | {name: operands[name].roll(1, dims=axis) for name in names}

    return change


_BIAS = ("delta_bias", "dt_bias")
_MISTAKES: dict[str, Change] = {
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
