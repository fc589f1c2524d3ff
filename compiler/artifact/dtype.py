"""A stack in the arithmetic that its promise is made for."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

from compiler.formats import format_of

_Model = TypeVar("_Model", bound=nn.Module)


def in_dtype(stack: _Model, dtype: str) -> _Model:
    """The stack with its weights in the dtype; A_log and D stay in float32, as the kernels require."""
    if dtype == "float32":
        return stack
    kept = {name: p.data for name, p in stack.named_parameters() if name.endswith(("A_log", ".D"))}
    stack = stack.to(format_of(dtype).torch_dtype)
    for name, parameter in stack.named_parameters():
        if name in kept:
            parameter.data = kept[name]
    return stack
