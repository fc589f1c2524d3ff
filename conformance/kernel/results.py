"""What a kernel gives back: copied before it is called again, and put together where it came in pieces."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from conformance.interrupt import interrupted
from conformance.kernel.layouts import is_dense
from conformance.kernel.misbehaved import Misbehaved
from conformance.sentences import sentence


def joined(join: Callable[..., Tensor], pieces: Sequence[Any], axis: int) -> Any:
    """The pieces as one result; or the first that is no dense tensor, which is then told as what it is. Raises
    Misbehaved where their shapes do not fit together.
    """
    other = [m for m in pieces if not is_dense(m)]
    if other:
        return other[0]
    rest = lambda m: (*m.shape[:axis], *m.shape[axis + (join is torch.cat) :])
    least = axis + (join is torch.cat)  # axes that each must have
    if any(m.dim() < least or rest(m) != rest(pieces[0]) for m in pieces):
        shapes = ", ".join(map(str, dict.fromkeys(tuple(m.shape) for m in pieces)))
        raise Misbehaved(f"y of one call after the other has the shapes {shapes}, which are no parts of one y")
    return join(pieces, axis)


def brought_back(result: Any) -> Any:
    """A result on the CPU; what is no tensor, or has no values, is told as it is."""
    return result.cpu() if isinstance(result, Tensor) and not result.is_meta else result


def kept(name: str, result: Any) -> Any:
    """A copy, made before the kernel is called again: it may write each result into the same memory. Of a class of
    others, whose methods may do anything, the numbers alone; raises Misbehaved where they cannot be read. A coroutine
    is closed: no warning that it was never awaited comes later.
    """
    if inspect.iscoroutine(result):
        result.close()
    if type(result) in (Tensor, torch.nn.Parameter) or not isinstance(result, Tensor):
        return result.detach().clone() if is_dense(result) and not result.is_meta else result
    try:
        if not is_dense(result) or result.is_meta:
            return result
        plain = torch.empty(result.shape, dtype=result.dtype, device=result.device)
        plain.copy_(result.detach())  # gives one of the class of others back
        return plain
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and interrupted():
            raise
        kind = type(result).__name__
        raise Misbehaved(f"{name}, a tensor of the class {kind}, cannot be read: {sentence(error)}") from error
