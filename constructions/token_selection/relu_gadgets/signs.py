"""Products of signs and of a sign with a number, exactly: what tensor features of ±1 vectors are made of.

Of m signs, c of them −1, the product is 1 − 2·(c mod 2), and for whole 0 ≤ c ≤ m

    c mod 2 = R(c) + 2·Σ_{1≤i<m} (−1)^i·R(c − i)

(the slope of the right side is 1, −1, 1, … between whole numbers). For |z| ≤ C and a sign s,

    s·z = R(z + Cs) + R(−z − Cs) − C,

since z + C ≥ 0 and z − C ≤ 0: for s = 1 the first term is z + C, for s = −1 the second is C − z.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from compiler.machines.fnn_ssm.relu_network import Number, ReluNetwork, SparseAffine
from constructions.token_selection.relu_gadgets.products import HALF
from verify.arguments import at_least


def sign_of_count(columns: int, counts: Sequence[tuple[Mapping[int, Number], Number, int]]) -> ReluNetwork:
    """x ↦ (−1)^c for each count (row, bias, m), c = <row, x> + bias being whole and in 0 … m: L = 2, W = Σ m.

    m = 0 makes the constant 1. Exact.
    """
    rows: list[Mapping[int, Number]] = []
    shifts: list[Number] = []
    back: list[dict[int, Number]] = []
    for row, bias, most in counts:
        back.append({len(rows) + i: (4 if i % 2 else -4) if i else -2 for i in range(most)})
        rows += [row] * most
        shifts += [bias - i for i in range(most)]
    return ReluNetwork((SparseAffine.of(columns, rows, shifts), SparseAffine.of(len(rows), back, [1] * len(back))))


def sign_products(columns: int, subsets: Sequence[Sequence[int]]) -> ReluNetwork:
    """Signs (s_1, …, s_columns) ↦ Π_{i∈S} s_i for each S: L = 2, W = Σ |S|, S ≤ Σ (|S| + 1)². Exact."""
    return sign_of_count(columns, [(dict.fromkeys(s, -HALF), Fraction(len(s), 2), len(s)) for s in subsets])


def sign_times(most: Number, count: int = 1) -> ReluNetwork:
    """(s_1, z_1, s_2, z_2, …) ↦ (s_1·z_1, s_2·z_2, …) for signs s and |z| ≤ `most`: L = 2, W = 2·count. Exact."""
    at_least("count", count, 1, "there is something to multiply")
    rows = [{2 * j: sign * most, 2 * j + 1: sign} for j in range(count) for sign in (1, -1)]
    back = [{2 * j: 1, 2 * j + 1: 1} for j in range(count)]
    return ReluNetwork((SparseAffine.of(2 * count, rows), SparseAffine.of(2 * count, back, [-most] * count)))
