"""Parts of docs/proofs.md that are written from the code, found by how they begin and what follows them."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "proofs.md"


def said(first: str, last: str) -> str:
    """What stands on the page from one mark up to another."""
    page = PAGE.read_text("utf-8")
    start = page.index(first)
    return page[start : page.index(last, start)]


def put(old: str, new: str) -> None:
    PAGE.write_text(PAGE.read_text("utf-8").replace(old, new), "utf-8")
