"""A command in a process of its own, and at which commit it ran. Workers import this: it imports nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def commit() -> str:
    """The commit of the checkout, "unknown" outside of one; "+" where files differ from it, this page apart."""
    found = _git("rev-parse", "--short=10", "HEAD")
    changed = found and _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/trust.*")
    return f"{found}+" if changed else found or "unknown"


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else ""


def ran(command: list[str]) -> dict[str, Any]:
    """What a process gives, and at which commit; the result is None, and why, where it gave none."""
    at, child = commit(), finished(command)
    try:
        result, why = json.loads(child.stdout), ""
    except ValueError:
        result, why = None, f"exit code {child.returncode}: {child.stderr.strip()[-500:]}"
    return {"commit": at, "result": result} | ({"why": why} if why else {})


def finished(command: list[str]) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
