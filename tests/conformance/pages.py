"""The pages about conformance: how a kernel is tested, what it is asked, and which bugs that finds."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGE, CASES, FOUND = (
    (DOCS / name).read_text("utf-8") for name in ("conformance.md", "conformance_cases.md", "conformance_found.md")
)


def in_one_line(page: str) -> str:
    """Its text as one line: a sentence may stand on several."""
    return " ".join(page.split())
