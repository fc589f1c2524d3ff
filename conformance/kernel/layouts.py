"""How operands lie in memory: a kernel reads the same numbers through other strides, those of each operand its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from conformance.kernel.arguments import OF_A_STEP
from conformance.loader import Case
from conformance.lots import lot

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by the bytes of an entry
_PAYLOADS = {torch.float32: (0x7F800000, 2**22), torch.bfloat16: (0x7F80, 2**6), torch.float16: (0x7C00, 2**9)}
_PAYLOADS |= {torch.float64: (0x7FF0000000000000, 2**51), torch.int32: (2**30, 2**22)}
"""Of signalling NaN: the bits that all have, and how many have the same. Of integers: the first and how many."""
_MULTIPLE = 16  # a row of a projection begins at a multiple of it
_VIEWED = {
    "selective_scan": "u delta z B C seq_idx",
    "ssd": "x dt z B C seq_idx",
    "conv": "x seq_idx",
    "norm": "x z",
    "step": "x dt z B C state",
    "delta_rule": "q k v g beta",
}
_HALVED = {"selective_scan": 1, "ssd": 2, "conv": 1, "norm": 2, "step": 1, "delta_rule": 2}
_TIME = {"selective_scan": -1, "ssd": 1, "conv": -1, "delta_rule": 1}
_TIME_BEHIND = {"ssd", "delta_rule"}  # channels are last there, and exchanged with time


def laid_out(op: str, case: Case, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The operands of a call in the layouts that a case asks for: dense where its `views` are False; True: each the
    second half of a tensor twice as wide, as a layer splits its projections; "mixed": each dense, such a half, or with
    time and channels exchanged in memory, drawn from the names of case and operand; "shared": what is the same in
    every row of a batch is stored once, with a stride of 0; as are the operands that the option `shared` names.
    """
    views, found = case.options.get("views", False), {}
    shared = {OF_A_STEP.get(name, name) if op == "step" else name for name in shares(case.options.get("shared"))}
    for name, m in inputs.items():
        stored = m[:1].expand_as(m) if name in shared and isinstance(m, Tensor) else m
        found[name] = _one(op, name, stored, _layout(op, case, name) if views == "mixed" else views)
    return found


def shares(words: str | None) -> list[str]:
    """The names of operands in words: "B and C"."""
    return words.split(" and ") if words else []


def same_in_all_rows(inputs: Mapping[str, Tensor], words: str | None) -> dict[str, Tensor]:
    """Those of the operands named in words that there are, each row that of the first."""
    there = [name for name in shares(words) if name in inputs]
    return {name: inputs[name][:1].repeat_interleave(len(inputs[name]), 0) for name in there}


def viewed(case: Case) -> list[str]:
    """The operands that views are made of."""
    return _VIEWED[case.op].split()


def strided(case: Case) -> list[str]:
    """The operands of a case of views that are no dense tensors there."""
    drawn = case.options.get("views") == "mixed"
    layouts = ((name, _layout(case.op, case, name) if drawn else True) for name in _of_several_axes(case))
    return [name for name, layout in layouts if layout and not _is_dense_in(case, name, layout)]


def _is_dense_in(case: Case, name: str, layout: bool | str) -> bool:
    """Whether an operand is dense with time and channels exchanged: one position, say, or one axis that is both."""
    op, m = case.op, case.inputs[name]
    if layout != "exchanged":
        return False
    time, channels = _TIME[op] % m.dim(), (-1 if op in _TIME_BEHIND else 1) % m.dim()
    passed = m.shape[time + 1 : channels + 1] if time < channels else m.shape[channels:time]
    last = m.movedim(time, channels).shape[-1]
    alone = m.shape[time] <= len(case.options.get("cuts", ())) + 1  # one position in each piece
    return last % _MULTIPLE == 0 and (alone or all(size == 1 for size in passed))


def _of_several_axes(case: Case) -> list[str]:
    """The operands that may lie otherwise than dense."""
    there = ((name, case.inputs[name]) for name in viewed(case) if name in case.inputs)
    return [name for name, m in there if sum(length > 1 for length in m.shape) > 1]


def _layout(op: str, case: Case, name: str) -> bool | str:
    """Drawn; not dense where no other operand may lie in another layout."""
    found: Sequence[bool | str] = (False, True, "exchanged") if op in _TIME else (False, True)
    found = found[1:] if _of_several_axes(case) == [name] else found
    return found[lot(f"{case.name} {name}", len(found))]


def _one(op: str, name: str, m: Any, layout: bool | str) -> Any:
    if not layout or name not in _VIEWED[op].split() or not isinstance(m, Tensor):
        return m
    if layout == "shared":  # not what is written to
        return m[:1].expand_as(m) if name != "state" and bool((m == m[:1]).all()) else m
    repeated = [size > 1 and stride == 0 for size, stride in zip(m.shape, m.stride(), strict=True)]
    if any(repeated):  # one number for all along an axis, as Δ of a head: so it stays
        once = m[tuple(slice(1) if again else slice(None) for again in repeated)]
        return _one(op, name, once, layout).expand_as(m)
    if layout == "exchanged":
        time, channels = _TIME[op], -1 if op in _TIME_BEHIND else 1
        stored = m.movedim(time, channels)
        room = beside((*stored.shape[:-1], -stored.shape[-1] % _MULTIPLE), m)
        return torch.cat([stored, room], -1).narrow(-1, 0, stored.shape[-1]).movedim(channels, time)
    axis = _halved(op, m)
    return torch.cat([beside(m.shape, m), m], axis).narrow(axis, m.shape[axis], m.shape[axis])


def _halved(op: str, m: Tensor) -> int:
    """The axis of which a view is a half: that of a layer's projections; of one row, before which nothing else stands,
    the first behind it. For half of an axis that comes first is dense.
    """
    first = min(_HALVED[op], m.dim() - 1)
    return next((axis for axis in range(first, m.dim()) if math.prod(m.shape[:axis]) > 1), first)


def beside(shape: Sequence[int], like: Tensor) -> Tensor:
    """What stands beside an operand: signalling NaN in its dtype, neighbours with other bits; beside integers others.

    A kernel that reads past its operand finds it, also where that is multiplied by 0. And what is computed from it, as
    2 times it or it plus 0, is a quiet NaN: other bits, by which a write beside the operand is seen.
    """
    first, count = _PAYLOADS[like.dtype]
    numbers = torch.arange(math.prod(shape), device=like.device) % (count - 1) + 1 + first
    return numbers.to(_BITS[like.dtype.itemsize]).view(like.dtype).reshape(shape)


def bits(m: Tensor) -> Tensor:
    """The same memory as integers, which no copy changes."""
    return m.view(_BITS[m.dtype.itemsize])


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors of one shape and dtype hold the same bits."""
    return torch.equal(bits(one), bits(other))


def bits_beside(view: Tensor) -> Tensor | None:
    """What stands beside the second half of a wider tensor, as integers; None where it is dense."""
    base = view._base
    if base is None:
        return None
    axis = next(axis for axis, size in enumerate(base.shape) if size != view.shape[axis])
    return bits(base.narrow(axis, 0, base.shape[axis] - view.shape[axis]))


def is_dense(m: Any) -> bool:
    """Whether it is a tensor that is neither nested nor sparse."""
    return isinstance(m, Tensor) and not m.is_nested and m.layout == torch.strided
