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
from pathlib import Path

from compiler.driver import compile
from constructions.selectivity.mqar import MQAR

SIZES = [(16, 512, "mamba", 5), (16, 512, "mamba2", 5), (1024, 50_257, "mamba", 120), (1024, 50_257, "mamba2", 120)]
"""kappa, vocab, mixer, and the seconds that are allowed on one core."""


def measured(kappa: int, vocab: int, arch: str, allowed: float) -> dict:
    """One line of the table, by its name, and what fell short."""
    name = f"mqar κ = {kappa:,}, V = {vocab:,}, {arch}"
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "made"
        construction = MQAR(kappa=kappa, vocab=vocab, arch=arch)
        compile(construction.circuit(), construction.target).save(directory)
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
    parts = {part: verdict[part]["proved"] for part in ("arithmetic", "meaning", "specials")}
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
