"""docs/selection_lemmas.md: sizes and bounds are built again, and what was measured lies within them."""

from pathlib import Path

import numpy as np

from constructions.token_selection import lemma_kernels, lemma_page, soft_selection
from constructions.token_selection.lemmas import cases

PAGE = Path(__file__).parents[3] / "docs" / "selection_lemmas.md"


def test_every_size_of_the_page_is_built_again() -> None:
    """What is built now stands in docs/selection_lemmas.md, row by row, and every row there was within its bound."""
    text = PAGE.read_text("utf-8")
    angles = soft_selection.circle_row(10, np.random.default_rng(0))
    rows = [*(case.row(5, 0) for case in cases()), *lemma_kernels.rows(100, 0), angles]
    for row in rows:
        assert lemma_page.line(row) in text
    table = [line.split(" | ") for line in text.splitlines() if line.startswith(("| F.", "| H.", "| 3.3"))]
    kept = [cells for cells in table if len(cells) == 11]
    assert len(kept) == len(rows) + 3
    assert all(float(cells[-1].rstrip(" |")) <= float(cells[-2]) for cells in kept)
    assert all(int(cells[8]) >= 100_000 for cells in kept if cells[0] in ("| F.2", "| F.3", "| F.4", "| F.5", "| F.6"))
