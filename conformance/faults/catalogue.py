"""The injected bugs: in which function, and at which stage the vectors must catch each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from conformance.faults import scan, small, ssd
from conformance.faults.reported import REPORTED
from conformance.kernel.arguments import names_of
from conformance.kernel.kernel import Kernel


@dataclass(frozen=True)
class Fault:
    """op: the operation whose function has it; stage: where its first failing case must stand, "" where none fails."""

    op: str
    bug: str
    stage: str


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "selective_scan": scan.selective_scan,
    "ssd": ssd.ssd,
    "step": small.step,
    "conv": small.conv,
    "norm": small.norm,
}

_SHARED = {  # of both scans and of the step
    "recurrence": ("y before the update",),
    "decay": ("exp clamped at -20", "decay grows"),
    "step": (
        *("bias of the step left out", "bias of the step twice", "bias after the softplus as well"),
        *("softplus left out", "softplus overflows", "softplus twice"),
        *("step at least 0.001", "step at most 100"),
    ),
    "skip and gate": ("D left out", "gate left out", "gate is a sigmoid"),
    "precision": ("products in TF32", "products in bfloat16", "products in half", "gate in half"),
    "accuracy": (
        *("exp in half", "exp in bfloat16", "exp to 1e-5", "decay in base 2"),
        *("softplus gives up at 8", "softplus in half"),
    ),
}
_OF_SCANS = {
    "skip and gate": ("gate before D",),
    "batch": ("row 0 of B and C for all", "gate of another row"),
    "groups": ("group 0 for all",),
    "occupancy": ("last column left out",),
    "last state": ("padding of the last chunk read", "last state is of the chunk before"),
    "chunk": ("state lost at chunks", "a thousandth lost at chunks"),
    "initial state": ("initial state ignored", "initial state not decayed", "rows of the cache mixed"),
    "packed": ("documents ignored", "documents begin one step late", "documents begin at chunks only"),
    "precision": ("state kept in bfloat16", "state kept in half"),
}
_OWN = {
    "selective_scan": {
        "recurrence": ("B of the step before", "C of the step before"),
        "decay": ("operands swapped in the sweep", "zero-order hold for B", "divides by running products"),
        "step": ("B without the step",),
        "skip and gate": ("D of channel 0 for all",),
        "groups": ("groups tiled, not interleaved",),
        "occupancy": ("last tile of channels left out",),
        "chunk": ("state lost at 256",),
        "precision": ("state of every step in bfloat16",),
    },
    "ssd": {
        "recurrence": ("the diagonal left out", "B and C exchanged"),
        "decay": ("decay of a step too much", "decay of a step too little"),
        "step": ("B without the step", "limits of the step ignored"),
        "skip and gate": ("D of head 0 for all",),
        "groups": ("heads tiled, not interleaved",),
        "occupancy": ("last head left out", "last tile of a head left out"),
        "chunk": (
            *("wrong axis between chunks", "states summed over the wrong axis"),
            *("state of the chunk before the last", "heads of the state mixed"),
        ),
    },
    "step": {
        "recurrence": ("state not stored",),
        "batch": ("row of another sequence", "gate of another row"),
        "groups": ("heads tiled, not interleaved", "group 0 for all"),
        "occupancy": ("last tile of channels left out",),
        "precision": ("state kept in bfloat16", "state kept in half"),
    },
    "conv": {
        "window": (
            *("taps in reverse", "window one step early", "window one step late", "oldest tap left out"),
            *("bias left out", "bias twice", "activation left out"),
        ),
        "occupancy": ("last channels left out",),
        "last state": ("short window at the wrong end", "last window one step early"),
        "chunk": ("window lost at blocks of 128",),
        "initial state": ("window given ignored",),
        "packed": ("documents ignored",),
        "precision": ("products in TF32", "products in bfloat16"),
    },
    "norm": {
        "norm": (
            *("weight left out", "mean centred", "mean over n - 1"),
            *("epsilon left out", "epsilon of 1e-3", "epsilon after the root", "gate left out", "gate is a sigmoid"),
            "gate on the other side of the norm",
        ),
        "groups": ("mean over all groups",),
        "occupancy": ("mean without the last channels",),
        "precision": ("products in TF32", "products in bfloat16"),
    },
}

_NOT_THERE = {("ssd", "y before the update")}  # a masked product has no such step
_ELSEWHERE = {("ssd", "softplus left out"): "accuracy"}  # its limits leave no negative step


def faults() -> Iterator[Fault]:
    """Every injected bug of a kernel, by operation and stage."""
    for op in FUNCTIONS:
        of_scans = _OF_SCANS if op in ("selective_scan", "ssd") else {}
        tables = [_SHARED if op in ("selective_scan", "ssd", "step") else {}, of_scans, _OWN[op]]
        for table in tables:
            for stage, bugs in table.items():
                for bug in bugs:
                    if (op, bug) not in _NOT_THERE:
                        yield Fault(op, bug, _ELSEWHERE.get((op, bug), stage))
        yield from (Fault(op, bug, found.stage) for (of, bug), found in REPORTED.items() if of == op)


def kernel(op: str, bug: str = "") -> Kernel:
    """Our function for an operation with a bug, or right."""
    state_in = {"seq_idx", "initial_states"} if op == "conv" else set()
    names = {*names_of(op), *state_in, "seq_idx"}
    names -= {"return_last_state", "return_final_states", "return_varlen_states", "cu_seqlens"} | (
        {"seq_idx"} if op in ("step", "norm") else set()
    )
    call, found = partial(FUNCTIONS[op], bug=bug), REPORTED.get((op, bug))
    if found is not None:
        names |= {*found.more}
        if isinstance(found.twist, type):  # it remembers for as long as the kernel lives
            call = partial(_remembering, found.twist(), FUNCTIONS[op])
    by_default = {"group_size": None} if op == "norm" else {}
    return Kernel(f"{op}: {bug or 'right'}", op, call, frozenset(names), defaults=by_default)


def _remembering(twist: Any, right: Callable[..., Any], **given: Any) -> Any:
    return twist(right, given)
