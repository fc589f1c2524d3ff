"""Results kept chunk by chunk in a directory, and their sum."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.fuzz.run import DTYPES, FORMS, TARGETS
from tests.trust.parts import Part

ROOT = Path(__file__).resolve().parents[2]
AGAIN = {
    "again": "failing programs",
    "again hostile": "damaged checkpoints that failed",
    "again mutation": "mutants that nobody noticed",
}


_ONE_BY_ONE = ("hostile", "mutation")


def commit() -> str:
    """The commit of the checkout, "unknown" outside of one; "+" where files differ from it."""
    found = _git("rev-parse", "--short=10", "HEAD")
    return f"{found}+" if found and _git("status", "--porcelain", "--untracked-files=no") else found or "unknown"


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return run.stdout.strip() if run.returncode == 0 else ""


def run(part: Part, store: Path, share: float, tell: Callable[[str], None]) -> None:
    """Run the chunks of a part that the store lacks. A chunk without a result is told and left for the next run."""
    folder = store / part.name
    folder.mkdir(parents=True, exist_ok=True)
    for start, count in part.chunks(share):
        path = folder / f"{start}-{count}.json"
        if _has(folder, start, count):
            continue
        began, at = time.monotonic(), commit()
        child = subprocess.run(
            [sys.executable, "-m", *part.command(start, count)], cwd=ROOT, capture_output=True, text=True
        )
        try:
            result = json.loads(child.stdout)
        except ValueError:
            tell(f"{part.name} {start}: no result (exit code {child.returncode}): {child.stderr.strip()[-500:]}")
            continue
        keep(path, {"commit": at, "cases": count, "seconds": round(time.monotonic() - began, 1), "result": result})
        tell(f"{part.name} {start}–{start + count - 1}: {len(result.get('failures', ()))} failures")


def _has(folder: Path, start: int, count: int) -> bool:
    """Whether a chunk that is kept has all of these cases, or several that follow each other (chunks were smaller)."""
    end = start
    for first, last, _ in kept(folder):
        if first == end or first < start == end < last:
            end = last
    return end >= start + count


def again(names: Iterable[str], store: Path, tell: Callable[[str], None]) -> None:
    """Run what failed of the random parts and of the mutants once more, with today's compiler; kept under AGAIN."""
    failed = [f for n in names for f in collect(store, [n]).get(n, {}).get("result", {}).get("failures", ())]
    programs = [f for f in failed if isinstance(f, dict)]
    of_files, mutants = (collect(store, [n]).get(n, {}).get("result", {}).get("failures", ()) for n in _ONE_BY_ONE)
    damaged = [number.group(1) for f in of_files if (number := re.match(r"case (\d+),", f))]
    if programs:
        _repeated("again", _programs(programs), store, tell)
    if damaged:
        _repeated("again hostile", ["tests.artifact.hostile", "--json", "--numbers", *damaged], store, tell)
    if mutants:
        _repeated("again mutation", ["benchmarks.mutation_guard", "--json", "--named", *mutants], store, tell)


def _repeated(name: str, command: list[str], store: Path, tell: Callable[[str], None]) -> None:
    at, child = commit(), subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    result = json.loads(child.stdout)
    cases = result.get("programs", result.get("cases"))
    (store / name).mkdir(parents=True, exist_ok=True)
    keep(store / name / "0-1.json", {"commit": at, "cases": cases, "seconds": 0, "result": result})
    tell(f"{name}: {len(result['failures'])} of {cases} still fail")


def _programs(programs: list[dict]) -> list[str]:
    """The command that runs failing programs where they failed."""
    targets, dtypes, forms = ({f["where"][i] for f in programs} for i in range(3))
    command = ["tests.fuzz", "--json", "--seeds", *sorted({str(f["seed"]) for f in programs})]
    for option, values, known in (
        ("--targets", targets, TARGETS), ("--dtypes", dtypes, DTYPES), ("--forms", forms, FORMS),
    ):  # fmt: skip
        chosen = sorted(values & set(known))
        command += [option, *chosen] if chosen else []
    return command


def keep(path: Path, content: dict) -> None:
    """All of the file or nothing."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, ensure_ascii=False) + "\n", "utf-8")
    partial.replace(path)


def kept(folder: Path) -> list[tuple[int, int, Path]]:
    """(first case, one past the last, file) of every chunk, the longer before the shorter."""
    found = []
    for path in folder.glob("*.json"):
        first, count = map(int, path.stem.split("-"))
        found.append((first, first + count, path))
    return sorted(found, key=lambda entry: (entry[0], -entry[1]))


def collect(store: Path, parts: Iterable[str]) -> dict[str, Any]:
    """The sum of the chunks of each part that has any: commits, cases, result."""
    found: dict[str, Any] = {}
    for name in parts:
        chunks, end = [], 0
        for first, last, path in kept(store / name):
            if first >= end:  # a smaller share may have left a part of a chunk
                chunks.append(json.loads(path.read_text("utf-8")))
                end = last
        if chunks:
            found[name] = {
                "commits": sorted({chunk["commit"] for chunk in chunks}),
                "cases": sum(chunk["cases"] for chunk in chunks),
                "result": added([chunk["result"] for chunk in chunks]),
            }
    return found


def added(results: list[Any]) -> Any:
    """Numbers added, lists joined, objects key by key; of anything else the first."""
    first = results[0]
    if isinstance(first, dict):
        keys = dict.fromkeys(key for result in results for key in result)
        return {key: added([result[key] for result in results if key in result]) for key in keys}
    if isinstance(first, list):
        return [entry for result in results for entry in result]
    if isinstance(first, int | float) and not isinstance(first, bool):
        return sum(results)
    return first
