"""The index of the zoo: one HTML file that needs no network, with every circuit, its answers, sizes and proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from constructions.report.page import filled

_KEPT = ("name", "family", "says", "blocks", "lanes", "memories", "lags", "promise", "proof", "proved")
_KEPT += ("variables", "example", "source", "oracle")


def zoo_page(beside: Path | None = None) -> str:
    """The page. beside: a folder whose NAME.html, where one is there, is linked as the circuit's own page."""
    from constructions.zoo.collection import FAMILIES

    found = [_circuit(entry.name, beside) for family in FAMILIES for entry in family.entries]
    families = [{"name": family.name, "title": family.title} for family in FAMILIES]
    return filled("zoo.html", "The zoo", {"families": families, "circuits": found}, {})


def _circuit(name: str, beside: Path | None) -> dict[str, Any]:
    from constructions.zoo.show import description

    told = description(name)
    page = f"{name}.html"
    return {key: told[key] for key in _KEPT} | {"page": page if beside and (beside / page).is_file() else ""}
