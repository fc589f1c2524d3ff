"""What the README shows is what the program prints, and its examples run."""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

from compiler.language.circuit import Circuit
from compiler.language.data import to_data
from constructions.polynomials import commands as commands_polynomial
from constructions.registry import CONSTRUCTIONS
from constructions.selectivity import commands as commands_selectivity
from tests.constructions.test_construct import run
from tests.spread import some

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
MOST_WORDS = 900
PANELS = ("Build", "Inspect and check", "Use elsewhere", "Ground truth", "Papers", "Kernels and runtimes")


def blocks(kind: str = "") -> list[str]:
    """What stands between the fences of this kind."""
    return [
        text for found, text in re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE) if found == kind
    ]


def test_the_main_job_prints_the_readmes_table_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    """The whole main job: 10,000 random sequences and the adversarial cases, bare and packaged."""
    assert run("mqar", "--kappa", "16", "--vocab", "512", "--out", str(tmp_path / "c")) == 0
    shown = capsys.readouterr().out
    (table,) = (block for block in blocks() if "bound, our constants" in block)
    assert table in shown
    counts = re.search(r"([\d,]+) sequences with\s+([\d,]+) queries", README)
    assert shown.count(counts[1]) == 2 and shown.count(counts[2]) == 2
    assert all(len(line) <= 80 for line in shown.splitlines())


OF_THE_DOCS = {"tables.py", "figures.py", "polynomial_figures.py"}  # their output is tested against the pages


@pytest.mark.parametrize(
    "example", sorted(p.name for p in (ROOT / "examples").glob("*.py") if p.name not in OF_THE_DOCS)
)
def test_examples_run(example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python examples/NAME`, in this process, which has imported what takes seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [example])
    runpy.run_path(str(ROOT / "examples" / example), run_name="__main__")


def test_the_readmes_circuit_compiles_and_is_verified(tmp_path, monkeypatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(tmp_path)
    programs = blocks("python")
    (program,) = (block for block in programs if "count-since" in block)
    (check,) = (block for block in programs if "from verify import verify" in block)
    scope: dict = {}
    exec(program, scope)  # the README's own text
    exec(check, scope)
    said = "right on all 1,092 sequences of up to 6 tokens"
    assert capsys.readouterr().out == f"{said}\n" and f"`{said}`" in README
    (plot,) = (block for block in blocks() if "construct plot" in block)
    assert run(*shlex.split(plot)[1:]) == 0 and Path("count-since.png").stat().st_size > 1000
    drawn = runpy.run_path(str(ROOT / "examples" / "figures.py"))["count_since"]()
    assert _unplaced(drawn) == _unplaced(scope["circuit"]), "the README shows a picture of its own circuit"
    capsys.readouterr()
    assert run("inspect", "count-since") == 0
    (lanes,) = (block for block in blocks() if "is_a" in block)
    assert lanes in capsys.readouterr().out


def _unplaced(circuit: Circuit) -> dict:
    """The circuit as data, without the lines where it was written."""
    data = to_data(circuit)
    return data | {"streams": [{**stream, "source": None} for stream in data["streams"]]}


@pytest.mark.quick
def test_the_readme_is_a_front_door() -> None:
    """Two sentences say what it is; the circuit of one's own takes ten lines; what is shown fits a terminal."""
    assert len(README.split()) <= MOST_WORDS
    (opening,) = re.findall(r"^# .*?\n\n(.*?)\n\n", README, re.DOTALL)
    assert len(re.findall(r"\.(?=\s|$)", opening)) == 2
    (program,) = (block for block in blocks("python") if "count-since" in block)
    assert len([line for line in program.splitlines() if line]) <= 10
    assert all(len(line) <= 80 for block in blocks() for line in block.splitlines())


def test_every_help_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from constructions.command.cli import command_line

    monkeypatch.setenv("COLUMNS", "80")
    for name in some((None, *command_line().commands), 0.15):
        shown = CliRunner().invoke(command_line(), [*filter(None, [name]), "--help"])
        assert shown.exit_code == 0 and max(map(len, shown.output.splitlines())) <= 80, name


def test_every_page_is_in_the_index() -> None:
    listed = set(re.findall(r"\]\(([^)]+\.md)\)", (ROOT / "docs" / "index.md").read_text("utf-8")))
    assert listed == {"../examples/gallery/README.md", *(p.name for p in (ROOT / "docs").glob("*.md"))} - {"index.md"}


def test_every_command_stands_in_a_panel_of_the_help() -> None:
    from constructions.command.cli import app

    listed = [*app.registered_commands, *app.registered_groups]
    assert {entry.rich_help_panel for entry in listed} == set(PANELS)


def test_the_pages_that_the_readme_links_exist() -> None:
    links = re.findall(r"\]\(([^)]+\.md)\)", README)
    assert len(links) >= 5 and all((ROOT / link).is_file() for link in links)


def test_every_construction_of_the_command_is_on_the_page() -> None:
    page = (ROOT / "docs" / "constructions.md").read_text("utf-8")
    for name in [*CONSTRUCTIONS, *commands_selectivity.COMMANDS, *commands_polynomial.COMMANDS]:
        assert f"`{name}`" in page
