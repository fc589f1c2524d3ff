"""ReLU networks with exact sparse weights: the class Ψ(L, W, S, B) of paper D, as we restore it.

    f = (A_L R(·) + b_L) ∘ … ∘ (A_2 R(·) + b_2) ∘ (A_1 · + b_1),  R(z) = max(z, 0)

L is the number of affine maps, W the largest width (of the input and the output too), S the number of nonzero entries
of all A_i and b_i, B the largest magnitude among them. Weights are integers and Fractions, so that a network runs
exactly on object arrays, on float arrays, and as a torch module. One network after another merges the affine maps that
meet (A_1 of the second times A_L of the first): depths L and L' give L + L' − 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

Number = int | Fraction


@dataclass(frozen=True, eq=False)
class SparseAffine:
    """x ↦ A·x + b over the last axis. columns: width of x; rows: {column: nonzero weight} each; bias: one each."""

    columns: int
    rows: tuple[Mapping[int, Number], ...]
    bias: tuple[Number, ...]

    @staticmethod
    def of(
        columns: int, rows: Iterable[Mapping[int, float | Fraction]], bias: Sequence[float | Fraction] | None = None
    ) -> SparseAffine:
        """From any numbers (a float counts as the dyadic that it is); zeros are dropped."""
        kept = tuple({j: exact(w) for j, w in sorted(row.items()) if w} for row in rows)
        outside = [j for row in kept for j in row if not 0 <= j < columns]
        if outside:
            raise ValueError(f"column {outside[0]} of an affine map lies outside its {columns} inputs.")
        shift = tuple(exact(b) for b in bias) if bias is not None else (0,) * len(kept)
        if len(shift) != len(kept):
            raise ValueError(f"an affine map of {len(kept)} rows has a bias of {len(shift)} entries; give one per row.")
        return SparseAffine(columns, kept, shift)

    @staticmethod
    def dense(matrix: Any, bias: Any = None) -> SparseAffine:
        """From a matrix (rows × columns) and a vector, of anything that indexes like NumPy arrays."""
        matrix = np.asarray(matrix, dtype=object)
        shift = None if bias is None else list(np.asarray(bias, dtype=object))
        return SparseAffine.of(matrix.shape[1], [dict(enumerate(row)) for row in matrix], shift)

    @property
    def width(self) -> int:
        """Rows: numbers that come out."""
        return len(self.rows)

    @property
    def nonzeros(self) -> int:
        """‖A‖_0 + ‖b‖_0."""
        return sum(map(len, self.rows)) + sum(1 for b in self.bias if b)

    @property
    def largest(self) -> Number:
        """max(|A|_max, |b|_max)."""
        return max((max(w, -w) for w in (*(w for row in self.rows for w in row.values()), *self.bias)), default=0)

    def after(self, first: SparseAffine) -> SparseAffine:
        """This map of the other's output, as one map."""
        _meet(first.width, self.columns)
        rows, bias = [], []
        for row, shift in zip(self.rows, self.bias, strict=True):
            made: dict[int, Number] = {}
            for j, w in row.items():
                shift = shift + w * first.bias[j]
                for i, v in first.rows[j].items():
                    made[i] = made.get(i, 0) + w * v
            rows.append(made)
            bias.append(shift)
        return SparseAffine.of(first.columns, rows, bias)

    @cached_property
    def _floats(self) -> tuple[Any, np.ndarray]:
        """The matrix as a sparse float64 array and the bias as a column."""
        from scipy.sparse import csr_array

        entries = [(i, j, float(w)) for i, row in enumerate(self.rows) for j, w in row.items()]
        i, j, w = (list(part) for part in zip(*entries, strict=True)) if entries else ([], [], [])
        matrix = csr_array((np.array(w, dtype=float), (i, j)), shape=(self.width, self.columns))
        return matrix, np.array([float(b) for b in self.bias])[:, None]

    def on_columns(self, x: np.ndarray) -> np.ndarray:
        """x: (columns, n), of floats or of objects; returns (width, n)."""
        if x.dtype != object:
            matrix, bias = self._floats
            return matrix @ x + bias
        out = np.empty((self.width, x.shape[1]), dtype=object)
        for i, (row, shift) in enumerate(zip(self.rows, self.bias, strict=True)):
            out[i] = shift
            for j, w in row.items():
                out[i] = out[i] + w * x[j]
        return out


@dataclass(frozen=True, eq=False)
class ReluNetwork:
    """Affine maps with a ReLU between each two."""

    layers: tuple[SparseAffine, ...]

    def __post_init__(self) -> None:
        if not self.layers:
            raise ValueError("a ReLU network without an affine map computes nothing; give one at least.")
        for first, second in zip(self.layers, self.layers[1:], strict=False):
            _meet(first.width, second.columns)

    # Sizes, in the letters of the class as we restore it ------------------------------------------------

    @property
    def depth(self) -> int:
        """L."""
        return len(self.layers)

    @property
    def width(self) -> int:
        """W."""
        return max(self.inputs, *(layer.width for layer in self.layers))

    @property
    def nonzeros(self) -> int:
        """S."""
        return sum(layer.nonzeros for layer in self.layers)

    @property
    def largest(self) -> Number:
        """B."""
        return max(layer.largest for layer in self.layers)

    @property
    def inputs(self) -> int:
        return self.layers[0].columns

    @property
    def outputs(self) -> int:
        return self.layers[-1].width

    def sizes(self) -> dict[str, Any]:
        """{"L", "W", "S", "B"}; B as a float."""
        return {"L": self.depth, "W": self.width, "S": self.nonzeros, "B": float(self.largest)}

    # Values --------------------------------------------------------------------------------------------

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(…, inputs) to (…, outputs): floats in float64, object arrays of ints and Fractions exactly."""
        x = np.asarray(x)
        if x.shape[-1] != self.inputs:
            raise ValueError(f"the network takes {self.inputs} numbers and was given {x.shape[-1]}.")
        if x.dtype != object:
            x = x.astype(float)
        out = np.ascontiguousarray(x.reshape(-1, self.inputs).T)
        for i, layer in enumerate(self.layers):
            out = layer.on_columns(np.maximum(out, 0) if i else out)
        return out.T.reshape(*x.shape[:-1], self.outputs)

    def module(self, dtype: torch.dtype | None = None) -> torch.nn.Sequential:
        """The network as torch Linear and ReLU modules; weights round to the dtype, by default float64."""
        import torch

        parts: list[torch.nn.Module] = []
        for layer in self.layers:
            matrix, bias = layer._floats
            linear = torch.nn.Linear(layer.columns, layer.width, dtype=dtype or torch.float64)
            with torch.no_grad():
                linear.weight.copy_(torch.from_numpy(matrix.toarray()))
                linear.bias.copy_(torch.from_numpy(bias[:, 0]))
            parts += [torch.nn.ReLU(), linear] if parts else [linear]
        return torch.nn.Sequential(*parts)

    # Networks from networks ----------------------------------------------------------------------------

    def then(self, *others: ReluNetwork) -> ReluNetwork:
        """The others after this one; affine maps that meet are merged."""
        layers = list(self.layers)
        for other in others:
            layers[-1:] = [other.layers[0].after(layers[-1]), *other.layers[1:]]
        return ReluNetwork(tuple(layers))

    def padded(self, depth: int) -> ReluNetwork:
        """The same function in `depth` affine maps: x = R(x) − R(−x), and R(x) and R(−x) pass every further R."""
        if depth < self.depth:
            raise ValueError(f"a network of depth {self.depth} has no form of depth {depth}; take {self.depth}.")
        if depth == self.depth:
            return self
        width = self.outputs
        split = linear(width, [{j: sign} for sign in (1, -1) for j in range(width)]).layers[0]
        kept = linear(2 * width, [{j: 1} for j in range(2 * width)]).layers
        joined = linear(2 * width, [{j: 1, width + j: -1} for j in range(width)]).layers[0]
        split = split.after(self.layers[-1])
        return ReluNetwork((*self.layers[:-1], split, *kept * (depth - self.depth - 1), joined))


def exact(number: float | Fraction) -> Number:
    """An int where the number is whole, else a Fraction; a float counts as the dyadic that it is."""
    if type(number) is int:
        return number
    fraction = Fraction(number)
    return int(fraction.numerator) if fraction.denominator == 1 else fraction


def linear(
    columns: int, rows: Iterable[Mapping[int, float | Fraction]], bias: Sequence[float | Fraction] | None = None
) -> ReluNetwork:
    """A network of depth 1 from sparse rows {column: weight}."""
    return ReluNetwork((SparseAffine.of(columns, rows, bias),))


def select(columns: int, kept: Sequence[int]) -> ReluNetwork:
    """Some of the inputs, in this order: depth 1."""
    return linear(columns, [{j: 1} for j in kept])


def side_by_side(*networks: ReluNetwork) -> ReluNetwork:
    """(x, y, …) ↦ (f(x), g(y), …): inputs and outputs after one another, depths made equal."""
    depth = max(network.depth for network in networks)
    even = [network.padded(depth) for network in networks]
    return ReluNetwork(tuple(_diagonal([network.layers[i] for network in even]) for i in range(depth)))


def of_one_input(*networks: ReluNetwork) -> ReluNetwork:
    """x ↦ (f(x), g(x), …): all read the same x."""
    inputs = networks[0].inputs
    copies = linear(inputs, [{j: 1} for _ in networks for j in range(inputs)])
    return copies.then(side_by_side(*networks))


def _diagonal(maps: Sequence[SparseAffine]) -> SparseAffine:
    rows: list[dict[int, Number]] = []
    start = 0
    for part in maps:
        rows += [{start + j: w for j, w in row.items()} for row in part.rows]
        start += part.columns
    return SparseAffine(start, tuple(rows), tuple(b for part in maps for b in part.bias))


def _meet(width: int, columns: int) -> None:
    if width != columns:
        raise ValueError(f"{width} numbers come out and {columns} are read: affine maps must meet in one width.")
