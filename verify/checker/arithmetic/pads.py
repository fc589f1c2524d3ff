"""Positions of padding before a text, which the attention mask blanks out (lemma of pads).

The classes set what a mixer reads there to 0, or what its convolution reads and gives. So x̂, B, C and the keys are 0,
and so is what the mixer adds: a special token's row goes on through all norms. Left to bound are these norms, z of
Mamba, which stands behind no mask, and Δ = softplus(dt_bias), which Mamba-2 and the delta rule add up over a chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from verify.checker.files import Matrix
from verify.checker.formats import OFF, ON, Format, Rejected

_SLACK = 4  # of what float64 computes here, below the largest number of the format


def check_norms(form: Format, rows: np.ndarray, weights: Mapping[str, np.ndarray], epsilon: float) -> np.ndarray:
    """The largest that each lane is behind any norm, of rows of special tokens: (lanes,). Rejected beyond the format.

    rows: (special tokens, lanes), float64; weights: of the norms, by name.
    """
    squares = (rows.astype(np.float64) ** 2).sum(axis=1)
    if not (squares < 2.0**126).all():
        raise Rejected("the squares of a special token's lanes overflow, where it pads a text")
    normal = np.abs(rows) / np.sqrt(squares / rows.shape[1] + epsilon)[:, None]
    most = np.zeros(rows.shape[1])
    for name, weight in weights.items():
        found = (normal * np.abs(weight)).max(axis=0, initial=0)
        if not found.max(initial=0) * _SLACK < float(form.largest):
            raise Rejected(f"{name}: a special token can reach {found.max():g} where it pads a text")
        most = np.maximum(most, found)
    return most


def check_gates(form: Format, gates: Matrix, most: np.ndarray, place: str) -> None:
    """Rejected where a gate can overflow: (gates, lanes) times what the lanes are at most."""
    reach = np.bincount(gates.rows, weights=np.abs(gates.data) * most[gates.cols], minlength=gates.shape[0])
    if not reach.max(initial=0) * _SLACK < float(form.largest):
        raise Rejected(f"{place}: a gate can reach {reach.max():g} where a special token pads a text")


def step_at_pads(bias: Fraction, place: str) -> Fraction:
    """softplus(dt_bias): what Δ is there."""
    if OFF < bias <= ON:
        raise Rejected(f"{place}: dt_bias is {float(bias):g}, so Δ is rounded where a text is padded")
    return max(bias, Fraction(0))
