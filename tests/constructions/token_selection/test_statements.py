"""Every statement on every mixer at tiny sizes: all inputs, longer ones, transformers, injected faults, the page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from constructions.command.cli import app
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.selective_copy import SelectiveCopy
from constructions.token_selection import statements, statements_page
from constructions.token_selection.copy_ngram import CopyNgram
from constructions.token_selection.page import with_table_at
from constructions.token_selection.recall import AssociativeRecall
from constructions.token_selection.selection import TokenSelection
from constructions.token_selection.statements import STATEMENTS, Statement, measure
from constructions.token_selection.unique_induction import UniqueInduction

DOCS = Path(__file__).parents[3] / "docs"
KEPT, PAGE = DOCS / "statements.json", DOCS / "token_selection.md"
TINY = {
    statement.name: statement
    for statement in (
        Statement("3.3, d' = 1", TokenSelection("angle", 3, 2, 3), TokenSelection("angle", 3, 2, 30)),
        Statement("3.3, d' = 2", TokenSelection("plane", 1, 2, 3), TokenSelection("plane", 1, 2, 30)),
        Statement("3.3, d' = 3", TokenSelection("signs", 3, 2, 2), TokenSelection("signs", 3, 2, 12)),
        Statement("3.2", AssociativeRecall(2, 2, 3), AssociativeRecall(4, 3, 20)),
        Statement("3.2, distinct keys", AssociativeRecall(2, 2, 2, True), AssociativeRecall(6, 3, 6, True)),
        Statement("D.1", UniqueInduction(2, 5), UniqueInduction(5, 40)),
        Statement("3.1, places", Copy(n=3, vocab=2), Copy(n=20, vocab=3)),
        Statement("3.1, n-grams", CopyNgram(2, 2, 4), CopyNgram(2, 3, 20)),
        Statement("3.1, each n-gram once", CopyNgram(1, 3, 3), CopyNgram(2, 4, 16)),
        Statement("D.2", SelectiveCopy(n=2, vocab=2, length=3), SelectiveCopy(n=4, vocab=3, length=30)),
    )
}


@pytest.mark.parametrize("arch", statements.ARCHS)
@pytest.mark.parametrize("name", TINY)
def test_a_statement_on_a_mixer(name, arch, monkeypatch):
    monkeypatch.setattr(statements, "FAULTY_SEQUENCES", 8)
    row = measure(TINY[name], arch, samples=4, seed=1)
    assert row.good and not row.refused
    ran = ["exact numbers", "torch module"] if arch == "fnn+ssm" else ["mamba_ssm", "transformers"]
    assert [run.by for run in row.every] == [run.by for run in row.random] == ran
    tasks = statements.tasks_of(replace(TINY[name].small, arch=arch))
    assert all(run.sequences >= sum(task.exhaustive_count() for task in tasks) for run in row.every)
    assert all(run.right == run.queries > 0 and run.exact for run in (*row.every, *row.random))
    assert row.plants.count == statements.FAULTS and row.plants.seen > 0
    assert row.plants.differing == (None if arch == "fnn+ssm" else statements.FAULTS)


def test_the_list_has_every_statement_on_every_mixer():
    assert set(TINY) == {statement.name for statement in STATEMENTS}
    assert {type(s.small) for s in STATEMENTS} == {type(s.long) for s in STATEMENTS} and len(STATEMENTS) == 10
    assert statements.ARCHS == ("fnn+ssm", "mamba", "mamba2", "s4d")
    assert len(statements_page.chosen()) == 40 and len(statements_page.chosen(["recall s4d", "D.2 mamba"])) == 3


def test_a_wrong_answer_and_an_injected_fault_that_nobody_sees_are_no_success(monkeypatch):
    """One letter of the oracle changed; then faults that change nothing."""
    tiny = TINY["3.2"]
    monkeypatch.setattr(statements, "faults", lambda tensors, seed: ((n, t.clone()) for n, t in [*tensors.items()][:4]))
    row = measure(tiny, "mamba", 4, 0)
    assert row.plants == statements.InjectedFaults(statements.FAULTS, 0, 0) and not row.good
    answer = AssociativeRecall(2, 2, 3).tasks()[0].__class__.answer
    monkeypatch.setattr(type(tiny.small.tasks()[0]), "answer", lambda self, tokens: 5 - answer(self, tokens))
    wrong = measure(tiny, "fnn+ssm", 4, 0)
    assert not wrong.good and wrong.every[0].right < wrong.every[0].queries and wrong.every[0].exact


def test_faults_are_one_weight_each():
    tensors = {"a": torch.tensor([0.0, 2.0]), "b": torch.zeros(3), "c": torch.tensor([[1.0], [-3.0]])}
    for name, changed in statements.faults(tensors, 0):
        assert name != "b" and (changed != tensors[name]).sum() == 1 and torch.equal(changed.abs(), tensors[name].abs())


def test_what_is_too_large_has_a_row_with_the_reason():
    too_long = Statement("3.1, n-grams", CopyNgram(2, 2, 4), CopyNgram(3, 8, 498))
    row = measure(too_long, "mamba2", 4, 0)
    assert "the norm's ballast would need K" in row.refused and "shorter may fit" in row.refused and row.good
    told = statements_page.table([row])
    assert (
        "| 3.1, n-grams | mamba2 | refused |" in told and f"- 3.1, n-grams on mamba2 is refused: {row.refused}" in told
    )


# The page ----------------------------------------------------------------------------------------------------


def test_the_table_of_the_page_is_the_kept_rows():
    rows, text = statements_page.kept_rows(KEPT), PAGE.read_text("utf-8")
    assert statements_page.table(rows) in text
    assert with_table_at(statements_page.HEAD, text, statements_page.table(rows)) == text


def test_the_kept_rows_are_those_of_the_list_and_all_good():
    """Every statement at a thousand tokens on every mixer, but where the row says why it cannot be."""
    rows = statements_page.kept_rows(KEPT)
    asked = {(statement.name, arch): statement for statement, arch in statements_page.chosen()}
    assert [row.key for row in rows] == list(asked) and all(row.good for row in rows)
    for row in rows:
        statement = asked[row.key]
        if row.refused:
            continue
        assert {run.model for run in row.every} == {statements.named(replace(statement.small, arch=row.arch))}
        assert {run.model for run in row.random} == {statements.named(replace(statement.long, arch=row.arch))}
        least = 514 if row.statement == "3.1, each n-gram once" else 999
        assert all(run.tokens >= least and run.queries >= row.samples for run in row.random)


def test_the_command_keeps_rows_and_writes_the_page(tmp_path, monkeypatch):
    tiny = replace(TINY["3.2"], long=TINY["3.2"].small)
    monkeypatch.setattr(statements_page, "STATEMENTS", (tiny,))
    monkeypatch.setattr(statements, "FAULTY_SEQUENCES", 8)
    page, keep = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text(f"# Title\n\n{statements_page.HEAD}\n| --- |\n\n- old is refused: so.\n\nMore.\n")
    words = ["reproduce", "statements", "--only", "recall fnn+ssm", "--samples", "4", "--keep", str(keep)]
    done = CliRunner().invoke(app, [*words, "--page", str(page), "--json", "--csv", str(tmp_path / "rows.csv")])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.output)
    assert row["statement"] == "3.2" and row["plants"]["seen"] > 0
    assert statements_page.kept_rows(keep) == [statements.Row.of(row)]
    assert (tmp_path / "rows.csv").read_text().splitlines()[1].startswith("3.2,fnn+ssm,4")
    text = page.read_text()
    assert "| 3.2 | fnn+ssm |" in text and "is refused" not in text and text.endswith("\n\nMore.\n")
    monkeypatch.setattr(statements_page, "measure", lambda *_: pytest.fail("the row is kept"))
    assert CliRunner().invoke(app, words).exit_code == 0


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--only", "sorting"], "--only 'sorting': no such row; name a command"),
        (["--train"], "statements trains nothing"),
        (["--page", "page.md"], "--page page.md: it is written from a file of results"),
        (["--plot", "a.png"], "statements has no figure"),
    ],
)
def test_wrong_use_is_told_in_one_sentence(words, reason):
    done = CliRunner().invoke(app, ["reproduce", "statements", *words])
    assert isinstance(done.exception, ValueError) and reason in str(done.exception)


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "rows.json").write_text('[{"statement": "3.2"}]')
    with pytest.raises(ValueError, match="it holds no rows of statements"):
        statements_page.kept_rows(tmp_path / "rows.json")
