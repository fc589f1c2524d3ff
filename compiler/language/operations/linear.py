"""Operations that are linear in their inputs, at one position or over the past."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
from scipy import sparse

from compiler.language.operations.base import (
    Array,
    Operation,
    Sees,
    apply,
    needs,
    not_dyadic,
    shifted,
)
from compiler.language.types import Bool, Int, Real, Type


@dataclass(frozen=True, eq=False)
class Linear(Operation):
    """Σ_i matrix_i · input_i, all at the present position."""

    sees: ClassVar[Sees] = Sees.LINEAR
    zero_preserving: ClassVar[bool] = True

    matrices: tuple[sparse.csr_array, ...] = field(repr=False)
    type: Type | None = None

    def result_type(self, *inputs: Type) -> Type:
        if self.type is not None:
            return self.type
        width = self.matrices[0].shape[0]
        whole = all(t.integral for t in inputs) and not any((m.data % 1).any() for m in self.matrices)
        return Int(width=width) if whole else Real(width=width)

    def problems(self, *inputs: Type) -> list[str]:
        return [
            f"input {i} has {t.width} lanes and its matrix has {m.shape[1]} columns"
            for i, (t, m) in enumerate(zip(inputs, self.matrices, strict=True))
            if t.width != m.shape[1]
        ]

    def evaluate(self, *inputs: Array) -> Array:
        total = apply(self.matrices[0], inputs[0])
        for matrix, x in zip(self.matrices[1:], inputs[1:], strict=True):
            total = total + apply(matrix, x)
        return total


@dataclass(frozen=True, eq=False)
class Emit(Linear):
    """Σ_i matrix_i · input_i for flags: the scores of a list of rules."""

    def problems(self, *inputs: Type) -> list[str]:
        return super().problems(*inputs) + needs(Bool, "a Bool", *inputs)


@dataclass(frozen=True)
class Shift(Operation):
    """The value k ≥ 0 positions earlier; zeros before the start."""

    zero_preserving: ClassVar[bool] = True

    k: int

    def result_type(self, x: Type) -> Type:
        return x

    def problems(self, x: Type) -> list[str]:
        return (
            [f"shift({self.k}) would read {-self.k} positions ahead; only the past can be read"] if self.k < 0 else []
        )

    def evaluate(self, x: Array) -> Array:
        return shifted(x, self.k)


@dataclass(frozen=True)
class Lti(Operation):
    """Σ_k kernel[k] · x(t − k): a fixed causal filter on every lane."""

    zero_preserving: ClassVar[bool] = True

    kernel: tuple[Fraction, ...]

    def result_type(self, x: Type) -> Type:
        whole = x.integral and all(k.denominator == 1 for k in self.kernel)
        return Int(width=x.width) if whole else Real(width=x.width)

    def problems(self, x: Type) -> list[str]:
        return not_dyadic("its tap", self.kernel)

    def evaluate(self, x: Array) -> Array:
        scale = (lambda k: k) if x.dtype == object else float
        return sum((scale(tap) * shifted(x, k) for k, tap in enumerate(self.kernel)), start=np.zeros_like(x))
