"""A kernel that ends the process: no CI service takes that for a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fresh import fresh

ENDS = """import os
def scan(u, delta, A, B, C, D=None, z=None, delta_bias=None, delta_softplus=False):
    {how}
"""
CHILD = "pid = os.fork(); os._exit(0) if pid == 0 else os.waitpid(pid, 0); os._exit(3)"


@pytest.mark.parametrize(
    ("how", "code"), [("os._exit(0)", 1), ("os._exit(7)", 7), (CHILD, 3)], ids=["0", "7", "a child"]
)
def test_a_kernel_that_ends_the_process_is_not_right(how: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(ENDS.format(how=how))
    done = fresh("-m", "constructions", "conformance", "--kernel", "mine.py:scan", cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert ("there is no verdict" in done.stderr) == (how == "os._exit(0)")
