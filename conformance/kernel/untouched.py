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
    """An operand that was given in a call, a copy of it as it was, and where and how it lay in memory."""

    operand: Tensor
    before: Tensor
    place: int
    strides: tuple[int, ...]

    def change(self) -> str:
        """What was done to it, in words that its name follows; "" where it is bit for bit what it was: NaN is the same
        as itself, and 0 is not −0. `m.data = …` may change all but the numbers.
        """
        now = self.operand
        if now.dtype != self.before.dtype:
            return "puts another dtype in the place of"
        if now.shape != self.before.shape:
            return "gives another shape to"
        if now.data_ptr() != self.place:
            return "puts other memory in the place of"
        if now.stride() != self.strides:
            return "gives other strides to"
        return "" if same_bits(self.before, now) else "writes into"


@contextmanager
def untouched(given: Mapping[str, Any], earlier: dict[str, Given]) -> Iterator[None]:
    """Raises Misbehaved where a tensor, or what it is a view of, is not at the end what it was at the beginning; or one
    of the call before, in whose place those of this one are kept.
    """
    last = {**earlier}
    earlier.clear()
    tensors = {name: m for name, m in given.items() if isinstance(m, Tensor)}
    now = {name: Given(m, m.clone(), m.data_ptr(), m.stride()) for name, m in tensors.items()}
    viewed = {name: base for name, m in tensors.items() if (base := m._base) is not None}
    around = {id(base): bits(base).clone() for base in viewed.values()}
    yield
    _raise_if_changed(last, "an operand of the call before,")
    _raise_if_changed(now, "its operand")
    earlier |= now
    if changed := [name for name, base in viewed.items() if not _holds(base, around[id(base)])]:
        raise Misbehaved(f"it writes beside its operand {', '.join(changed)}")


def _raise_if_changed(operands: Mapping[str, Given], which: str) -> None:
    """Raises Misbehaved that names those to which the same was done as to the first of them."""
    changes = {name: change for name, each in operands.items() if (change := each.change())}
    first = next(iter(changes.values()), "")
    if names := [name for name, change in changes.items() if change == first]:
        raise Misbehaved(f"it {first} {which} {', '.join(names)}")


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
