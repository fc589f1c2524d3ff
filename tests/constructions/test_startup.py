"""What the command imports: nothing that its answer does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "mamba_ssm", "triton", "sympy", "matplotlib", "networkx", "safetensors")
CODE = """
import sys
from constructions.__main__ import main
sys.argv = ["construct", *sys.argv[1:]]
try:
    main()
finally:
    print([name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("--help",), ("mqar", "--help"), ("--version",)])
def test_nothing_heavy_is_imported(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(heavy=HEAVY), *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr.splitlines()[-1] == "[]"
    assert done.stdout


def test_sizes_that_nobody_builds_are_refused_before_anything_heavy_is_imported() -> None:
    code, huge = CODE.format(heavy=HEAVY), str(10**20)
    done = subprocess.run([sys.executable, "-c", code, "mqar", "--vocab", huge], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.splitlines()[-1] == "[]"
    assert "vocab = an integer beyond 2^64 is too large" in done.stderr


def test_help_shows_brackets_as_they_are_typed() -> None:
    done = subprocess.run([sys.executable, "-m", "constructions", "show", "--help"], capture_output=True, text=True)
    assert "TENSOR[i, j]" in " ".join(done.stdout.replace("│", " ").split())


def test_inspect_needs_no_torch(tmp_path) -> None:
    from constructions.checkpoints.artifact import save
    from constructions.checkpoints.built import build
    from constructions.selectivity.mqar import MQAR

    save(build(MQAR(kappa=2, vocab=3)), {}, tmp_path / "made")
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(heavy=HEAVY), "inspect", str(tmp_path / "made")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "[]"
    assert "mqar" in done.stdout
