"""The likely cause of wrong results: known mistakes that give exactly all that was seen, if there are such.

Each mistake is a change of a case's operands. The plain operations are run on the changed operands. A mistake, or
several together, are named only where every entry of every wrong case is then what the kernel returned, and every
right case is still right. One that is made under a condition gives all wrong cases alone: it is told apart from these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conformance import exact
from conformance.kernel.arguments import STATE_IN, TIME_AXIS
from conformance.kernel.kernel import piece
from conformance.loader import HOW, Case, ends_of_documents

Operands = dict[str, Any]
Change = Callable[[Operands, Case], Operands | None]

_NEAR = 2.0**-18  # of the largest entry: how far float32 may be where a mistake leads to numbers that are not exact
_EVERY = re.compile(r"the state is lost every (\d+) steps")
_WINDOW = "where the last window begins"  # of a convolution: beside its operands
_TRIED = 12  # wrong cases, the smallest ones, on which each mistake is tried alone


@dataclass(frozen=True)
class Seen:
    """A wrong case, its results if they can be compared, and the first wrong position."""

    case: Case
    results: Mapping[str, Tensor] | None
    position: int | None


def causes(wrong: Sequence[Seen], right: Sequence[Case]) -> tuple[str, str]:
    """The mistakes with which the plain operations give all that was seen, in a few words; "" where none are known.
    And, where that is "", the one mistake that gives all wrong results, but does not leave all right ones
    right, as where it is made under a condition. "" where there is none, or more than one.
    """
    if not wrong or any(each.results is None for each in wrong):
        return "", ""
    by_size = sorted(wrong, key=lambda each: each.case.expected["y"].numel())
    known = _MISTAKES | dict(_lost_where(by_size))
    few = by_size[:_TRIED]
    explaining = {name: [each for each in few if _explains(each, [known[name]])] for name in known}
    giving: dict[str, None] = {}
    for name, explained in explaining.items():
        if len(explained) == len(few) and _explains_all(by_size[_TRIED:], (), [known[name]]):
            if _explains_all((), right, [known[name]]):
                return _once(name, by_size, right) or name, ""
            giving[_once(name, by_size, ()) or name] = None
    together = _together(by_size, right, known, explaining)
    return together, "" if together or len(giving) != 1 else next(iter(giving))


def _together(
    by_size: Sequence[Seen],
    right: Sequence[Case],
    known: Mapping[str, Change],
    explaining: Mapping[str, Sequence[Seen]],
) -> str:
    """Several mistakes that together give all that was seen; explaining: the smallest cases that each explains."""
    # Of each case the first that explains it alone; a case in which several meet is explained by none.
    firsts = {
        next((name for name, explained in explaining.items() if each in explained), None) for each in by_size[:_TRIED]
    }
    chosen = [name for name in known if name in firsts]
    all_explain = lambda names: _explains_all(by_size, right, [known[name] for name in names])
    if len(chosen) < 2 or not all_explain(chosen):
        return ""
    for name in chosen:  # what others explain as well: a loss at a place, beside one at each multiple of it
        others = [other for other in chosen if other != name]
        chosen = others if others and all_explain(others) else chosen
    return " and ".join(chosen)


def _once(name: str, wrong: Sequence[Seen], right: Sequence[Case]) -> str:
    """What a loss every so many steps is called where one at the first of these places explains as much; else ""."""
    if not (said := _EVERY.fullmatch(name)):
        return ""
    once = _lost_every(int(said[1]), most=1)
    return f"the state is lost at position {said[1]}" if _explains_all(wrong, right, [once]) else ""


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
    if found is None:
        return False
    for name in (name for name in case.expected if name in found.results):
        result = found.rounded(name, case.results_in(name))
        if found.exact or case.tolerance:
            if case.wrong(name, result).any():
                return False
        elif not _agree(result, case.expected[name], found.slack(name, result.dtype)):
            return False
    return True


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


@dataclass(frozen=True)
class Computed:
    """What the plain operation gives. exact: in integers and fractions."""

    results: Mapping[str, Any]
    exact: bool

    def rounded(self, name: str, dtype: torch.dtype) -> Tensor:
        return torch.from_numpy(self.results[name].astype(np.float64)).to(dtype)

    def slack(self, name: str, dtype: torch.dtype) -> float:
        """How far from it what is computed in float32 and rounded to a dtype may be: where numbers are below the normal
        ones of float32, which keep few bits or are taken for 0, as far as these.
        """
        sizes = np.abs(self.results[name].astype(np.float64))
        largest = float(sizes[np.isfinite(sizes)].max(initial=0.0))
        return 0.0 if self.exact else max(largest * max(_NEAR, torch.finfo(dtype).eps), torch.finfo(torch.float32).tiny)


def _agree(one: Tensor, other: Tensor, slack: float) -> bool:
    """Whether all entries are as near, or the same where one is no number."""
    one, other = one.double(), other.double()
    return bool((((one - other).abs() <= slack) | (one == other) | (one.isnan() & other.isnan())).all())


def _computed(case: Case, operands: Operands) -> Computed | None:
    """Floats of 64 bits do where a case has a tolerance, or where the operands are no longer those of an exact case."""
    operands = {**operands}
    window = operands.pop(_WINDOW, 0)
    for kind in (exact.Double,) if case.tolerance else (exact.Exact, exact.Double):
        try:
            with np.errstate(invalid="ignore", over="ignore"):  # a mistake may lead beyond float32
                results = getattr(exact, case.op)(kind, **operands)
            if window:
                results = {**results, "last_state": _of_piece(results["last_state"], operands["x"].shape[-1] - window)}
            return Computed(results, kind is exact.Exact)
        except exact.Inexact:
            continue
        except (ArithmeticError, IndexError, ValueError):
            return None
    return None


def _of_piece(window: Any, length: int) -> Any:
    """The window that is handed back behind a piece of so many positions that began with an empty one."""
    kept = np.arange(window.shape[-1]) >= window.shape[-1] - length
    return np.where(kept, window, 0)


def _gives(case: Case, operands: Operands, results: Mapping[str, Tensor]) -> bool:
    """Whether these operands give all that was seen, and are themselves seen to be wrong."""
    found = _computed(case, operands)
    if found is None:
        return False
    shows = False
    for name in ("y", "last_state"):
        if name in results and name in found.results and (name == "y" or name in case.expected):
            expected = found.rounded(name, results[name].dtype)
            if not _is_near(case, name, found, expected, results[name]):
                return False
            shows |= bool(case.wrong(name, expected).any())
    # A mistake that changes nothing here, as between rows where there is one, explains nothing.
    return shows and _gives_documents(case, operands, results)


def _is_near(case: Case, name: str, found: Computed, expected: Tensor, result: Tensor) -> bool:
    """Whether a result is what is computed, as near as a right one must be to what is right."""
    if found.exact and not case.tolerance:
        as_computed = {name: torch.from_numpy(found.results[name].astype(np.float64))}
        return not replace(case, expected=as_computed).wrong(name, result).any()
    tolerated = 4 * float(case.tolerance["y"].max()) if case.tolerance else 0.0
    return _agree(result, expected, tolerated if case.tolerance else found.slack(name, expected.dtype))


def _gives_documents(case: Case, operands: Operands, results: Mapping[str, Tensor]) -> bool:
    """Whether the states of documents are right, or those that these operands give: behind each document the last state
    of as many positions.
    """
    name = "document_states"
    if name not in case.expected or name not in results or not case.wrong(name, results[name]).any():
        return True
    ends, states = ends_of_documents(case.inputs["seq_idx"][0]), []
    for count, stop in enumerate(ends, 1):
        part = {k: piece(case.op, k, m, 0, stop) if isinstance(m, Tensor) else m for k, m in operands.items()}
        initial = part.get(STATE_IN[case.op])
        if initial is not None and len(initial) == len(ends):  # one for each document
            part[STATE_IN[case.op]] = initial[:count]
        found = _computed(case, part)
        if found is None:
            return False
        states.append(found)
    whole = Computed({name: np.concatenate([each.results["last_state"] for each in states])}, states[-1].exact)
    return _is_near(case, name, whole, whole.rounded(name, results[name].dtype), results[name])


def _lost_where(wrong: Sequence[Seen]) -> Iterator[tuple[str, Change]]:
    """A loss at the place, or with the periods, that the first wrong positions have, whatever they are."""
    for period in sorted({each.position for each in wrong if each.position}):
        yield f"the state is lost at position {period}", _lost_every(period, most=1)
        yield f"the state is lost every {period} steps", _lost_every(period)


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


def _restarts(operands: Operands, case: Case, places: Iterable[int]) -> Operands:
    """The state begins with nothing at these places, and where documents begin."""
    x = operands[{"selective_scan": "u", "delta_rule": "v"}.get(case.op, "x")]
    batch, time = x.shape[0], x.shape[TIME_AXIS[case.op]]
    starts = torch.zeros(batch, time, dtype=torch.int32)
    starts[:, [place for place in places if 0 < place < time]] = 1
    if (ids := operands.get("seq_idx")) is not None:
        starts[:, 1:] |= (ids[:, 1:] != ids[:, :-1]).int()
    return operands | {"seq_idx": starts.cumsum(1)}


def _lost_every(size: int | None = None, most: int | None = None) -> Change:
    """So many positions, by default a chunk, of each piece of a sequence that is handed on in pieces; most: how often,
    in each of them.
    """

    def change(operands: Operands, case: Case) -> Operands | None:
        period = size or case.options.get("chunk_size")
        if case.op == "norm" or not period:
            return None
        ends = [0, *case.options.get("cuts", []), case.expected["y"].shape[TIME_AXIS[case.op]]]
        places = [place for start, stop in pairwise(ends) for place in range(start + period, stop, period)[:most]]
        return _restarts(operands, case, places) if places else None

    return change


def _lost_at_cuts(operands: Operands, case: Case) -> Operands | None:
    cuts = case.options.get("cuts", [])
    if not cuts:
        return None
    return _restarts(operands, case, cuts) | ({_WINDOW: max(cuts)} if case.op == "conv" else {})


def _state_ignored(operands: Operands, case: Case) -> Operands | None:
    """What is handed from piece to piece is an initial state too."""
    without = _without("initial_state", "initial_states")(operands, case)
    return _lost_at_cuts(operands if without is None else without, case) or without


def _rolled(names: tuple[str, ...]) -> Change:
    """The operand of the step before."""

    def change(operands: Operands, case: Case) -> Operands | None:
        if case.op not in ("ssd", "selective_scan"):
            return None
        axis = 1 if case.op == "ssd" else -1
        return operands | {name: operands[name].roll(1, dims=axis) for name in names}

    return change


def _nothing_read(operands: Operands, case: Case) -> Operands | None:
    """Each position begins with nothing, the first one too."""
    if case.op in ("conv", "norm"):
        return None
    without = _without("initial_state", "initial_states")(operands, case)
    length = case.expected["y"].shape[TIME_AXIS[case.op]]
    return _restarts(without or operands, case, range(1, length)) if length > 1 else without


_BIAS = ("delta_bias", "dt_bias")
_MISTAKES: dict[str, Change] = {
    "D u is left out": _without("D"),
    "D u is added twice": _with(("D",), lambda m: 2 * m),
    "the gate is left out": _without("z"),
    "the gate acts before D u is added": lambda operands, case: (
        operands | {"gate_before_skip": True} if {"D", "z"} <= operands.keys() else None
    ),
    "D u is multiplied by Δ": lambda operands, case: (
        operands | {"step_in_skip": True} if "D" in operands and case.op in ("ssd", "selective_scan") else None
    ),
    "the bias of Δ is left out": _without(*_BIAS),
    "the bias of Δ is added twice": _with(_BIAS, lambda m: 2 * m),
    "the softplus is left out": _without("delta_softplus", "dt_softplus"),
    "the limits of Δ are ignored": _without("dt_limit"),
    "the initial state is ignored": _state_ignored,
    "the state before a position is not read": _nothing_read,
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
    "the state is lost at every cut": _lost_at_cuts,
    "the state is lost at every chunk border": _lost_every(),
    **{f"the state is lost every {size} steps": _lost_every(size) for size in (16, 32, 64, 128, 256, 512, 1024, 2048)},
    "B of the step before is written": _rolled(("B",)),
    "C of the step before reads": _rolled(("C",)),
    "all rows read B and C of row 0": lambda operands, case: (
        _with(("B", "C"), lambda m: m[:1].expand_as(m))(operands, case) if "B" in operands else None
    ),
    "z of another row": lambda operands, case: _with(("z",), lambda m: m.roll(1, dims=0))(operands, case),
}
