"""Target polynomial S6: the selective layer of paper C (Eq 5, 16-17, 26-27) as we restore it, a module of ours.

    U = W_in X + b,  G = W_g X + b'                                    E channels
    Ā_t = P(S_A U_t),  B_t = S_B U_t,  C_t = S_C U_t                   B, C in R^N shared by the channels
    H_t[e] = Ā_t[e]·H_{t−1}[e] + B_t·U_t[e],  Y_t[e] = <C_t, H_t[e]>
    X'_t = W_out (Y_t ⊙ G_t)  (+ X_t with residual)

No discretisation of B, no convolution, no SiLU. With P linear this uses ring operations only,
so one network runs on whatever can be added and multiplied: NumPy object arrays of Python
integers, Fractions, sympy expressions or ring elements, float64 arrays, and (as an
`nn.Module`) torch tensors. Letters: b batch, t time, d lanes, e channels, n state columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch
from torch import nn

from constructions.polynomials.polynomial_transition import Linear, Transition


@dataclass(frozen=True, eq=False)
class Affine:
    """x ↦ weight·x + bias over the last axis. weight: (rows × columns), bias: (rows,), of ints and Fractions."""

    weight: np.ndarray
    bias: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        if x.dtype != object:
            return x @ self.weight.astype(x.dtype).T + self.bias.astype(x.dtype)
        out = np.zeros((*x.shape[:-1], self.weight.shape[0]), dtype=object)
        known: dict[tuple, int] = {}  # equal rows, such as the constant's, are computed once
        for i, row in enumerate(self.weight):
            used = np.flatnonzero(row)
            first = known.setdefault((*used, *row[used], self.bias[i]), i)
            if first == i:
                out[..., i] = self.bias[i]
                for j in used:
                    out[..., i] = out[..., i] + row[j] * x[..., j]
            else:
                out[..., i] = out[..., first]
        return out

    @property
    def nonzeros(self) -> int:
        return int(np.count_nonzero(self.weight) + np.count_nonzero(self.bias))


MAPS = ("value", "gate", "keep", "write", "read", "out")


@dataclass(frozen=True, eq=False)
class PolynomialBlock:
    """The weights of one layer.

    value, gate: (E × d); keep: (E × E), S_A; write, read: (N × E), S_B and S_C; out: (d' × E).
    channels, lanes_in, lanes_out: names, for people and pictures.
    """

    value: Affine
    gate: Affine
    keep: Affine
    write: Affine
    read: Affine
    out: Affine
    channels: tuple[str, ...]
    lanes_in: tuple[str, ...]
    lanes_out: tuple[str, ...]
    residual: bool = False

    @property
    def nonzeros(self) -> int:
        return sum(getattr(self, name).nonzeros for name in MAPS)

    @property
    def weights(self) -> int:
        """Numbers in its matrices, zeros among them."""
        return sum(getattr(self, name).weight.size for name in MAPS)


# Scans: H_t = a_t·H_{t−1} + b_t over axis 1, on arrays of any kind ------------------------------------

Scan = Callable


def sequential(a, b):
    """One position after another. a: (b, t, e, 1), b: (b, t, e, n)."""
    states = [b[:, 0]]
    for t in range(1, b.shape[1]):
        states.append(a[:, t] * states[-1] + b[:, t])
    return torch.stack(states, 1) if isinstance(b, torch.Tensor) else np.stack(states, 1)


def parallel(a, b):
    """Pairs (a, b) combined over 1, 2, 4, … positions: ⌈log2 T⌉ steps, products and sums only."""
    joined = torch.cat if isinstance(b, torch.Tensor) else np.concatenate
    reach = 1
    while reach < b.shape[1]:
        b = joined([b[:, :reach], a[:, reach:] * b[:, :-reach] + b[:, reach:]], 1)
        a = joined([a[:, :reach], a[:, reach:] * a[:, :-reach]], 1)
        reach *= 2
    return b


SCANS = {"sequential": sequential, "parallel": parallel}


def layer(block, x, transition: Transition = Linear(), scan: Scan = sequential):
    """The output of one block, and what a picture of it shows: (x', {"value": U, "state": H, "gated": Y ⊙ G})."""
    u = block.value(x)
    keep, step = transition(block.keep(u))
    write, read = block.write(u), block.read(u)
    states = scan(keep[..., None], (u * step)[..., None] * write[..., None, :])
    gated = (states * read[..., None, :]).sum(-1) * block.gate(x)
    out = block.out(gated)
    return (x + out if block.residual else out), {"value": u, "state": states, "gated": gated}


@dataclass(frozen=True, eq=False)
class PolynomialNetwork:
    """Blocks after one another, on NumPy arrays of any number type."""

    blocks: Sequence[PolynomialBlock]
    transition: Transition = Linear()

    def __call__(self, x: np.ndarray, form: str = "sequential") -> np.ndarray:
        """x: (b, t, d); form: "sequential" or "parallel"."""
        for block in self.blocks:
            x, _ = layer(block, x, self.transition, SCANS[form])
        return x

    def trace(self, x: np.ndarray) -> list[dict[str, np.ndarray]]:
        """The inside of every block: U, H, Y ⊙ G."""
        inside = []
        for block in self.blocks:
            x, parts = layer(block, x, self.transition)
            inside.append(parts)
        return inside

    @property
    def nonzeros(self) -> list[int]:
        return [block.nonzeros for block in self.blocks]


class PolynomialS6(nn.Module):
    """One block as a torch module with trainable parameters; same formulas, same names."""

    def __init__(self, block: PolynomialBlock, transition: Transition = Linear(), dtype: torch.dtype = torch.float64):
        super().__init__()
        self.transition, self.residual, self.form = transition, block.residual, "parallel"
        for name in MAPS:
            setattr(self, name, _linear(getattr(block, name), dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, t, d) to (b, t, d')."""
        return layer(self, x, self.transition, SCANS[self.form])[0]


def torch_network(
    network: PolynomialNetwork, dtype: torch.dtype = torch.float64, form: str = "parallel"
) -> nn.Sequential:
    """The network as torch modules; weights round to the dtype (integers and short dyadics do not)."""
    modules = [PolynomialS6(block, network.transition, dtype) for block in network.blocks]
    for module in modules:
        module.form = form
    return nn.Sequential(*modules)


def _linear(affine: Affine, dtype: torch.dtype) -> nn.Linear:
    rows, columns = affine.weight.shape
    linear = nn.Linear(columns, rows, dtype=dtype)
    with torch.no_grad():
        linear.weight.copy_(torch.from_numpy(affine.weight.astype(float).reshape(rows, columns)))
        linear.bias.copy_(torch.from_numpy(affine.bias.astype(float)))
    return linear


def affine(rows: Sequence[dict[int, Fraction]], columns: int, bias: Sequence[Fraction] | None = None) -> Affine:
    """An exact map from sparse rows {column: weight}."""
    weight = np.zeros((len(rows), columns), dtype=object)
    for i, row in enumerate(rows):
        for j, w in row.items():
            weight[i, j] = _plain(w)
    constant = np.zeros(len(rows), dtype=object)
    for i, w in enumerate(bias or ()):
        constant[i] = _plain(w)
    return Affine(weight, constant)


def _plain(number) -> int | Fraction:
    """An int where the rational is whole: object arrays stay on Python integers."""
    exact = number if type(number) is int else Fraction(number)
    return int(exact) if exact.denominator == 1 else exact
