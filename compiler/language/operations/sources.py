"""Sources: where the numbers of a circuit come from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from compiler.language.alphabet import Alphabet
from compiler.language.declared import of_input
from compiler.language.kinds import Kind, of_kinds
from compiler.language.operations.base import Operation
from compiler.language.operations.exact import Array, exact_matrix, not_summable, number_text
from compiler.language.operations.known import Known, Operand
from compiler.language.operations.traits import Sees, Source
from compiler.language.types import Bool, Int, Real, Type
from compiler.lattice.domain import Domain, down, least_unit, raised, up, with_zero
from compiler.lattice.intervals import Value, exact, grown
from compiler.lattice.units import array_units, unit_of

_ZERO, _ONE = Fraction(0), Fraction(1)

_MOST_TOKENS = 4  # named in a meaning
_MOST_DENSE = 1 << 16  # numbers of a table that is made dense


@dataclass(frozen=True, eq=False)
class Embed(Operation):
    """A function of the present token: row `id` of a (vocabulary × width) table of dyadic numbers."""

    followed: ClassVar[bool] = True
    source: ClassVar[Source] = Source.TOKEN
    free: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE

    alphabet: Alphabet
    table: sparse.csr_array = field(repr=False)
    type: Type

    def result_type(self) -> Type:
        if not isinstance(self.type, Real) or self.table.shape[1] != self.type.width:
            return self.type
        real = np.bincount(self.table.indices, self.table.data % 1 != 0, self.type.width) > 0
        return (
            of_kinds(np.where(real, Kind.REAL, Kind.INTEGER), self.type.lo, self.type.hi) if real.any() else self.type
        )

    def problems(self) -> list[str]:
        if self.table.shape != (self.alphabet.size, self.type.width):
            return [
                f"its table is {self.table.shape}, and {self.alphabet.size} tokens × {self.type.width} lanes are needed"
            ]
        return []

    @property
    def token_alphabet(self) -> Alphabet:
        return self.alphabet

    @property
    def token_table(self) -> sparse.csr_array:
        return self.table

    @property
    def declared(self) -> Type:
        return self.type

    def over(self, alphabet: Alphabet, place: sparse.csr_array) -> Operation:
        return replace(self, alphabet=alphabet, table=exact_matrix(place @ self.table))

    def says(self, number: int) -> str:
        """Which tokens the column is not 0 for."""
        start, stop = self._columns.indptr[number : number + 2]
        ids, values = self._columns.indices[start:stop], self._columns.data[start:stop]
        if not len(ids):
            return "0 for every token"
        tokens = [self.alphabet.tokens[i] for i in ids[:_MOST_TOKENS]]
        more = f", … ({len(ids)} tokens)" if len(ids) > _MOST_TOKENS else ""
        if (values == values[0]).all():
            return f"{_number(values[0])} where the token is {', '.join(tokens)}{more}, else 0"
        pairs = [f"{_number(v)} for {t}" for t, v in zip(tokens, values[:_MOST_TOKENS], strict=True)]
        return f"{', '.join(pairs)}{more}, else 0"

    @cached_property
    def _columns(self) -> sparse.csc_array:
        return sparse.csc_array(self.table)

    def domain(self, stream: Operand, known: Known) -> Domain:
        sums = known.matrix_sums(self.table, stream)
        table, width = sparse.csr_array(self.table.T), stream.width
        lanes = np.repeat(np.arange(width), np.diff(table.indptr))
        low, high, units = np.zeros(width), np.zeros(width), np.full(width, np.inf)
        np.minimum.at(low, lanes, table.data)
        np.maximum.at(high, lanes, table.data)
        np.minimum.at(units, lanes, array_units(table.data))
        rows = raised(np.bincount(sums.rows, sums.size, 1), sums.grain, sums.terms)
        return Domain(units, low, high, Fraction(float(rows.max())), _embedded_totals(table, known))

    def step(self, memory: Any, counted: int) -> tuple[Value | None, Any]:
        return None, None  # its rows come with the token, unless it is too wide

    def evaluate(self, tokens: Array) -> Array:
        """tokens: (batch, time) ids."""
        if prod(self.table.shape) <= _MOST_DENSE:
            return self._dense[tokens]
        return self.table[tokens.reshape(-1)].toarray().reshape(*tokens.shape, self.table.shape[1])

    @cached_property
    def _dense(self) -> Array:
        """The table where it is small, for rows of it are picked in a fraction of the time."""
        return self.table.toarray()


@dataclass(frozen=True, eq=False)
class Numbers(Operation):
    """A numeric input (no tokens), one value a position, in the declared range of its type."""

    source: ClassVar[Source] = Source.NUMBERS
    free: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE

    type: Type

    def result_type(self) -> Type:
        return self.type

    def problems(self) -> list[str]:
        try:
            of_input(self.type, "this input")
        except (TypeError, ValueError) as reason:
            return [str(reason)]
        return []

    def gap(self) -> Fraction:
        return Fraction(getattr(self.type, "gap", 0.0))

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.typed(self.type)


@dataclass(frozen=True)
class Constant(Operation):
    """The same numbers at every position; before the start of the sequence they are 0 like all else."""

    followed: ClassVar[bool] = True
    source: ClassVar[Source] = Source.RUN
    free: ClassVar[bool] = True
    sees: ClassVar[Sees] = Sees.POINTWISE

    values: tuple[Fraction, ...]

    @property
    def symbol(self) -> str:
        return "one" if set(self.values) == {1} else "constant"

    def written(self) -> str:
        return number_text(self.values[0]) if len(set(self.values)) == 1 else "constant"

    def result_type(self) -> Type:
        if set(self.values) <= {0, 1}:
            return Bool(len(self.values))
        if all(v.denominator == 1 for v in self.values):
            return Int(int(min(self.values)), int(max(self.values)), len(self.values))
        return Real(float(min(self.values)), float(max(self.values)), len(self.values))

    def problems(self) -> list[str]:
        return not_summable("its value", self.values)

    @property
    def constants(self) -> tuple[Fraction, ...]:
        return self.values

    def says(self, number: int) -> str:
        return f"the constant {self.values[number]}"

    def held(self, known: Known) -> Domain:
        return known.once(lambda: self._held(known), "held", self.values)

    def _held(self, known: Known) -> Domain:
        units = np.array([_unit(value) for value in self.values])
        return known.lanes(units, np.array([down(v) for v in self.values]), np.array([up(v) for v in self.values]))

    def domain(self, stream: Operand, known: Known) -> Domain:
        return with_zero(self.held(known))

    def step(self, memory: Any, counted: int) -> tuple[Value | None, Any]:
        return tuple((exact(float(v)) if v == Fraction(float(v)) else v,) * 2 for v in self.values), None

    def evaluate(self, like: Array) -> Array:
        """like: any (batch, time, …) array of the run; gives its dtype and shape."""
        out = np.zeros((*like.shape[:2], len(self.values)), dtype=like.dtype)
        for i, value in enumerate(self.values):
            out[..., i] = value if like.dtype == object else float(value)
        return out


@dataclass(frozen=True)
class Position(Operation):
    """The position itself, 1 at the first token; stock language models have no lane for it, so the compiler counts."""

    followed: ClassVar[bool] = True
    source: ClassVar[Source] = Source.RUN

    def written(self) -> str:
        return "position"

    def result_type(self) -> Type:
        return Int(1, None)

    def domain(self, stream: Operand, known: Known) -> Domain:
        return known.interval(_ONE, _ZERO, Fraction(known.max_length), 1)

    def step(self, memory: Any, counted: int) -> tuple[Value | None, Any]:
        total = grown(((0, 0),) if memory is None else memory, ((1, 1),), counted)
        return total, total

    def evaluate(self, like: Array) -> Array:
        steps = np.arange(1, like.shape[1] + 1).astype(like.dtype)
        return np.broadcast_to(steps[None, :, None], (like.shape[0], like.shape[1], 1)).copy()


def _number(value: float) -> str:
    return str(int(value)) if value == np.floor(value) else f"{value:g}"


def _unit(value: Fraction) -> float:
    """The unit of a number: of 1/3, which no float holds, it is that of a real number."""
    if not value:
        return np.inf
    return 0.0 if value.denominator & (value.denominator - 1) else float(unit_of(value))


def _embedded_totals(columns: sparse.csr_array, known: Known) -> np.ndarray:
    """Bounds on Σ_t |table[token_t, lane]|, by the language's bounds on repetition.

    columns: (lanes × vocabulary).
    """
    size, counts = np.abs(columns.data), np.diff(columns.indptr)
    totals = np.zeros(len(counts))
    single = np.flatnonzero(counts == 1)
    at = columns.indptr[single]
    many = np.flatnonzero(counts > 1)
    if known.language is None:
        totals[single] = size[at] * known.max_length
    else:
        totals[single] = size[at] * known.language.occurrences[columns.indices[at]]
    for lane in many:
        span = slice(columns.indptr[lane], columns.indptr[lane + 1])
        most = known.max_length if known.language is None else known.language.max_count(columns.indices[span])
        totals[lane] = size[span].max() * most
    return raised(totals, least_unit(size), 1)
