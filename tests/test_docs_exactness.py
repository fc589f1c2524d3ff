"""docs/exactness.md is what code and messages cite as E1 … E18: every number that is cited has its section there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SECTIONS = set(re.findall(r"^## (E\d+)\. ", (ROOT / "docs" / "exactness.md").read_text("utf-8"), re.MULTILINE))
CITATION = re.compile(r"(?<![\w.])E(?:1?\d)(?![\w.]*\d|\w)")


def _cited() -> dict[str, set[str]]:
    """Which files cite each section."""
    found: dict[str, set[str]] = {}
    for folder in ("compiler", "verify", "constructions"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for number in CITATION.findall(path.read_text("utf-8")):
                found.setdefault(number, set()).add(str(path.relative_to(ROOT)))
    return found


def test_every_section_that_is_cited_exists() -> None:
    cited = _cited()
    assert len(cited) >= 10
    assert cited.keys() <= SECTIONS, {number: files for number, files in cited.items() if number not in SECTIONS}


def test_the_sections_are_e1_to_e18() -> None:
    assert {f"E{n}" for n in range(1, 19)} == SECTIONS
