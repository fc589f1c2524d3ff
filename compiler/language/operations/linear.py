"""Operations that are linear in their inputs, at one position or over the past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

from compiler.language.kinds import Kind, is_flags, kinds_of, number_type, of_kinds
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array, add, apply, not_dyadic, number_text, shifted
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import LaneWise, Sees
from compiler.language.operations.wording import called, grouped, picked, term
from compiler.language.types import Real, Type
from compiler.lattice.domain import Domain, in_units, times, with_zero
from compiler.lattice.intervals import Value, exact
from compiler.lattice.units import unit_of

_REAL, _FLAG = int(Kind.REAL), int(Kind.FLAG)
_LONGEST_SHIFT = 8  # that paths follow


@dataclass(frozen=True, eq=False)
class Linear(Operation):
    """Σ_i matrix_i · input_i, all at the present position."""

    followed: ClassVar[bool] = True
    free: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.LINEAR
    zero_preserving: ClassVar[bool] = True

    matrices: tuple[sparse.csr_array, ...] = field(repr=False)
    type: Type | None = None

    def written(self, *inputs: str) -> str:
        if len(inputs) == 1:
            return _linear_map(self.matrices[0], inputs[0])
        if all(_scale(matrix) is None for matrix in self.matrices):
            word = "concatenate" if _side_by_side(self.matrices) else "linear"
            return f"{word}({', '.join(inputs)})"
        terms = [term(_linear_map(matrix, text)) for matrix, text in zip(self.matrices, inputs, strict=True)]
        first = next((i for i, text in enumerate(terms) if not text.startswith("-")), 0)
        return " + ".join([terms[first], *terms[:first], *terms[first + 1 :]]).replace("+ -", "- ")

    def result_type(self, *inputs: Type) -> Type:
        if self.type is not None:
            return self.type
        if any(t.width != m.shape[1] for t, m in zip(inputs, self.matrices, strict=True)):
            return Real(width=self.matrices[0].shape[0])  # the check pass refuses it
        return of_kinds(_row_kinds(self.matrices, [kinds_of(t) for t in inputs]))

    def problems(self, *inputs: Type) -> list[str]:
        wrong = [(t, m) for t, m in zip(inputs, self.matrices, strict=True) if t.width != m.shape[1]]
        if wrong and len(inputs) > 1 and all(_scale(matrix) is not None for matrix in self.matrices):
            widths = " and ".join(str(t.width) for t in inputs)
            return [f"its operands have {widths} lanes; they must agree, or one of them be a single lane"]
        return [
            f"the matrix has {m.shape[1]} columns, and {t.width} are needed, one for each lane of its operand"
            for t, m in wrong
        ]

    def carries(self, number: int, *widths: int) -> tuple[int, int] | None:
        found = self.multiple(number)
        return found[:2] if found is not None and found[2] == 1 else None

    def multiple(self, number: int) -> tuple[int, int, float] | None:
        rows = [(i, matrix[[number]].tocoo()) for i, matrix in enumerate(self.matrices)]
        read = [(i, row) for i, row in rows if row.nnz]
        if len(read) != 1 or read[0][1].nnz != 1:
            return None
        return read[0][0], int(read[0][1].col[0]), read[0][1].data[0]

    @property
    def maps(self) -> tuple[sparse.csr_array, ...]:
        return self.matrices

    @property
    def declared(self) -> Type | None:
        return self.type

    @property
    def arity(self) -> int:
        return len(self.matrices)

    def lanes_read(self, read: Array, *widths: int) -> list[Array]:
        return [np.isin(np.arange(m.shape[1]), sparse.csr_array(m)[read].indices) for m in self.matrices]

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.linear(self.matrices, stream)

    def formed(self, stream: Operand, known: Known) -> Fraction:
        return known.partial_sum(zip(self.matrices, stream.inputs, strict=True))

    def step(self, memory: Any, counted: int, *operands: Value) -> tuple[Value | None, Any]:
        width = self.matrices[0].shape[0]
        low, high = [0] * width, [0] * width
        if self not in _ENTRIES:
            _ENTRIES[self] = tuple(tuple(_entries(matrix)) for matrix in self.matrices)
        for entries, value in zip(_ENTRIES[self], operands, strict=True):
            for row, column, weight in entries:
                lo, hi = value[column] if weight > 0 else value[column][::-1]
                low[row] += weight * lo
                high[row] += weight * hi
        return tuple(zip(low, high, strict=True)), None

    def evaluate(self, *inputs: Array) -> Array:
        if len(inputs) == 1:
            return apply(self.matrices[0], inputs[0])
        total = np.zeros((*inputs[0].shape[:-1], self.matrices[0].shape[0]), np.result_type(*inputs))
        for matrix, x in zip(self.matrices, inputs, strict=True):
            add(matrix, x, total)
        return total


@dataclass(frozen=True, eq=False)
class Emit(Linear):
    """Σ_i matrix_i · input_i for flags: the scores of a list of rules."""

    def problems(self, *inputs: Type) -> list[str]:
        return super().problems(*inputs) + [
            f"the flag of rule {i} is {t}, and a Bool is needed" for i, t in enumerate(inputs) if not is_flags(t)
        ]


@dataclass(frozen=True)
class Shift(Operation):
    """The value k ≥ 0 positions earlier; zeros before the start."""

    followed: ClassVar[bool] = True
    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    free: ClassVar[bool] = True
    zero_preserving: ClassVar[bool] = True

    k: int

    def written(self, x: str) -> str:
        return f"{called(x)}.shift({self.k})"

    def result_type(self, x: Type) -> Type:
        return x

    def problems(self, x: Type) -> list[str]:
        return (
            [f"shift({self.k}) would read {-self.k} positions ahead; only the past can be read"] if self.k < 0 else []
        )

    @property
    def delay(self) -> int:
        return self.k

    def domain(self, stream: Operand, known: Known) -> Domain:
        return with_zero(known.of(stream.inputs[0]))

    def step(self, memory: Any, counted: int, x: Value) -> tuple[Value | None, Any]:
        if not 0 < self.k <= _LONGEST_SHIFT:
            return (x, None) if self.k == 0 else (None, None)
        past = memory or (((0, 0),) * len(x),) * self.k
        return past[-1], (x, *past[:-1])

    def evaluate(self, x: Array) -> Array:
        return shifted(x, self.k)


@dataclass(frozen=True)
class Lti(Operation):
    """Σ_k kernel[k] · x(t − k): a fixed causal filter on every lane."""

    lane_wise: ClassVar[LaneWise] = LaneWise.EACH
    zero_preserving: ClassVar[bool] = True

    kernel: tuple[Fraction, ...]

    def written(self, x: str) -> str:
        return f"lti({x})"

    def result_type(self, x: Type) -> Type:
        whole = all(k.denominator == 1 for k in self.kernel)
        return number_type(x) if whole else Real(width=x.width)

    def problems(self, x: Type) -> list[str]:
        return not_dyadic("its tap", self.kernel)

    @property
    def gain(self) -> Fraction:
        """Σ |tap|."""
        return sum((abs(k) for k in self.kernel), Fraction(0))

    def formed(self, stream: Operand, known: Known) -> Fraction:
        return in_units(times(known.of(stream.inputs[0]).bounds, self.gain), known.of(stream).units)

    def domain(self, stream: Operand, known: Known) -> Domain:
        d = known.of(stream.inputs[0])
        gain = self.gain
        bounds = times(d.bounds, gain)
        domain = known.lanes(d.units * float(unit_of(*self.kernel) or 1), -bounds, bounds)
        return replace(domain, totals=np.minimum(domain.totals, times(d.totals, gain)))

    def evaluate(self, x: Array) -> Array:
        taps = self.kernel if x.dtype == object else tuple(map(float, self.kernel))
        return sum((tap * shifted(x, k) for k, tap in enumerate(taps[: x.shape[1]])), start=np.zeros_like(x))


def _row_kinds(matrices: Sequence[sparse.csr_array], kinds: Sequence[np.ndarray]) -> np.ndarray:
    """The kind of each row of Σ matrix·lanes: a flag where it is a flag as it is."""
    rows = matrices[0].shape[0]
    if rows == 1:
        return np.array([_kind_of_sum([*_weights(matrices, kinds)])])
    row = np.concatenate([np.repeat(np.arange(rows), np.diff(matrix.indptr)) for matrix in matrices])
    weight = np.concatenate([matrix.data for matrix in matrices])
    lane = np.concatenate([kind[matrix.indices] for matrix, kind in zip(matrices, kinds, strict=True)])
    real = np.bincount(row[(lane == Kind.REAL) | (weight % 1 != 0)], minlength=rows) > 0
    other = np.bincount(row[(lane != Kind.FLAG) | (weight != 1)], minlength=rows) > 0
    flag = (np.bincount(row, minlength=rows) <= 1) & ~other
    return np.where(real, Kind.REAL, np.where(flag, Kind.FLAG, Kind.INTEGER))


def _weights(matrices: Sequence[sparse.csr_array], kinds: Sequence[np.ndarray]) -> Iterator[tuple[float, int]]:
    """(weight, kind of its lane) of each entry."""
    for matrix, kind in zip(matrices, kinds, strict=True):
        yield from zip(matrix.data.tolist(), kind[matrix.indices].tolist(), strict=True)


def _kind_of_sum(entries: Sequence[tuple[float, int]]) -> Kind:
    """The kind of Σ weight · lane."""
    if any(kind == _REAL or weight % 1 for weight, kind in entries):
        return Kind.REAL
    return Kind.FLAG if len(entries) <= 1 and all(entry == (1, _FLAG) for entry in entries) else Kind.INTEGER


def _scale(matrix: sparse.csr_array) -> Fraction | None:
    """The factor of a matrix that scales every lane, or copies one lane to all, by the same; else None."""
    rows, columns = matrix.shape
    if matrix.nnz != rows or columns not in (1, rows) or (matrix.data != matrix.data[0]).any():
        return None
    in_place = columns == 1 or np.array_equal(matrix.indices, np.arange(rows))
    return Fraction(matrix.data[0]) if in_place and np.array_equal(matrix.indptr, np.arange(rows + 1)) else None


def _linear_map(matrix: sparse.csr_array, x: str) -> str:
    """matrix @ x by a shorter name where it has one."""
    factor = _scale(matrix)
    if factor is not None:
        if abs(factor) != 1:
            return str(factor * int(x)) if x.lstrip("-").isdigit() else f"{number_text(factor)}*{grouped(x)}"
        return x if factor == 1 else f"-{grouped(x)}"
    ones = matrix.nnz > 0 and (matrix.data == 1).all()
    if ones and matrix.shape[0] == 1 and matrix.nnz == matrix.shape[1]:
        return f"{called(x)}.sum()"
    if ones and (np.diff(matrix.indptr) == 1).all():
        return x if x.lstrip("-").isdigit() else picked(x, matrix.indices)
    return f"matrix @ {grouped(x)}"


def _side_by_side(matrices: tuple[sparse.csr_array, ...]) -> bool:
    """Whether each row takes one lane of one input as it is."""
    ones = all((matrix.data == 1).all() for matrix in matrices)
    return ones and bool((sum(np.diff(matrix.indptr) for matrix in matrices) == 1).all())


_Entries = tuple[tuple[int, int, int | Fraction], ...]
_ENTRIES: WeakKeyDictionary[Linear, tuple[_Entries, ...]] = WeakKeyDictionary()
"""What is not zero in each matrix of an operation that is met: a path asks for it at every step."""


def _entries(matrix: sparse.csr_array) -> Iterator[tuple[int, int, int | Fraction]]:
    coo = matrix.tocoo()
    for row, column, weight in zip(coo.row.tolist(), coo.col.tolist(), coo.data.tolist(), strict=True):
        if weight:
            yield row, column, exact(weight)
