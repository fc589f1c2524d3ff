"""Write docs/truths.md from the statements and what they measure: `python -m constructions.truths.page`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from constructions.papers import EXPRESSIVITY, FREE_LUNCH, SELECTIVITY, TOKEN_SELECTION
from constructions.truths.collection import TRUTHS
from constructions.truths.commands import section
from constructions.truths.truth import Finding, Kind, Truth

PAGE = Path(__file__).parents[2] / "docs" / "truths.md"
LOST = "\nThe text that we read has lost its formulas. Only its words are quoted.\n"
GLYPHS = "\nThe text that we read has lost some brackets of its formulas. What hangs on one of these is left out.\n"
PAPERS = ((SELECTIVITY, "A", GLYPHS), (FREE_LUNCH, "B", ""), (EXPRESSIVITY, "C", LOST), (TOKEN_SELECTION, "D", LOST))
HEAD = """# Statements that do not stand as they are

They are statements of four papers, each with a counterexample that a command runs, and with what does hold. Each says
what is the matter:

{kinds}

What only limits a construction of ours is on the page of that construction. `construct truths` runs all; each is a
test, and so is that another constant of a counterexample gives another result. Most of them leave the theorem's idea
as it is: they are conditions, constants and roundings that a proof may leave out and that weights may not. Quoted words
are the papers' own; formulas in quotations are set anew in plain text. This page is written by
`python -m constructions.truths.page`.
"""
MEANS = {
    Kind.FAILS: "the statement is given with its label, and is false with the constants that it has",
    Kind.UNSAID: "it holds under a condition, or with a constant, that it does not name",
    Kind.FLOATS: "rounding breaks it",
}


def page(found: list[tuple[Truth, Finding]]) -> str:
    """The whole page."""
    count = Counter(truth.kind for truth, _ in found)
    parts = [HEAD.format(kinds="\n".join(f"- *{k.value}* ({count[k]}): {means}." for k, means in MEANS.items()))]
    for paper, letter, lost in PAPERS:
        parts.append(f"# Paper {letter}: *{paper}*\n{lost}")
        parts += [section(t, f) for t, f in found if t.paper == paper]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page([(truth, truth.measure()) for truth in TRUTHS]))
