"""What the pages of experiments say of a refusal, advice in it too, is what is said now.

What is kept is not run again, and the compiler learns to say other things.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from constructions.experiments import run as reproduce
from constructions.experiments.kept_rows import KeptRows

DOCS = Path(__file__).parents[3] / "docs"
REFUSED = [
    pytest.param(name, row, id=" ".join((name, *row.key[:3])))
    for file in ("chains.json", "experiments.json")
    for rows in [KeptRows(DOCS / file)]
    for name in reproduce.EXPERIMENTS
    for row in rows.of(name)
    if row.refused
]


@pytest.mark.parametrize(("name", "kept"), REFUSED)
def test_a_kept_refusal_is_what_is_said_now(name: str, kept: reproduce.Row) -> None:
    (entry,) = (entry for entry in reproduce.chosen(name) if reproduce.row_key(entry) == kept.key)
    assert reproduce.run(name, entry, kept.samples, kept.seed).refused == kept.refused
