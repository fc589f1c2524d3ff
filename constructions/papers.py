"""The papers whose statements are built here, by the names that every table prints, and whose the bounds are."""

from __future__ import annotations

SELECTIVITY = "Understanding Input Selectivity in Mamba"
FREE_LUNCH = 'Can Mamba Always Enjoy the "Free Lunch"?'
EXPRESSIVITY = "On the Expressivity of Selective State-Space Layers"
TOKEN_SELECTION = "State Space Models are Provably Comparable to Transformers in Dynamic Token Selection"
KROHN_RHODES = "Algebraic Theory of Machines I (Krohn and Rhodes 1965)"


def is_ours(bound_source: str) -> bool:
    """Whether a bound, by what its source says, is ours altogether, and not an order of a paper's."""
    return bound_source.startswith(("none stated", "not legible: ours", "ours"))
