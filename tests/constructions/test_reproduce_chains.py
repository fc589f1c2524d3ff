"""`construct reproduce chains`: models are forced, and write by themselves; refusals have rows too."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from compiler.errors import CompileError
from constructions.__main__ import main
from constructions.command.display import console
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.lists import LongestIncreasingSubsequence
from constructions.copy_dp.local import Fibonacci
from constructions.copy_dp.tables import MatrixChain
from constructions.experiments import run as reproduce
from constructions.experiments.entry import Entry
from constructions.experiments.kept_rows import KeptRows
from constructions.experiments.page import page
from verify.tasks.solvers.copying import CopySolver

DOCS = Path(__file__).parents[2] / "docs"
TINY = (
    Copy(n=2, vocab=2),
    Copy(n=2, vocab=2, dtype="bfloat16", arch="mamba2"),
    MatrixChain(matrices=3, largest=3, dtype="bfloat16"),
    LongestIncreasingSubsequence(length=2, values=2),
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, models in (("every-chain", TINY), ("chains", TINY[:1])):
        shorter = replace(reproduce.EXPERIMENTS[name], entries=partial(map, Entry, models))
        monkeypatch.setitem(reproduce.EXPERIMENTS, name, shorter)


def reproduced(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["construct", "reproduce", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code or 0


def test_every_prompt_is_forced_and_written(tiny, monkeypatch, capsys):
    assert reproduced(monkeypatch, "every-chain", "--json") == 0
    copied, short, refused, rising = json.loads(capsys.readouterr().out)
    assert copied["written"][1] == {"runtime": "transformers", "chains": 7, "tokens": 17, "wrong": None}
    assert short["dtype"] == "bfloat16" and short["queries"] > copied["written"][0]["tokens"] - 1
    assert "bfloat16 adds exactly up to 256" in refused["refused"] and not refused["used"]
    assert rising["bound"] == {} and rising["written"][0]["chains"] == 7
    assert all(row["cpu_seconds"] > 0 for row in (copied, short, rising))
    assert all(run["wrong"] is None for row in (copied, short, rising) for run in row["written"])


def test_the_table_names_what_was_refused_and_how_much_was_written(tiny, monkeypatch, capsys):
    monkeypatch.setattr(console, "width", 200)
    assert reproduced(monkeypatch, "every-chain") == 0
    told = capsys.readouterr().out
    assert "refused" in told and "17, 17, 17, 3" in told


def test_a_wrong_chain_ends_with_1(tiny, monkeypatch, capsys):
    monkeypatch.setattr(CopySolver, "chain", lambda self, prompt: ["x0", "."])
    assert reproduced(monkeypatch, "chains", "--samples", "2", "--json") == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["accuracy"] < 1 and any(run["wrong"] for run in row["written"])


def test_float32_is_never_just_refused():
    too_large = Fibonacci(modulus=4096, length=4)
    assert reproduce.run("chains", Entry(replace(too_large, dtype="bfloat16")), 1, 0).refused
    with pytest.raises(CompileError):
        reproduce.run("chains", Entry(too_large), 1, 0)


def test_what_is_kept_is_not_run_again_and_what_was_wrong_is(tiny, monkeypatch, tmp_path, capsys):
    kept, page = tmp_path / "rows.json", tmp_path / "rows.md"
    options = ("every-chain", "--keep", str(kept), "--page", str(page), "--json")
    assert reproduced(monkeypatch, *options, "--only", "copy mamba", "--only", "bfloat16") == 0
    some = json.loads(capsys.readouterr().out)
    assert [(row["arch"], row["dtype"]) for row in some] == [(c.target, c.dtype) for c in TINY[:3]]

    ran, right = [], reproduce.run
    monkeypatch.setattr(reproduce, "run", lambda *asked: ran.append(asked[1]) or right(*asked))
    assert reproduced(monkeypatch, *options) == 0 and ran == [Entry(TINY[3])]
    assert json.loads(capsys.readouterr().out)[:3] == some
    assert "4 of 4 models were run: 3 right, 1 refused, 0 wrong." in page.read_text("utf-8")
    assert reproduced(monkeypatch, *options, "--samples", "7") == 0 and len(ran) == 5, "another number is another run"

    rows = json.loads(kept.read_text("utf-8"))
    spoiled = next(row for row in rows["every-chain"] if row["written"])
    spoiled["written"][0]["wrong"] = "x0 |"
    kept.write_text(json.dumps(rows), "utf-8")
    assert reproduced(monkeypatch, *options, "--samples", "7") == 0 and len(ran) == 6


def test_what_reproduce_refuses(tiny, monkeypatch, tmp_path, capsys):
    (tmp_path / "other.json").write_text('{"chains": [{"no": 1}]}', "utf-8")
    for options, sentence in (
        (("chains", "--only", "nothing"), "name a program (copy), mixer or dtype"),
        (("chains", "--keep", str(tmp_path / "other.json")), "holds no rows of experiments"),
        (("chains", "--page", "page.md"), "give one by --keep"),
        (("graft", "--only", "copy"), "one run without parts"),
    ):
        assert reproduced(monkeypatch, *options) == 2
        assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.mark.quick
def test_the_page_of_what_was_run_is_that_of_its_rows():
    rows = KeptRows(DOCS / "chains.json")
    assert page(rows) == (DOCS / "chains.md").read_text("utf-8"), "construct reproduce … --keep --page"
    models = {reproduce.row_key(c) for name in ("chains", "every-chain") for c in reproduce.chosen(name)}
    assert rows.of("chains")
    for name in ("chains", "every-chain"):
        assert all(row.good for row in rows.of(name))
        assert {row.key for row in rows.of(name)} <= models


def test_dp_md_says_how_long_that_took():
    """The columns of chains.md, added up, in minutes."""
    _, full, every = (DOCS / "chains.md").read_text("utf-8").split("CPU s |\n")
    seconds = [sum(map(int, re.findall(r"(\d+) \|$", part, re.MULTILINE))) for part in (full, every)]
    told = "{:.1f} minutes of a processor at full size and {:.1f} for every prompt".format(*(s / 60 for s in seconds))
    assert told in (DOCS / "dp.md").read_text("utf-8"), seconds


def test_all_programs_are_in_both():
    from constructions.registry import CONSTRUCTIONS

    paper = {name for name, c in CONSTRUCTIONS.items() if c.__module__.startswith("constructions.copy_dp")}
    for experiment in ("chains", "every-chain"):
        built = [entry.built for entry in reproduce.EXPERIMENTS[experiment].entries()]
        assert {(c.name, c.target, c.dtype) for c in built} == {
            (name, arch, dtype) for name in paper for arch in ("mamba", "mamba2") for dtype in ("float32", "bfloat16")
        }
