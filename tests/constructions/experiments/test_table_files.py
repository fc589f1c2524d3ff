"""The tables of items that are one run: what --json prints, a column for each key, as CSV and as LaTeX."""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compiler.artifact.files import GENERATOR
from constructions.command.cli import app
from constructions.experiments.table_files import TableFiles
from constructions.token_selection import lemma_page, page, rates

DOCS = Path(__file__).parents[3] / "docs"


def kept(name: str) -> list[dict]:
    found = json.loads((DOCS / f"{name}.json").read_text("utf-8"))
    rows = found["rows"] if isinstance(found, dict) else found
    return [*rows.values()] if isinstance(rows, dict) else rows


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as table:
        return list(csv.DictReader(table))


def test_a_record_is_a_row_and_an_outer_key_stands_before_an_inner_one(tmp_path):
    files = TableFiles(tmp_path / "a.csv", tmp_path / "a.tex")
    files.write_records("Two, and one", [{"a": {"b": 1.5, "c": None}, "d": ["x", {"e": True}]}, {"f": "x, y"}], ["why"])
    first, second = read(tmp_path / "a.csv")
    assert first == {"a.b": "1.5", "a.c": "", "d": "x; e=True", "f": ""}
    assert second == {"a.b": "", "a.c": "", "d": "", "f": "x, y"}
    text = (tmp_path / "a.tex").read_text("utf-8")
    assert text.startswith(f"% {GENERATOR}\n% why\n") and r"\caption{Two, and one}" in text and text.count(" & ") == 9
    TableFiles().write_records("nothing is asked for", [{"a": 1}])


@pytest.mark.parametrize("name", ["statements", "selection_lemmas", "automata"])
def test_every_kept_row_is_in_both_and_latex_reads_it(name, tmp_path):
    files, rows = TableFiles(tmp_path / "a.csv", tmp_path / "a.tex"), kept(name)
    files.write_records(name, rows)
    assert len(read(tmp_path / "a.csv")) == len(rows)
    text = (tmp_path / "a.tex").read_text("utf-8")
    assert text.count(r" \\") == len(rows) + 1
    assert text.isascii(), "pdflatex stops at a letter that it does not know: " + "".join(
        sorted({letter for letter in text if ord(letter) > 127})
    )


@pytest.mark.parametrize("item", ["lemmas", "rates", "token-selection"])
def test_the_command_writes_what_json_prints(item, tmp_path, monkeypatch):
    monkeypatch.setattr(lemma_page, "rows", lambda samples, seed: kept("selection_lemmas"))
    monkeypatch.setattr(page, "rows", lambda: [{"statement": "3.2", "sizes": {"D": 3}}])
    monkeypatch.setattr(rates, "SAMPLES", (64, 256))
    words = ["reproduce", item, "--json", "--csv", str(tmp_path / "a.csv"), "--latex", str(tmp_path / "a.tex")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    records = told["rows"] if isinstance(told, dict) else told
    rows = read(tmp_path / "a.csv")
    assert len(rows) == len(records) > 0 and (tmp_path / "a.tex").stat().st_size > 100
    name = next(key for key, value in records[0].items() if isinstance(value, str | int | float))
    assert [row[name] for row in rows] == [str(record[name]) for record in records]
