"""Long runs of groups: their oracle, a planted fault, a run that goes on, and what docs/groups.md shows of them."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import long_runs
from benchmarks.plain_run import ORACLES, main
from compiler.automata.regex import regex_table
from constructions.automata.automaton import Automaton, table_json

SCRIPT = Path(long_runs.__file__).with_name("plain_run.py")


@pytest.fixture(scope="module")
def parity(tmp_path_factory) -> Path:
    from compiler.driver import compile

    table = table_json(regex_table("(b*ab*a)*b*"))
    place = tmp_path_factory.mktemp("long") / "parity"
    compile(Automaton(table=table, arch="gated-deltanet").circuit(), "gated-deltanet").save(place)
    return place


def _run(capsys, place: Path, length: int, *more: str) -> dict:
    code = main([str(place), "--oracle", "parity", "--letters", "a,b", "--length", str(length), *more])
    found = json.loads(capsys.readouterr().out)
    assert code == (1 if found["wrong"] else 0) and found["done"] == length
    return found


def test_a_run_that_goes_on_is_the_run_in_one(parity: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    """Its pieces, its cache and its oracle: nothing is wrong on either side of where it stopped."""
    monkeypatch.setattr("benchmarks.plain_run.PIECE", 100)
    assert _run(capsys, parity, 500, "--attention")["wrong"] == 0
    keep = ["--keep", str(tmp_path / "at")]
    _run(capsys, parity, 300, *keep)
    assert _run(capsys, parity, 500, *keep)["wrong"] == 0
    held = torch.load(tmp_path / "at", weights_only=False)
    held["state"] = {"yes": "no", "no": "yes"}[held["state"]]
    torch.save(held, tmp_path / "at")
    assert _run(capsys, parity, 600, *keep) | {"cpu_s": 0} == {
        "class": "OlmoHybridForCausalLM", "dtype": "float32", "done": 600, "wrong": 100, "first": 500, "cpu_s": 0
    }  # fmt: skip
    with pytest.raises(SystemExit, match="it holds another run"):
        _run(capsys, parity, 700, *keep, "--seed", "1")


def test_a_changed_weight_is_found(parity: Path, tmp_path: Path, capsys) -> None:
    """β of 1.99 in the place of 2."""
    from safetensors.torch import load_file, save_file

    broken = tmp_path / "broken"
    broken.mkdir()
    for path in parity.iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    tensors = load_file(broken / "model.safetensors")
    name = next(name for name in tensors if name.endswith("b_proj.weight"))
    tensors[name] = torch.where(tensors[name] > 0, 5.3, tensors[name])
    save_file(tensors, broken / "model.safetensors", {"format": "pt"})
    assert _run(capsys, broken, 1500)["wrong"] > 0


@pytest.mark.parametrize("name", ["mod-5", "a5", "s5"])
def test_the_oracle_follows_the_table_that_is_compiled(name: str) -> None:
    """Two programs, of which neither knows the other: over all states and letters."""
    table = long_runs.table(name)
    start, follow = ORACLES[name]
    assert table["start"] == start and len(table["transitions"]) == {"mod-5": 5, "a5": 60, "s5": 120}[name]
    for state, row in table["transitions"].items():
        assert set(row) == set(table["transitions"]) and all(follow(state, x) == to for x, to in row.items())


def test_the_process_of_the_model_imports_nothing_of_ours() -> None:
    found: set[str] = set()
    for node in ast.walk(ast.parse(SCRIPT.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add(str(node.module).partition(".")[0])
    assert found - sys.stdlib_module_names == {"torch", "transformers"}


def test_the_page_shows_what_was_measured() -> None:
    rows = json.loads(long_runs.DATA.read_text("utf-8"))
    page = long_runs.PAGE.read_text("utf-8")
    assert page.split(long_runs.BEGIN)[1].split(long_runs.END)[0].strip() == long_runs.shown(list(rows.values()))
    assert rows and list(rows) == [name for name in long_runs.ROWS if name in rows]
    for row in rows.values():
        assert row["wrong"] == 0 and row["proved"] and row["class"] == "OlmoHybridForCausalLM"
