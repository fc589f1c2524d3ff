"""Blocks of shapes without values, built without importing PyTorch's compiler.

PyTorch tells the shape of exp(x) or of arange(5) on the meta device by functions in Python that import torch._dynamo
and sympy: a second of every start, for steps and decays that the constructor of a block computes and nobody reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

_ELEMENTWISE = frozenset(
    getattr(home, name)
    for home in (torch, Tensor)
    for name in ("add", "clamp", "exp", "expm1", "log", "mul", "neg", "__add__", "__mul__", "__neg__")
    if hasattr(home, name)
)


class ShapesOnly(TorchFunctionMode):
    """Within it, what one float tensor on the meta device becomes element by element is empty, and so are ranges."""

    def __torch_function__(self, func, types, args=(), kwargs=None) -> Any:
        options = kwargs or {}
        if func in _ELEMENTWISE and all(_keeps(args[0], value) for value in (*args, *options.values())):
            return torch.empty(args[0].shape, dtype=args[0].dtype, device="meta")
        if func is torch.arange and _is_counted(args, options):
            return torch.empty(len(range(*args)), **options)
        return func(*args, **options)


def _keeps(first: Any, value: Any) -> bool:
    """Whether a result has the first tensor's shape and dtype beside this value: a number, or a tensor just like it."""
    if not isinstance(first, Tensor) or not first.is_meta or not first.is_floating_point():
        return False
    if isinstance(value, Tensor):
        return value.is_meta and value.shape == first.shape and value.dtype == first.dtype
    return isinstance(value, (int, float))


def _is_counted(bounds: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    """Whether a range on the meta device goes from one whole number to another, in a dtype that is given."""
    whole = bool(bounds) and all(isinstance(bound, int) for bound in bounds)
    return whole and options.keys() == {"dtype", "device"} and torch.device(options["device"]).type == "meta"
