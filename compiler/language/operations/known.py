"""What an operation is told of a circuit when it bounds what it gives: its stream, and what is known of the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy import sparse

from compiler.language.input_language import InputLanguage
from compiler.language.types import Type
from compiler.lattice.domain import Domain
from compiler.lattice.matrix_sums import MatrixSums

_Found = TypeVar("_Found")


class Operand(Protocol):
    """A stream."""

    operation: Any
    type: Type

    @property
    def inputs(self) -> Sequence[Any]: ...

    @property
    def width(self) -> int: ...


class Known(Protocol):
    """The domains of the streams of a circuit, under its input language (`analysis.domains.Domains`)."""

    language: InputLanguage | None
    max_length: int

    def of(self, stream: Any) -> Domain:
        """What a stream can hold."""

    def once(self, find: Callable[[], _Found], *key: Hashable) -> _Found:
        """What `find` gives, found once for what the key decides."""

    def typed(self, type: Type) -> Domain:
        """What a type alone promises."""

    def interval(self, step: Fraction, lo: Fraction, hi: Fraction, width: int) -> Domain:
        """The same bounds for every lane."""

    def lanes(self, units: np.ndarray, low: np.ndarray, high: np.ndarray, l1: Fraction | None = None) -> Domain:
        """Bounds of each lane, of which the sums follow."""

    def matrix_sums(self, matrix: sparse.csr_array, stream: Any) -> MatrixSums:
        """The sums of the rows of a matrix that computes a stream."""

    def linear(self, matrices: Sequence[sparse.csr_array], stream: Any) -> Domain:
        """Σ matrix · input of a stream."""

    def rectified(self, stream: Any) -> Domain:
        """max(x, 0) for the input of a stream."""

    def heaviest(self, when: Any, reset: Any) -> float:
        """The most that a flag can count between two resets, infinity where no bound is found."""

    def partial_sum(self, terms: Iterable[tuple[sparse.csr_array, Any]]) -> Fraction:
        """The largest partial sum of a row of Σ matrix·lanes, in units of the row."""
