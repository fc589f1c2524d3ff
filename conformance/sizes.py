"""How large the operands are that a kernel was asked with, and which of them were always dense, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from conformance.features import sizes
from conformance.layouts import viewed
from conformance.loader import Case

_TOLD: dict[str, dict[str, str]] = {
    "selective_scan": {"channels": "channels", "columns": "state columns"},
    "ssd": {"heads": "heads", "channels of a head": "channels of a head", "columns": "state columns"},
    "conv": {"channels": "channels", "taps": "taps"},
    "norm": {"channels": "channels"},
    "delta_rule": {
        "heads": "heads",
        "places of a key": "places of a key",
        "channels of a value": "channels of a head",
    },
}
"""By operation the sizes that are told with the positions, and their names in `features.sizes`."""


def by_operation(ran: Sequence[Case], said: Callable[[Sequence[Case]], str]) -> Iterator[str]:
    """What is said of the cases of each operation, behind its name where there are several; not where it is ""."""
    ops = list(dict.fromkeys(case.op for case in ran))
    for op in ops:
        if words := said([case for case in ran if case.op == op]):
            yield f"{op}: {words}" if len(ops) > 1 else words


def asked_sizes(ran: Sequence[Case]) -> Iterator[str]:
    """Of the cases that a kernel ran, a sentence for each operation: beyond these nothing is known of it."""
    return by_operation(ran, lambda of_op: "; ".join([*_ends(of_op), *_dense(of_op)]))


def _ends(ran: Sequence[Case]) -> Iterator[str]:
    """Of each size: "1,025 positions with up to 6 channels, 260 with up to 64"."""
    told = _TOLD.get(ran[0].op, {})
    found = [sizes(case) for case in ran] if told else []
    for what, name in told.items():
        steps = frontier({(each[name], each["positions"]) for each in found})
        yield f"{what}: positions up to {', '.join(f'{most:,} with up to {size:,}' for size, most in steps)}"


def frontier(pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """(size, positions) than which no pair has more of both, from the most positions on."""
    found: list[tuple[int, int]] = []
    for size, positions in sorted(pairs, reverse=True):
        if not found or positions > found[-1][1]:
            found.append((size, positions))
    return found[::-1]


def _dense(ran: Sequence[Case]) -> Iterator[str]:
    """The operands that were never parts of wider tensors, where others were."""
    if any(case.options.get("views") for case in ran):
        names = dict.fromkeys(name for case in ran for name, m in case.inputs.items() if isinstance(m, Tensor))
        always = [name for name in names if name not in viewed(ran[0])]
        if always:
            yield f"always dense: {', '.join(always)}"
