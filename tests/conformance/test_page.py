"""docs/conformance.md: its program runs as printed, and its lists are those of the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from conformance.cases import cases
from conformance.faults.catalogue import faults
from conformance.faults.runtime import MODEL_BUGS
from conformance.loader import save
from conformance.models.modes import MODE_STAGES
from conformance.runtimes import NAMES
from conformance.stages import STAGES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text("utf-8")
SCAN = "from compiler.runtime.selective_scan import _chunked, selective_scan\n"
BROKEN = (
    SCAN + "right = selective_scan\ndef selective_scan(u, delta, A, *m, **k): return right(u, delta, 2 * A, *m, **k)\n"
)


def test_the_ten_lines(tmp_path) -> None:
    program = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]
    assert len([line for line in program.splitlines() if line.strip()]) <= 10
    (tmp_path / "vectors").mkdir()
    save(cases("selective_scan"), tmp_path / "vectors" / "selective_scan.safetensors")
    (tmp_path / "test_mine.py").write_text(program)
    (tmp_path / "mykernels.py").write_text(SCAN)
    assert _pytest(tmp_path).returncode == 0
    (tmp_path / "mykernels.py").write_text(BROKEN.replace("2 * A", "0 * A"))
    broken = _pytest(tmp_path)
    assert broken.returncode == 1 and "exp(ΔA) = 0" in broken.stdout


def _pytest(place: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_mine.py"]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{place}"}
    return subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)


def test_its_table_has_every_bug_at_its_stage() -> None:
    rows = re.findall(r"^\| (\S+) \| (.*?) \| (.*?) \| (?:yes|–) \|", PAGE, re.MULTILINE)
    expected = [(f.op, f.bug, f.stage) for f in faults()] + [("model", bug, mode) for bug, mode in MODEL_BUGS.items()]
    assert rows == expected, "run `python -m conformance.faults.table docs/conformance.md`"


def test_it_tells_every_stage_mode_and_runtime() -> None:
    for stage, asks in STAGES.items():
        assert f"| {stage} | {asks} |" in PAGE
    for mode, asks in MODE_STAGES.items():
        assert f"| {mode} | {asks} |" in PAGE
    for name in NAMES:
        assert f"`{name}`" in PAGE
