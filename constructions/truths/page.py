"""Write docs/truths.md from the statements and what they measure: `python -m constructions.truths.page`."""

from __future__ import annotations

from pathlib import Path

from constructions.papers import SELECTIVITY
from constructions.truths.collection import TRUTHS
from constructions.truths.commands import section
from constructions.truths.truth import Finding, Truth

PAGE = Path(__file__).parents[2] / "docs" / "truths.md"
HEAD = """# What the theorems do not say

Statements of two papers that fail as they are printed, each with a counterexample that a command runs, and with what
does hold. `construct truths` runs them all; each is a test. None of them breaks a theorem's idea: they are
conditions, constants and roundings that a proof may leave out and that weights may not. This page is
written by `python -m constructions.truths.page`.
"""


def page(found: list[tuple[Truth, Finding]]) -> str:
    """The whole page."""
    parts = [HEAD]
    for ours, title in ((True, f"# Paper A: *{SELECTIVITY}*"), (False, f"# Paper C: *{TRUTHS[-1].paper}*")):
        parts.append(title + "\n")
        parts += [section(t, f) for t, f in found if (t.paper == SELECTIVITY) is ours]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page([(truth, truth.measure()) for truth in TRUTHS]))
