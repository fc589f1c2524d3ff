"""A CPU that flushes subnormal numbers to 0, as many backends do: no promise may rest on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def flushed() -> Iterator[bool]:
    """Gives whether this CPU can do it; without it numbers stay as they are."""
    able = torch.set_flush_denormal(True)
    try:
        yield able
    finally:
        torch.set_flush_denormal(False)
