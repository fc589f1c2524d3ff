"""What the command imports: nothing that its answer does not need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.command_lines import PROGRAM

HEAVY = ("torch", "transformers", "mamba_ssm", "triton", "sympy", "matplotlib", "networkx", "safetensors")
HUGE = ("mqar", "--vocab", str(10**20))
LINES = [("list",), ("list", "--json"), ("--help",), ("mqar", "--help"), ("--version",), HUGE, ("show", "--help")]


def told(lines: list[tuple[str, ...]]) -> list[tuple[int, str, str, list[str]]]:
    """(exit code, output, errors, what is imported by then that is heavy) of command lines, one after the other."""
    program = [sys.executable, "-c", PROGRAM, json.dumps(lines)]
    found = json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
    return [(*said, [name for name in HEAVY if name in loaded]) for *said, loaded in found]


@pytest.fixture(scope="module")
def of_lines() -> dict[tuple[str, ...], tuple[int, str, str, list[str]]]:
    return dict(zip(LINES, told(LINES), strict=True))


@pytest.mark.parametrize("arguments", [line for line in LINES if line != HUGE], ids=" ".join)
def test_nothing_heavy_is_imported(arguments: tuple[str, ...], of_lines) -> None:
    code, said, _, heavy = of_lines[arguments]
    assert code == 0 and said and heavy == []


def test_sizes_that_nobody_builds_are_refused_before_anything_heavy_is_imported(of_lines) -> None:
    code, _, said, heavy = of_lines[HUGE]
    assert code == 2 and heavy == []
    assert "vocab = an integer beyond 2^64 is too large" in said


def test_help_shows_brackets_as_they_are_typed(of_lines) -> None:
    assert "TENSOR[i, j]" in " ".join(of_lines["show", "--help"][1].replace("│", " ").split())


def test_inspect_needs_no_torch(tmp_path) -> None:
    from constructions.checkpoints.artifact import save
    from constructions.checkpoints.built import build
    from constructions.selectivity.mqar import MQAR

    save(build(MQAR(kappa=2, vocab=3)), {}, tmp_path / "made")
    ((code, said, _, heavy),) = told([("inspect", str(tmp_path / "made"))])
    assert code == 0 and heavy == [] and "mqar" in said
