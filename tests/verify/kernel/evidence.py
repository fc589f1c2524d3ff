"""The kernel on the checker's small checkpoints: python -m tests.verify.kernel.evidence DIRECTORY [--every N] [--page]

DIRECTORY holds the checkpoints, which are compiled once, and results.json with what became of each, and at which commit
of this repository: a run goes on where the last one ended, and --again finds some results anew. Each is searched and
replayed for the task that its construction states, in SECONDS processor seconds, and where that is not proved for
arithmetic and meaning alone. --page writes the tables of the results into docs/proofs.md, and runs nothing.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from compiler.errors import CompileError
from constructions.registry import CONSTRUCTIONS
from tests.fuzz.run import Hang, at_most
from tests.verify.checker.checkpoints import write
from tests.verify.checker.evidence import DTYPES, SMALL, Job, jobs, title
from tests.verify.kernel.page import put, said
from tests.verify.kernel.small import ROOT
from verify.kernel.claims import Refused
from verify.kernel.files import read
from verify.kernel.floats import Unproved
from verify.prover.prove import search_of

SECONDS = 120
WHOLE, NO_TASK = "proved with its task", "proved; no task is stated"
MEANING, LATE, REFUSED = "arithmetic and meaning proved, not the task", "out of time", "refused"
NONE = "no checkpoint"
OUTCOMES = (WHOLE, NO_TASK, MEANING, REFUSED, LATE)
COLUMNS = {"Mamba": "mamba", "Mamba-2": "mamba2", "S4D": "s4d"}
_TRIED = [str(ROOT / "verify" / name) for name in ("kernel", "prover")]
TABLE = ("| what came of it |", "\n\n<!-- end of the evidence -->")
PAGE, MARK = "proofs.md", "<!-- table: tests/verify/kernel/evidence.py -->"


def made(job: Job, directory: Path) -> Path | None:
    """The checkpoint, compiled once; None where the compiler refuses it, or the construction is for one mixer only."""
    place, refused = directory / title(job), directory / f"{title(job)}.refused"
    if refused.exists() or place.exists():
        return None if refused.exists() else place
    try:
        return write(place, job[1](), *job[2:], task=_task(job))
    except CompileError as reason:
        refused.write_text(str(reason))
    except TypeError as reason:
        if "arch" not in str(reason):
            raise
        refused.write_text(str(reason))
    return None


def _task(job: Job) -> dict[str, Any] | None:
    """What the construction states that is asked; None of circuits."""
    name, _, number = job[0].rpartition("-")
    by_value = number == "value"
    name, number = (name.removesuffix("-by"), "0") if by_value else (name, number)
    if name not in SMALL or not number.isdigit():
        return None
    dtype = job[3] if by_value else "float32"
    return CONSTRUCTIONS[name](**SMALL[name][int(number)], arch=job[2], dtype=dtype).asks()


def outcome(directory: Path, seconds: float = SECONDS) -> dict[str, Any]:
    """What the kernel proves of a checkpoint in that time: {"is", "why", "seconds"}."""
    begun = time.process_time()
    found: dict[str, Any] = {"is": LATE, "why": ""}
    try:
        with at_most(seconds):
            found = _proved(directory)
    except Hang:
        pass
    return found | {"seconds": round(time.process_time() - begun, 1)}


def _proved(directory: Path) -> dict[str, Any]:
    try:
        checkpoint = read(directory)
    except Unproved as reason:
        return {"is": REFUSED, "why": str(reason)}
    why = ""
    for asked in [checkpoint.task, None] if checkpoint.task else [None]:
        try:
            found = replace(checkpoint, task=asked)
            search_of(found)  # what it returns was replayed
            return {"is": WHOLE if asked else MEANING if why else NO_TASK, "why": why}
        except (Unproved, Refused) as reason:
            why = str(reason)
    return {"is": REFUSED, "why": why}


def grouped(why: str) -> str:
    """A reason without its place, its names and its numbers."""
    for words, reason in REASONS.items():
        if words in why:
            return reason.format(*re.findall(r"'([A-Z]\w+)'", why)[:1])
    return re.sub(r"\d[\d.,e+^]*", "N", why)


REASONS = {
    "no rule of the kernel for": "no rule for the operation `{}`",
    "no rule for the task": "no rule for the task",
    "recall of sums only": "no rule for the task",
    "is not shown to be the circuit's": "the scores are not shown to be the circuit's",
    "weight": "what the last rule over scores adds is not shown to exceed every lead",
    "columns of several decays": "a channel has columns of several decays",
    "Σ C·B": "what the chunked scan adds up is not shown to fit the format",
    "adds exactly": "what a state adds up is not shown to fit the format",
    "gated norm": "a norm's ballast is not shown to hide the other lanes",
    "norm": "a norm's ballast is not shown to hide the other lanes",
}


def table(results: dict[str, dict]) -> str:
    """What came of the checkpoints, by mixer and format, and the reasons of what is not proved whole."""
    kinds = [(name, target, dtype) for name, target in COLUMNS.items() for dtype in DTYPES if target != "s4d"]
    found = Counter((r["is"], *key.rsplit("-", 2)[1:]) for key, r in results.items())
    heads = [f"{name}, {dtype}" for name, _, dtype in kinds] + ["S4D, all three"]
    lines = [f"| what came of it | {' | '.join(heads)} | all |", "| --- |" + " ---: |" * (len(heads) + 1)]
    for outcome in OUTCOMES:
        counts = [found[outcome, target, dtype] for _, target, dtype in kinds]
        counts.append(sum(found[outcome, "s4d", dtype] for dtype in DTYPES))
        lines.append(f"| {outcome} | {' | '.join(map(str, counts))} | {sum(counts)} |")
    reasons = Counter(grouped(r["why"]) for r in results.values() if r.get("why"))
    rows = [f"| {reason} | {count} |" for reason, count in reasons.most_common()]
    tried = Counter(r["at"] for r in results.values() if "at" in r).most_common()
    lines += (
        ["", f"By kernel and search of commit {', '.join(f'{at} ({count})' for at, count in tried)}."] if tried else []
    )
    return "\n".join([*lines, "", MARK, "| reason | checkpoints |", "| --- | ---: |", *rows])


def run(directory: Path, every: int, seconds: float, only: str = "", again: str = "") -> None:
    """Every N-th checkpoint whose name holds `only` and that has no result yet, or one whose outcome and reason hold
    `again`.
    """
    directory.mkdir(exist_ok=True)
    file = directory / "results.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for job in jobs()[::every]:
        known = results.get(title(job))
        if only not in title(job) or known is not None and not (again and known["is"] != NONE and _said(known, again)):
            continue
        place = made(job, directory)
        results[title(job)] = {"is": NONE} if place is None else outcome(place, seconds) | {"at": _commit()}
        file.write_text(json.dumps(results, indent=1, ensure_ascii=False))
        print(title(job), results[title(job)], flush=True)


def _said(result: dict[str, Any], words: str) -> bool:
    return words in f"{result['is']}: {result.get('why', '')}"


def _commit() -> str:
    """The last commit of kernel and search in this checkout, with + where their files differ from it."""
    git = lambda *words: (
        subprocess.run(["git", *words, "--", *_TRIED], capture_output=True, text=True, check=True).stdout
    )
    return git("log", "-1", "--format=%h", "--abbrev=8").strip() + "+" * bool(git("status", "--porcelain"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--every", type=int, default=1, help="one checkpoint of so many")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", default="", help="checkpoints whose name holds this")
    parser.add_argument("--again", default="", metavar="WORDS", help="find anew what has such an outcome or reason")
    parser.add_argument("--page", action="store_true", help=f"write the tables of the results into docs/{PAGE}")
    options = parser.parse_args()
    if options.page:
        put(said(*TABLE), table(json.loads((options.directory / "results.json").read_text())))
        return
    run(options.directory, options.every, options.seconds, options.only, options.again)


if __name__ == "__main__":
    main()
