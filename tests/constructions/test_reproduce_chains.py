"""`construct reproduce chains`: models are forced, and write by themselves; refusals have rows too."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from compiler.errors import CompileError
from constructions import reproduce
from constructions.__main__ import main
from constructions.copy_dp.copy import Copy
from constructions.copy_dp.lists import LongestIncreasingSubsequence
from constructions.copy_dp.local import Fibonacci
from constructions.copy_dp.tables import MatrixChain
from constructions.display import console
from verify.tasks.solvers.copying import CopySolver

TINY = (
    Copy(n=2, vocab=2),
    Copy(n=2, vocab=2, dtype="bfloat16", arch="mamba2"),
    MatrixChain(matrices=3, largest=3, dtype="bfloat16"),
    LongestIncreasingSubsequence(length=2, values=2),
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(reproduce.EXPERIMENTS, "every-chain", lambda: iter(TINY))
    monkeypatch.setitem(reproduce.EXPERIMENTS, "chains", lambda: iter(TINY[:1]))


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
    assert rising["bound"]["d_state"] == 3 and rising["written"][0]["chains"] == 7
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


def test_float32_is_never_just_refused(monkeypatch):
    too_large = Fibonacci(modulus=4096, length=4)
    monkeypatch.setitem(reproduce.EXPERIMENTS, "chains", lambda: iter([replace(too_large, dtype="bfloat16")]))
    (row,) = reproduce.rows("chains", 1, 0)
    assert row.refused
    monkeypatch.setitem(reproduce.EXPERIMENTS, "chains", lambda: iter([too_large]))
    with pytest.raises(CompileError):
        list(reproduce.rows("chains", 1, 0))


def test_all_programs_are_in_both():
    from constructions.registry import CONSTRUCTIONS

    paper = {name for name, c in CONSTRUCTIONS.items() if c.__module__.startswith("constructions.copy_dp")}
    for experiment in ("chains", "every-chain"):
        built = list(reproduce.EXPERIMENTS[experiment]())
        assert {(c.name, c.target, c.dtype) for c in built} == {
            (name, arch, dtype) for name in paper for arch in ("mamba", "mamba2") for dtype in ("float32", "bfloat16")
        }
