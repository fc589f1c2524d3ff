"""How long the checker takes for the sizes that the project promises: python -m tests.trust.times count first [--json]

Processor time of `python -m verify.checker DIR`, start of the program and reading of the files included. It is stopped
after four times what is allowed.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from compiler.driver import compile
from constructions.automata.automaton import Automaton, table_json
from constructions.checkpoints import artifact
from constructions.checkpoints.built import build
from constructions.selectivity.mqar import MQAR
from tests.automata.groups import ALL_LETTERS, whether_one

PARTS = ("arithmetic", "meaning", "specials")


def recall(kappa: int, vocab: int, arch: str, directory: Path) -> None:
    construction = MQAR(kappa=kappa, vocab=vocab, arch=arch)
    compile(construction.circuit(), construction.target).save(directory)


def group(name: str, directory: Path) -> None:
    """Whether the product of all letters so far is 1, each element a letter, on Gated DeltaNet."""
    table = table_json(whether_one(ALL_LETTERS[name][0]))
    artifact.save(build(Automaton(table=table, arch="gated-deltanet")), {}, directory)


SIZES = [
    *(
        (f"mqar κ = {kappa:,}, V = {vocab:,}, {arch}", partial(recall, kappa, vocab, arch), PARTS, allowed)
        for kappa, vocab, allowed in ((16, 512, 5), (1024, 50_257, 120))
        for arch in ("mamba", "mamba2")
    ),
    *(
        (f"{name}, every element a letter, gated-deltanet", partial(group, name), (*PARTS, "task"), allowed)
        for name, allowed in (("A_5", 120), ("S_5", 240))
    ),
]
"""What is proved: a name, what writes it, which parts, and the seconds that are allowed on one core."""


def measured(name: str, write: Callable[[Path], None], needed: Sequence[str], allowed: float) -> dict:
    """One line of the table, and what fell short."""
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "made"
        write(directory)
        before, most = _spent(), 4 * int(allowed)
        run = subprocess.run(
            [sys.executable, "-m", "verify.checker", str(directory), "--json"],
            capture_output=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)),
        )
        seconds = _spent() - before
    if run.returncode not in (0, 1):
        entry = {"seconds": round(seconds, 1), "allowed": allowed, "proved": "stopped"}
        return {"times": {name: entry}, "failures": [f"{name}: stopped after {most} s, and {allowed} s are allowed"]}
    verdict = json.loads(run.stdout)
    parts = {part: verdict[part]["proved"] for part in needed}
    failures = [f"{name}: {part} is not proved" for part, proved in parts.items() if not proved]
    if seconds > allowed:
        failures.append(f"{name}: {seconds:.0f} s, and {allowed} s are allowed")
    entry = {"seconds": round(seconds, 1), "allowed": allowed, "proved": " ".join(p for p in parts if parts[p])}
    return {"times": {name: entry}, "failures": failures}


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(count: int, first: int) -> int:
    found: dict = {"times": {}, "failures": []}
    for size in SIZES[first : first + count]:
        one = measured(*size)
        found = {"times": found["times"] | one["times"], "failures": found["failures"] + one["failures"]}
    print(json.dumps(found, ensure_ascii=False))
    return 1 if found["failures"] else 0


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:3])))
