"""CPU seconds and peak memory of whole commands at natural sizes, each run to its end in a process of its own.

    python -m benchmarks.natural_sizes [--only NAME …] [--write]

--write: put what was measured into docs/scale.json and the table of docs/scale.md; rows that were not run stay. Memory
is the largest resident set, everything included, beside the bytes of the checkpoint. Bytecode is there, as behind pip.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
DATA, PAGE = ROOT / "docs" / "scale.json", ROOT / "docs" / "scale.md"
BEGIN, END = "<!-- the rows of docs/scale.json -->", "<!-- their end -->"
LARGE = "mqar --kappa 1024 --vocab 50257"
README = "mqar --kappa {} --vocab 256 --layout benchmark --write first"
COMMANDS = {
    "large, default": LARGE,
    "large, bare build": f"{LARGE} --verify none --no-certify",
    "README's benchmark, build": f"{README.format(255)} --verify none --no-certify",
}
PROOFS = {
    "README's benchmark, proof": README.format(255),
    "the same, 128 keys": README.format(128),
    "the same, 64 keys": README.format(64),
}
"""Of a proof the command's checkpoint is made first, and the checker on it is measured."""
COMMANDS |= PROOFS


def measure(name: str) -> dict[str, Any]:
    """One row; SystemExit where the command does not end well."""
    options = COMMANDS[name].split()
    proof = name in PROOFS
    with TemporaryDirectory() as folder:
        out = Path(folder) / "checkpoint"
        build = [sys.executable, "-m", "constructions", *options, "--out", str(out)]
        build += ["--verify", "none", "--no-certify"] if proof else []
        command = [sys.executable, "-m", "verify.checker", str(out)] if proof else build
        if proof:
            _run(build)
        cpu, peak = _run(command)
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    said = f"python -m verify.checker DIR of construct {COMMANDS[name]}" if proof else f"construct {COMMANDS[name]}"
    return {
        "name": name,
        "command": said,
        "cpu_s": round(cpu, 1),
        "peak_MB": round(peak),
        "checkpoint_MB": round(size / 1e6),
    }


def _run(command: list[str]) -> tuple[float, float]:
    """(CPU seconds, peak MB) of a process and what it started; SystemExit where it does not end well."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=ROOT, env=_as_installed())
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


@cache
def _as_installed() -> dict[str, str]:
    """The environment with bytecode, which an installation has written: it is compiled once before any measurement."""
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    rooms = [str(ROOT / name) for name in ("compiler", "constructions", "verify")]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *rooms], check=True, env=compiled)
    return compiled


def table(rows: list[dict[str, Any]]) -> str:
    """The table of the page."""
    lines = ["| what | command | CPU s | peak memory | checkpoint |", "|---|---|---|---|---|"]
    for row in rows:
        cells = (
            row["name"],
            f"`{row['command']}`",
            row["cpu_s"],
            f"{row['peak_MB']:,} MB",
            f"{row['checkpoint_MB']:,} MB",
        )
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def shown(page: str) -> str:
    """The table that a page shows."""
    return page.split(BEGIN)[1].split(END)[0].strip()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.natural_sizes", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    held = {row["name"]: row for row in json.loads(DATA.read_text("utf-8"))} if DATA.exists() else {}
    for name in options.only:
        held[name] = measure(name)
        print(json.dumps(held[name], ensure_ascii=False), flush=True)
        if options.write:
            rows = [held[name] for name in COMMANDS if name in held]
            DATA.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
            page = PAGE.read_text("utf-8")
            PAGE.write_text(page.replace(shown(page), table(rows)), "utf-8")


if __name__ == "__main__":
    main()
