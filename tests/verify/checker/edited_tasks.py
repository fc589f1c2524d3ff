"""Circuits whose answers are proved, edited one place at a time, compiled, and asked for their task again.

    python -m tests.verify.checker.edited_tasks COUNT [first case] [--json]

An edit changes a number, an operand, an operation or a name in circuit.json, or a parameter of the task that the
manifest names. The edited circuit is compiled and saved, so that its weights say what it says, and the checker is asked
for the task. Where it says that every answer is right, they must be: every short sequence is gone through by an
evaluator that shares no code with the compiler or the checker's proofs.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

from compiler.artifact.errors import CheckpointError
from compiler.artifact.files import MANIFEST
from compiler.artifact.manifest import sealed
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.data import DataError, from_data
from tests.verify.checker.edits import Edit, some
from tests.verify.checker.small_case import Case
from verify.checker.check import check

# name, parameters, length of the sequences that are gone through
SELECTED = [
    ("recall", {"keys": 2, "values": 2, "pairs": 3}, 7),
    ("recall", {"keys": 3, "values": 2, "pairs": 2, "distinct": True}, 5),
    ("unique-induction", {"vocab": 3, "length": 6}, 6),
    ("token-selection", {"size": 3, "values": 2, "length": 4}, 4),
    ("token-selection", {"keys": "plane", "size": 1, "values": 2, "length": 4}, 4),
    ("token-selection", {"keys": "signs", "size": 2, "values": 2, "length": 4}, 4),
    ("copy-ngram", {"n": 1, "vocab": 2, "length": 3}, 9),
    ("copy-ngram", {"n": 2, "vocab": 2, "length": 3}, 9),
]
TARGETS = ("mamba", "mamba2")


@cache
def tiny(i: int) -> Case:
    return Case(*SELECTED[i])


def edited(case: int) -> tuple[int, str, Edit]:
    """(which of SELECTED, the target, the edit) of a case; the same number is the same edit."""
    i, rest = case % len(SELECTED), case // len(SELECTED)
    (edit,) = some(tiny(i).circuit, tiny(i).claim, 1, seed=case)
    return i, TARGETS[rest % 2], edit


def verdict(case: int) -> tuple[str, str]:
    """(what came of it, what was done)."""
    i, target, (what, circuit, claim) = edited(case)
    told = f"{SELECTED[i][0]}, {target}: {what}"
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "edited"
        try:
            compile(from_data(circuit), target).save(directory)
        except (DataError, CompileError, CheckpointError):
            return "refused by the compiler", told
        manifest = json.loads((directory / MANIFEST).read_text("utf-8")) | {"task": claim}
        (directory / MANIFEST).write_text(json.dumps(sealed(manifest, directory)), "utf-8")
        found = check(directory)
    if not found.accepted or found.task is not None:
        return "rejected", told
    lead = tiny(i).lead(circuit, claim)
    return ("still right" if lead is not None and lead >= (found.margin or 0) > 0 else "WRONG"), told


def main(count: int, first: int) -> int:
    counts, failures = Counter(), []
    for case in range(first, first + count):
        name, told = verdict(case)
        counts[name] += 1
        if name == "WRONG":
            failures.append(f"case {case}, {told}: its answers are proved, and some are wrong")
    print(json.dumps({"edits": dict(sorted(counts.items())), "failures": failures}, ensure_ascii=False))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:3])))
