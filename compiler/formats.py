"""The floating point formats that a promise can be made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from compiler.lattice.units import array_units

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Format:
    """A floating point format.

    significand: bits p, the implicit one included: integers are exact up to 2^p.
    largest:     no value of a block may exceed it (a power of two below the end of the range, where there is room).
    smallest:    the least number that no backend flushes to 0 (float16 alone keeps its subnormal numbers everywhere).
    absorbed:    a norm's ballast must exceed this multiple of the data's sum of squares (exactness E7). In
                 float32 the data then vanish from the sum, being below half an ulp. Narrower formats divide in
                 float32 and round the quotient back, which a relative error below half their ulp does not change.
    """

    name: str
    significand: int
    largest: float
    smallest: float
    absorbed: int

    @property
    def torch_dtype(self) -> torch.dtype:
        import torch

        return getattr(torch, self.name)

    @property
    def exact_integers(self) -> int:
        """2^p: all integers up to here are exact, and so are their sums in any order (exactness E11)."""
        return 1 << self.significand

    def holds(self, values: np.ndarray) -> np.ndarray:
        """Which float64 numbers the format holds exactly, on every backend: a mask of the shape of the values."""
        size, units = np.abs(values), array_units(values)
        fits = (size < units * self.exact_integers) & (size <= self.largest) & (units >= self.smallest)
        return fits | (values == 0)


FLOAT32 = Format("float32", 24, 2.0**127, 2.0**-126, 2**25)
BFLOAT16 = Format("bfloat16", 8, 2.0**127, 2.0**-126, 2**10)
FLOAT16 = Format("float16", 11, 65504.0, 2.0**-24, 2**13)
FORMATS = {format.name: format for format in (FLOAT32, BFLOAT16, FLOAT16)}


def format_of(name: str) -> Format:
    """The format of this name; ValueError for a name that is none."""
    if not isinstance(name, str) or name not in FORMATS:
        raise ValueError(f"dtype {name!r:.60} is unknown; it must be one of {', '.join(FORMATS)}")
    return FORMATS[name]
