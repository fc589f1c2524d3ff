"""How large the operands are that a kernel was asked with, and which of them were always dense, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import Tensor

from conformance.layouts import VIEWED
from conformance.loader import Case

_NAMED: dict[str, dict[str, tuple[str, int]]] = {
    "selective_scan": {"channels": ("u", 1), "columns": ("A", 1)},
    "ssd": {"heads": ("x", 2), "channels of a head": ("x", 3), "columns": ("B", -1)},
    "conv": {"channels": ("x", 1), "taps": ("weight", -1)},
    "norm": {"channels": ("x", -1)},
    "delta_rule": {"heads": ("v", 2), "places of a key": ("k", -1), "channels of a value": ("v", -1)},
}
"""By operation what has a size: the operand, and its axis."""
_POSITIONS = {"selective_scan": ("u", 2), "ssd": ("x", 1), "conv": ("x", 2), "norm": ("x", 1), "delta_rule": ("v", 1)}


def asked_sizes(ran: Sequence[Case]) -> Iterator[str]:
    """Of the cases that a kernel ran, a sentence for each operation: beyond these nothing is known of it."""
    ops = list(dict.fromkeys(case.op for case in ran))
    for op in ops:
        of_op = [case for case in ran if case.op == op]
        said = "; ".join([*_sizes(op, of_op), *_dense(op, of_op)])
        if said:
            yield f"{op}: {said}" if len(ops) > 1 else said


def _sizes(op: str, ran: Sequence[Case]) -> Iterator[str]:
    """Of each size: "1,025 positions with up to 6 channels, 260 with up to 64"."""
    for what, place in _NAMED.get(op, {}).items():
        pairs = {(_size(case, *place), _size(case, *_POSITIONS[op])) for case in ran}
        steps = [f"{most:,} with up to {size:,}" for size, most in frontier(pairs)]
        yield f"{what}: positions up to {', '.join(steps)}"


def frontier(pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """(size, positions) than which no pair has more of both, from the most positions on."""
    found: list[tuple[int, int]] = []
    for size, positions in sorted(pairs, reverse=True):
        if not found or positions > found[-1][1]:
            found.append((size, positions))
    return found[::-1]


def _size(case: Case, name: str, axis: int) -> int:
    return case.inputs[name].shape[axis]


def _dense(op: str, ran: Sequence[Case]) -> Iterator[str]:
    """The operands that were never parts of wider tensors, where others were."""
    if any(case.options.get("views") for case in ran):
        names = dict.fromkeys(name for case in ran for name, m in case.inputs.items() if isinstance(m, Tensor))
        always = [name for name in names if name not in VIEWED[op].split()]
        if always:
            yield f"always dense: {', '.join(always)}"
