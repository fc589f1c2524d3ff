"""Random operands in the modes of the exact cases, held to a tolerance.

Exact operands see what is nearly right; they say nothing of how an implementation treats ordinary numbers. Results are
computed in float64; an entry may be off by TOLERANCE of the largest result of its case and of itself.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conformance import exact
from conformance.cases.draw import assemble, case
from conformance.loader import Case

RANDOM = "random: "  # how the names of these cases begin
TOLERANCE = 1e-4
_MODES: dict[str, dict[str, Any]] = {
    "recurrence": {"length": 13},
    "skip and gate": {"length": 13, "gate": True},
    "batch": {"length": 9, "batch": 3},
    "groups": {"length": 20, "heads": 4, "groups": 2},
    "occupancy": {"length": 4, "heads": 13, "p": 9, "n": 5},
    "chunk": {"length": 100},
    "last state": {"length": 40, "last": True},
    "initial state": {"length": 20, "initial": True, "batch": 2, "last": True},
    "continuation": {"length": 60, "cuts": [1, 3, 40], "last": True},
    "packed": {"length": 50, "documents": [7, 3, 25, 15]},
}
_DELTA_MODES: dict[str, dict[str, Any]] = {
    "recurrence": {"length": 13},
    "norm": {"length": 13, "normed": True},
    "groups": {"length": 13, "spread": 2},
    "chunk": {"length": 150},
    "last state": {"length": 70, "last": True},
    "initial state": {"length": 20, "initial": True, "last": True},
    "continuation": {"length": 60, "cuts": [1, 3, 40], "last": True},
}


def companion_cases(op: str) -> Iterator[Case]:
    """Random cases of an operation, in the order of their stages."""
    if op in ("selective_scan", "ssd"):
        for stage, sizes in _MODES.items():
            yield _scan(op, stage, **sizes)
    elif op == "delta_rule":
        for stage, shape in _DELTA_MODES.items():
            yield _delta(stage, **shape)
    elif op == "conv":
        yield _conv("window", 20)
        yield _conv("batch", 9, batch=3)
        yield _conv("occupancy", 5, channels=67)
        yield _conv("continuation", 30, cuts=[1, 2, 17])
        yield _conv("packed", 30, documents=[5, 2, 23])
    else:
        yield _norm("norm", 24)
        yield _norm("groups", 24, group_size=8)
        yield _norm("occupancy", 67)


def _scan(
    op: str,
    stage: str,
    length: int,
    batch: int = 2,
    heads: int = 3,
    p: int = 2,
    n: int = 3,
    groups: int = 1,
    gate: bool = False,
    initial: bool = False,
    cuts: list[int] | None = None,
    documents: list[int] | None = None,
    last: bool = False,
) -> Case:
    normal = _normal(f"{op} {stage}")
    own = 1 if op == "ssd" else p
    documented = None
    if documents:
        ids = [i for i, size in enumerate(documents) for _ in range(size)]
        documented = torch.tensor([ids] * batch, dtype=torch.int32)
    A = (
        -torch.arange(1.0, n + 1).expand(heads, own, n)
        if op != "ssd"
        else -(1 + torch.arange(heads))[:, None, None] / 2
    )
    inputs = assemble(
        op,
        normal(batch, length, heads, p),
        normal(batch, length, heads, own) - 1,
        A.float(),
        normal(batch, length, groups, n),
        normal(batch, length, groups, n),
        D=normal(heads, own),
        z=normal(batch, length, heads, p) if gate else None,
        bias=normal(heads, own) / 2,
        initial=normal(batch, heads, p, n) if initial else None,
        seq_idx=documented,
    )
    options: dict[str, Any] = {"delta_softplus" if op == "selective_scan" else "dt_softplus": True}
    options |= {"chunk_size": 16} if op == "ssd" else {}
    options |= {"cuts": cuts} if cuts else {}
    asks = f"ordinary numbers: {stage}"
    return case(
        op, stage, f"{RANDOM}{stage}", asks, inputs, options, last_state=last, relative=TOLERANCE, absolute=TOLERANCE,
        kind=exact.Double,
    )  # fmt: skip


def _delta(
    stage: str,
    length: int,
    spread: int = 1,
    normed: bool = False,
    initial: bool = False,
    cuts: list[int] | None = None,
    last: bool = False,
) -> Case:
    """Keys of length 1, β between 0 and 2, and decays as layers begin with."""
    normal = _normal(f"delta {stage}")
    time, heads = (2, length), 2 * spread
    q, k = (m if normed else m / m.norm(dim=-1, keepdim=True) for m in (normal(*time, 2, 16) for _ in range(2)))
    inputs = {"q": q, "k": k, "v": normal(*time, heads, 5), "g": -normal(*time, heads).abs() / 8}
    inputs["beta"] = 2 * normal(*time, heads).sigmoid()
    if initial:
        inputs["initial_state"] = normal(2, heads, 16, 5)
    options = {"chunk_size": 64, "use_qk_l2norm_in_kernel": normed} | ({"cuts": cuts} if cuts else {})
    return case(
        "delta_rule", stage, f"{RANDOM}{stage}", f"ordinary numbers: {stage}", inputs, options, last_state=last,
        relative=TOLERANCE, absolute=TOLERANCE, kind=exact.Double,
    )  # fmt: skip


def _conv(
    stage: str,
    length: int,
    batch: int = 2,
    channels: int = 6,
    cuts: list[int] | None = None,
    documents: list[int] | None = None,
) -> Case:
    normal = _normal(f"conv {stage}")
    inputs = {"x": normal(batch, channels, length), "weight": normal(channels, 4), "bias": normal(channels)}
    if documents:
        ids = [i for i, size in enumerate(documents) for _ in range(size)]
        inputs["seq_idx"] = torch.tensor([ids] * batch, dtype=torch.int32)
    options = {"activation": "silu"} | ({"cuts": cuts} if cuts else {})
    asks = f"ordinary numbers: {stage}"
    return case(
        "conv", stage, f"{RANDOM}{stage}", asks, inputs, options, relative=TOLERANCE, absolute=TOLERANCE,
        kind=exact.Double,
    )  # fmt: skip


def _norm(stage: str, width: int, group_size: int | None = None) -> Case:
    normal = _normal(f"norm {stage}")
    inputs = {"x": normal(2, 5, width), "weight": normal(width), "z": normal(2, 5, width)}
    options = {"eps": 1e-5, "group_size": group_size or width, "norm_before_gate": False}
    asks = f"ordinary numbers: {stage}"
    return case(
        "norm", stage, f"{RANDOM}{stage}", asks, inputs, options, relative=TOLERANCE, absolute=TOLERANCE,
        kind=exact.Double,
    )  # fmt: skip


def _normal(name: str) -> Callable[..., Tensor]:
    random = np.random.RandomState(zlib.crc32(f"companion {name}".encode()))

    def draw(*shape: int) -> Tensor:
        return torch.from_numpy(random.standard_normal(shape).astype(np.float32))

    return draw
