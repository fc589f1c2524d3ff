"""Positions of padding before a text, which the attention mask blanks out (lemma of pads).

The classes set what a mixer reads there to 0, and Mamba also what its convolution gives. So x̂, B, C and the keys are 0,
and so is what the mixer adds: a special token's row goes on through all norms. Left to bound are these norms, and
Δ = softplus(dt_bias), which Mamba-2 and the delta rule add up over a chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from verify.checker.formats import OFF, ON, Format, Rejected

_SLACK = 4  # of what float64 computes here, below the largest number of the format


def check_norms(form: Format, rows: np.ndarray, weights: Mapping[str, np.ndarray], epsilon: float) -> None:
    """Rejected where a lane of a special token's row can be beyond the format behind a norm.

    rows: (special tokens, lanes), float64; weights: of the norms, by name.
    """
    squares = (rows.astype(np.float64) ** 2).sum(axis=1)
    if not (squares < 2.0**126).all():
        raise Rejected("the squares of a special token's lanes overflow, where it pads a text")
    normal = np.abs(rows) / np.sqrt(squares / rows.shape[1] + epsilon)[:, None]
    for name, weight in weights.items():
        found = (normal * np.abs(weight)).max(axis=0, initial=0)
        if not found.max(initial=0) * _SLACK < float(form.largest):
            raise Rejected(f"{name}: a special token can reach {found.max():g} where it pads a text")


def step_at_pads(bias: Fraction, place: str) -> Fraction:
    """softplus(dt_bias): what Δ is there."""
    if OFF < bias <= ON:
        raise Rejected(f"{place}: dt_bias is {float(bias):g}, so Δ is rounded where a text is padded")
    return max(bias, Fraction(0))
