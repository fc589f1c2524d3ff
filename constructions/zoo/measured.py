"""What was found when the circuits were built, kept beside them (measured.json): for lists and the page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from constructions.zoo.collection import chosen, family_of
from constructions.zoo.row import Row, read_rows

MAMBA2 = "mamba2"
MEASURED = Path(__file__).with_name("measured.json")
SAYS = {
    "answers": "proved",
    "scores": "weights proved, answers tested",
    "": "only tested",
}


@cache
def measured() -> dict[str, Row]:
    """The row of each circuit; rows of several runs may stand together."""
    return read_rows(MEASURED) if MEASURED.exists() else {}


@cache
def on_mamba2() -> dict[str, Row]:
    """The same of the circuits built as Mamba-2."""
    return read_rows(MEASURED, MAMBA2) if MEASURED.exists() else {}


def told(names: Sequence[str]) -> list[dict[str, Any]]:
    """What is known of these circuits, of all where none is named, without building any."""
    rows = measured()
    found = []
    for entry in chosen(names, not names):
        family, row = family_of()[entry.name], rows.get(entry.name)
        said = {"name": entry.name, "family": family.name, "family_title": family.title, "says": entry.says}
        size = {"blocks": None, "lanes": None, "memories": None, "lags": None} | (row.difficulty if row else {})
        proof = {"promise": row.promise if row else None, "proof": row.proof if row else None}
        other = on_mamba2().get(entry.name)
        second = None if other is None else {"proof": other.proof, **other.difficulty}
        proved = SAYS[row.proof] if row else "not measured"
        found.append(said | size | proof | {"proved": proved, MAMBA2: second})
    return found


def total(rows: Sequence[Row], kept: int = 0) -> dict[str, Any]:
    """The sums of these rows. kept: how many of them stood there already, the card aside."""
    return {
        "exact": sum(row.exact for row in rows),
        "proved": {kind: sum(row.proof == kind for row in rows) for kind in SAYS},
        "right": sum(row.right for row in rows),
        "questions": sum(row.questions for row in rows),
        "cpu_seconds": round(sum(row.cpu_seconds for row in rows), 1),
        "kept": kept,
        "failed": [row.name for row in rows if not row.good],
    }
