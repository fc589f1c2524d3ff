"""docs/token_selection.md: its table is what compiles now, and what it says of sizes holds."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from constructions.command.cli import app
from constructions.token_selection import page

PAGE = Path(__file__).parents[2] / "docs" / "token_selection.md"


@pytest.fixture(scope="module")
def found() -> list[dict]:
    return page.rows()


def test_the_table_is_compiled_anew(found):
    text = PAGE.read_text("utf-8")
    assert page.with_table(text, found) == text, "construct reproduce token-selection --page docs/token_selection.md"
    assert page.table(found) in text


def test_every_model_is_between_what_is_needed_and_what_was_counted_by_hand(found):
    for row in found:
        assert row["least_D"] <= row["sizes"]["D"] <= row["by_hand"]["D"]
        assert row["sizes"]["S"] <= row["by_hand"].get("S", row["sizes"]["S"])
        assert row["sizes"]["M"] == (1 if row["statement"].startswith("3.3") else 2)


def test_the_formula_of_recall(found):
    n, d = 8, 4
    assert found[0]["sizes"]["S"] == 8 * n * d + 2 * n + d and found[0]["sizes"]["D"] == n * (d + 1)


def test_a_page_without_the_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "rows", list)
    (tmp_path / "page.md").write_text("nothing\n")
    done = CliRunner().invoke(app, ["reproduce", "token-selection", "--page", str(tmp_path / "page.md")])
    assert isinstance(done.exception, ValueError) and "has no such table" in str(done.exception)
    done = CliRunner().invoke(app, ["reproduce", "token-selection", "--plot", str(tmp_path / "a.png")])
    assert isinstance(done.exception, ValueError) and "token-selection has no figure" in str(done.exception)
