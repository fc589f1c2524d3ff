"""The lists of docs/how_it_works.md, from the passes, strategies and variants that the compiler runs.

python scripts/pass_lists.py writes them into the page; a test holds that they stand there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from compiler.pipeline import PASSES, STRATEGIES, VARIANTS, Pass, Strategy, Variant

PAGE = Path(__file__).parents[1] / "docs" / "how_it_works.md"
START, END = "<!-- the lists of scripts/pass_lists.py -->\n", "<!-- their end -->\n"


def lists() -> str:
    """The part of the page between the two marks."""
    return "\n".join(
        (
            "",
            *_table("pass", PASSES),
            "",
            "A refused circuit is tried again by these strategies, in this order; each failure keeps its reason:",
            "",
            *_table("strategy", STRATEGIES),
            "",
            "What fits is tried once more by these variants. One is taken where it needs fewer blocks:",
            "",
            *_table("variant", VARIANTS),
            "",
            "",
        )
    )


def _table(title: str, entries: Sequence[Pass | Strategy | Variant]) -> Iterator[str]:
    yield "<!-- a table of words -->"
    yield f"| {title} | what it does |"
    yield "| --- | --- |"
    for entry in entries:
        yield f"| **{entry.name}** | {entry.does} |"


def written(text: str) -> str:
    """A page with these lists between its marks; ValueError where it has none."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"{PAGE.name} has no {START.strip()} … {END.strip()}, and the lists belong between them")
    return before + start + lists() + end + after


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
