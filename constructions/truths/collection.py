"""All statements, in the order of the docs page."""

from __future__ import annotations

from constructions.truths import copying, polynomials, recall, selection, states
from constructions.truths.truth import Truth

TRUTHS: tuple[Truth, ...] = (
    *states.TRUTHS,
    *recall.TRUTHS,
    *copying.TRUTHS,
    *polynomials.TRUTHS,
    *selection.TRUTHS,
)


def chosen(name: str) -> tuple[Truth, ...]:
    """The one of this name, or all for ""; ValueError for another name."""
    found = tuple(truth for truth in TRUTHS if name in ("", truth.name))
    if not found:
        raise ValueError(f"there is no statement {name!r}; the names are {', '.join(t.name for t in TRUTHS)}.")
    return found
