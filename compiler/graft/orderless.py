"""PyTorch with sums that do not depend on the order: computed in float64 and rounded once.

A library may add the same numbers in another order when rows get longer, and vectorised functions may end in other last
bits at the end of a row. Under `orderless()` neither happens (but for a sum that comes within 2^-50 of itself to a tie
of float32), so that two models that compute the same sums of the same numbers give the same bits. That is what
`compiler.graft.bound` proves of a direct sum, and this runs it.
"""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
_ROUNDED = frozenset(
    {
        _aten.mm, _aten.addmm, _aten.bmm, _aten.baddbmm, _aten.convolution, _aten.sum, _aten.mean, _aten.cumsum,
        _aten.exp, _aten.silu, _aten.softplus, _aten.sigmoid, _aten.rsqrt, _aten.log1p,
    }
)  # fmt: skip


class orderless(TorchDispatchMode):
    """A context in which float32 and bfloat16 sums and functions are computed in float64 and rounded once."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func._overloadpacket not in _ROUNDED:
            return func(*args, **kwargs)
        narrow = next((a.dtype for a in args if isinstance(a, torch.Tensor) and a.is_floating_point()), None)
        if narrow is None or kwargs.get("dtype") is not None:
            return func(*args, **kwargs)
        wide = [a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args]
        return func(*wide, **kwargs).to(narrow)
