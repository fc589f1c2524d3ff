"""The experiments of papers A and C: rows that are well declared, run, trained, kept and drawn."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch

from compiler.artifact.numeric import NumericStack
from constructions.__main__ import main
from constructions.checkpoints.built import build
from constructions.command.display import console
from constructions.construction import CircuitFamily
from constructions.experiments import run as experiments
from constructions.experiments.catalogue import EXPERIMENTS
from constructions.experiments.control_list import POLYNOMIAL, counting_control, keep_control, regression_control
from constructions.experiments.controls import Control, train
from constructions.experiments.details import SEQUENCE, decay, stages
from constructions.experiments.entry import Entry
from constructions.experiments.kept_rows import KeptRows
from constructions.experiments.names import ONE_RUN, WHAT, Item
from constructions.experiments.page import page
from constructions.experiments.polynomials import OnPolynomialS6
from constructions.experiments.selectivity import KEPT, LENGTHS, SIZES, coded, figure_a3, keep_table
from constructions.experiments.table_files import escaped
from constructions.pictures.state_history import state_history
from constructions.polynomials.polynomial_expression import parse_polynomial
from constructions.selectivity.mqar import MQAR
from constructions.selectivity.with_position import KeepNthPosition
from verify.tasks.mqar import PaperLayout

DOCS = Path(__file__).parents[3] / "docs"
PAPERS = [name for name, experiment in EXPERIMENTS.items() if not experiment.written]
ONE_STEP = replace(keep_control("s6", True, 6), steps=1, seeds=2)
TINY = (
    Entry(MQAR(kappa=2, vocab=3, length=8), "", "1.00 (N 4)", (0, 4), controls=(ONE_STEP,)),
    Entry(MQAR(kappa=2, vocab=3, length=8, arch="mamba2"), "small", "", (2, 4)),
    Entry(OnPolynomialS6("squashed", "x1*x2"), "Eq 6", "79.36 %, 29.49"),
    Entry(OnPolynomialS6("linear", "x1*x2"), "Eq 5", "78.62 %, 31.12"),
    next(entry for entry in keep_table(("S4D",), (10, 20)) if entry.cannot),
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    shorter = replace(EXPERIMENTS["figure-2"], entries=partial(map, lambda entry: entry, TINY))
    monkeypatch.setitem(EXPERIMENTS, "figure-2", shorter)


def reproduced(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["construct", "reproduce", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


def test_every_item_has_rows_and_a_name():
    assert set(get_args(Item)) == set(WHAT) == {*EXPERIMENTS, *ONE_RUN}


@pytest.mark.parametrize("name", PAPERS)
def test_every_row_is_built_or_says_why_not(name: str):
    entries = list(EXPERIMENTS[name].entries())
    assert all((entry.built is not None) != bool(entry.cannot or entry.absent) for entry in entries)
    keys = [experiments.row_key(entry) for entry in entries]
    assert len(set(keys)) == len(keys)


def test_the_papers_tables_are_whole():
    """Nine sizes and five lengths each; corners as the paper has them."""
    for lines in KEPT.values():
        table = [line.split() for line in lines.split("\n")]
        assert len(table) == len(SIZES) and {len(row) for row in table} == {len(LENGTHS)}
        assert all(0 <= float(cell) <= 1 for row in table for cell in row)
    assert KEPT["Mamba + PE"].split()[:5] == ["1.00", "1.00", "0.94", "0.85", "0.22"]
    assert KEPT["S4D"].split()[-5:] == ["0.20", "0.11", "0.09", "0.09", "0.09"]
    sums = {  # of the nine accuracies for each length, in hundredths, added up from the text of the paper
        "Mamba + PE": [899, 899, 894, 802, 744],
        "S4D + PE": [814, 391, 362, 86, 65],
        "Mamba": [189, 80, 66, 66, 60],
        "S4D": [144, 75, 60, 63, 63],
    }
    tables = {name: [line.split() for line in lines.split("\n")] for name, lines in KEPT.items()}
    columns = {name: zip(*table, strict=True) for name, table in tables.items()}
    assert sums == {name: [sum(round(100 * float(x)) for x in c) for c in found] for name, found in columns.items()}


def test_what_is_built_and_trained_is_told_kept_and_drawn(tiny, monkeypatch, tmp_path, capsys):
    options = ("figure-2", "--samples", "4", "--train", "--keep", str(tmp_path / "kept.json"))
    pictured = (*options, "--plot", str(tmp_path / "figure.png"), "--json")
    assert reproduced(monkeypatch, *pictured) == 0
    mamba, second, squashed, linear, cannot = json.loads(capsys.readouterr().out)
    assert mamba["accuracy"] == second["accuracy"] == linear["accuracy"] == 1 and linear["bit_exact"]
    assert len(mamba["trained"][0]["quality"]) == 2 and (tmp_path / "figure.png").stat().st_size > 1000
    assert "squashed transition keeps" in squashed["refused"] and not squashed["used"]
    assert not cannot["arch"] and 0.7 < cannot["ceiling"] < 0.8 and "linear in the past" in cannot["cannot"]

    monkeypatch.setattr(experiments, "run", lambda *asked: pytest.fail("what is kept is run again"))
    monkeypatch.setattr(console, "width", 80)
    tables = ("--csv", str(tmp_path / "table.csv"), "--latex", str(tmp_path / "table.tex"))
    assert reproduced(monkeypatch, *options, *tables, "--page", str(tmp_path / "page.md")) == 0
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80 and "wider" in told and "cannot (≤ 75.2 %)" in told
    written = (tmp_path / "page.md").read_text("utf-8")
    assert written == page(KeptRows(tmp_path / "kept.json")) and "## What was trained" in written

    (shown,) = re.findall(r"^\| model .*?(?=\n\n)", written, re.DOTALL | re.MULTILINE)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines()]
    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as table:
        assert list(csv.reader(table)) == [cells[0], *cells[2:]]
    latex = (tmp_path / "table.tex").read_text("utf-8")
    assert latex.count(r" \\") == len(cells) - 1 and r"$\kappa$ 2 V 3" in latex and r"(MQAR" not in latex
    assert all(line.count("&") == len(cells[0]) - 1 for line in latex.splitlines() if line.endswith(r"\\"))


def test_latex_reads_every_sign_as_itself():
    assert escaped("a_b & 50 % {κ} \\ ≤ 3·4") == r"a\_b \& 50 \% \{$\kappa$\} \textbackslash{} $\le$ 3$\cdot$4"
    text = "".join(str(row) for name in PAPERS for row in KeptRows(DOCS / "experiments.json").of(name))
    assert escaped("".join(set(text))).isascii(), "pdflatex stops at a letter that it does not know"


def test_items_are_listed(monkeypatch, capsys):
    assert reproduced(monkeypatch, "--list") == 0
    told = capsys.readouterr().out
    assert all(f" {name} " in told for name in WHAT)


def test_key_codes_that_are_too_short_are_refused_in_a_row():
    assert "smallest key_code that works" in coded(8, 512, 3, "").absent
    assert "takes three columns" in coded(4, 512, 2, "").absent
    kept = json.loads((DOCS / "experiments.json").read_text("utf-8"))["figure-a3"]
    told = {entry.absent for entry in figure_a3() if entry.absent}
    assert told == {row["absent"] for row in kept if row.get("absent")}, "the page has other reasons than the code"
    assert coded(8, 512, 17, "").built.key_length == 16


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if name.startswith("figure-")])
def test_no_number_of_a_figure_is_told_as_the_paper_s(name: str) -> None:
    """Our text of paper A lacks its figures: in every form, a number beside them says that we expect it."""
    told = {entry.paper for entry in EXPERIMENTS[name].entries() if entry.paper}
    assert all(paper.startswith("expected ") for paper in told if "1.00" in paper or "Δᵀ" in paper), told
    kept = json.loads((DOCS / "experiments.json").read_text("utf-8"))[name]
    assert {row["paper"] for row in kept if row.get("paper")} == told, "the page has other numbers than the code"


@pytest.mark.parametrize(
    "control",
    [
        ONE_STEP,
        replace(keep_control("s4d", False, 6), steps=1),
        replace(counting_control("attention", 2, 2, True), steps=1),
        replace(regression_control("s6", 4, False), steps=1),
        Control("mamba2", PaperLayout(2, 3, 8, "neutral"), 4, 2, convolution=True, gate=True, steps=1),
        Control("s6-transposed", PaperLayout(2, 3, 8, "neutral"), 4, 2, convolution=True, steps=1),
        *(replace(counting_control("s6", 1, 2, False), steps=1, transition=t) for t in ("sigmoid", "taylor", "affine")),
    ],
    ids=lambda control: f"{control.mixer} {control.transition}",
)
def test_one_step_of_every_control(control: Control):
    first, again = train(control), train(control)
    assert first | {"seconds": 0} == again | {"seconds": 0}, "the same seeds, the same numbers"
    assert len(first["quality"]) == control.seeds and all(np.isfinite(first["quality"]))
    assert first["parameters"] > 0 and first["curve"][-1][0] == 1


def test_training_lowers_the_loss():
    result = train(replace(keep_control("s6", True, 6), steps=40, seeds=1))
    assert result["curve"][-1][1] < 0.9 * result["curve"][0][1]


def test_the_polynomial_of_the_regression_is_the_one_that_is_built():
    x = np.random.default_rng(0).uniform(-1, 1, (5, 4))
    polynomial = parse_polynomial(POLYNOMIAL, 4)
    asked = regression_control("s6", 4, False).task
    np.testing.assert_allclose(asked.value(x), [float(polynomial.at(list(row))) for row in x], rtol=1e-12)


@pytest.mark.parametrize("arch", ["mamba", "s4d"])
def test_the_stages_are_those_of_the_real_module(arch: str):
    built = build(MQAR(kappa=3, vocab=4, arch=arch, length=12))
    told = stages(built.compiled, SEQUENCE)
    asked = dict(zip(told["tokens"][6:], told["answers"][6:], strict=True))
    assert (asked["k0"], asked["k1"], asked["k2"]) == ("v3", "v2", "v0")
    history = state_history(built.compiled, built.bare_stack(), SEQUENCE)
    real = np.array([row for group in history.groups for row in group.values.T if row.any()])
    ours = np.array(told["stages"]["state"]["values"])
    assert _shapes(real) == _shapes(ours)


def _shapes(rows: np.ndarray) -> list[list[float]]:
    """Every row over its largest number, whatever its unit and its sign."""
    return sorted((np.abs(row) / np.abs(row).max()).tolist() for row in rows)


def test_a_latch_forgets_until_n_and_keeps_from_then_on():
    positioned = KeepNthPosition(3, 4)
    built = build(positioned)
    found = decay(built.compiled, positioned)
    assert found == {"before": [1.0] + [0.0] * 9, "after": [0.0] * 9 + [1.0]}
    stack = built.stack()
    assert isinstance(stack, NumericStack)
    with torch.no_grad():
        tokens = np.eye(4)[np.array([[0, 1, 2, 3, 0, 1]])]
        assert stack.run({"token": tokens})[0, 2:].argmax(-1).tolist() == [2] * 4


def test_seeds_are_told_of_the_table_whose_caption_tells_them():
    """Of KEEP n-th that is Table 1 alone."""
    assert [name for name, told in EXPERIMENTS.items() if "means over 3 seeds" in told.note] == ["table-1"]


def test_the_page_of_the_experiments_is_that_of_its_rows():
    kept = KeptRows(DOCS / "experiments.json")
    assert page(kept) == (DOCS / "experiments.md").read_text("utf-8"), "construct reproduce … --keep --page"
    assert kept.trained
    for name in PAPERS:
        needed = {experiments.row_key(e): e.built.information_bits() for e in experiments.chosen(name) if _asks_bits(e)}
        told = {row.key: row.information_bits for row in kept.of(name) if row.key in needed and row.used}
        assert told == {key: needed[key] for key in told}
        assert all(row.good for row in kept.of(name))
        assert {row.key for row in kept.of(name)} <= {experiments.row_key(entry) for entry in experiments.chosen(name)}


def _asks_bits(entry: Entry) -> bool:
    return isinstance(entry.built, CircuitFamily)
