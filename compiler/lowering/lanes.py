"""The lanes of a circuit: what stands where in the residual stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import AffineForm
from compiler.analysis.exact_matrices import on_columns
from compiler.ir.coordinate import Coordinate
from compiler.language.stream import Stream


@dataclass(frozen=True, eq=False)
class Lanes:
    """coordinates: what each lane holds. index: for each atom, the lane of each of its numbers (−1: none).

    embedding: (vocabulary × lanes) csr, what a token writes.
    n_inputs:  how many lanes the embedding writes (the constant included).
    """

    coordinates: tuple[Coordinate, ...]
    index: dict[Stream, np.ndarray]
    embedding: sparse.csr_array
    n_inputs: int

    @property
    def count(self) -> int:
        return len(self.coordinates)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(coordinate.name for coordinate in self.coordinates)

    def map(self, form: AffineForm, width: int) -> sparse.csr_array:
        """(width × lanes): a form that reads present numbers only, as a linear map of the lanes."""
        return self.joined(((matrix, atom) for (atom, _), matrix in form.items()), width)

    def joined(self, parts: Iterable[tuple[sparse.csr_array, Stream]], width: int) -> sparse.csr_array:
        """(width × lanes): Σ matrix · atom as a linear map of the lanes."""
        return on_columns(((matrix, self.index[atom]) for matrix, atom in parts), (width, self.count))
