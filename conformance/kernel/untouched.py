"""What a call must leave as it was: its operands, those of the call before, and the memory around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from conformance.kernel.layouts import bits, bits_beside, same_bits
from conformance.kernel.misbehaved import Misbehaved


@dataclass(frozen=True)
class Given:
    """An operand that was given in a call, and a copy of it as it was."""

    operand: Tensor
    before: Tensor


@contextmanager
def untouched(given: Mapping[str, Any], earlier: dict[str, Given]) -> Iterator[None]:
    """Raises Misbehaved where a tensor, or what it is a view of, is not at the end what it was at the beginning; or one
    of the call before, in whose place those of this one are kept.
    """
    last = {**earlier}
    earlier.clear()
    tensors = {name: m for name, m in given.items() if isinstance(m, Tensor)}
    before = {name: m.clone() for name, m in tensors.items()}
    around = {id(base): bits(base).clone() for m in tensors.values() if (base := m._base) is not None}
    memory = {name: _memory(m) for name, m in tensors.items()}
    yield
    if changed := [name for name, each in last.items() if not _is_same(each.before, each.operand)]:
        raise Misbehaved(f"it writes into an operand of the call before, {', '.join(changed)}")
    earlier |= {name: Given(given[name], m) for name, m in before.items() if given[name].shape == m.shape}
    if changed := [name for name, m in before.items() if not _is_same(m, given[name])]:
        earlier.clear()
        raise Misbehaved(f"it writes into its operand {', '.join(changed)}")
    if changed := [name for name, m in tensors.items() if _memory(m) != memory[name]]:
        earlier.clear()
        raise Misbehaved(f"it puts other memory in the place of its operand {', '.join(changed)}")
    viewed = {name: m._base for name, m in tensors.items() if m._base is not None}
    if changed := [name for name, base in viewed.items() if not _holds(base, around[id(base)])]:
        raise Misbehaved(f"it writes beside its operand {', '.join(changed)}")


@contextmanager
def in_place(state: Tensor) -> Iterator[None]:
    """Raises Misbehaved where a state has other memory at the end, or something was written beside it."""
    memory, beside_it = state.data_ptr(), bits_beside(state)
    before = None if beside_it is None else beside_it.clone()
    yield
    if state.data_ptr() != memory:
        raise Misbehaved("it puts other memory in the place of its state")
    if beside_it is not None and before is not None and not torch.equal(beside_it, before):
        raise Misbehaved("it writes beside its state")


def _holds(base: Tensor, before: Tensor) -> bool:
    """Whether memory has the bits that it had."""
    return base.shape == before.shape and torch.equal(bits(base), before)


def _is_same(before: Tensor, after: Tensor) -> bool:
    """Bit for bit, in the same dtype: NaN is the same as itself, and 0 is not −0."""
    return before.shape == after.shape and before.dtype == after.dtype and same_bits(before, after)


def _memory(m: Tensor) -> tuple[int, tuple[int, ...]]:
    """Where a tensor lies, and how: `m.data = …` may change both, and no number."""
    return m.data_ptr(), m.stride()
