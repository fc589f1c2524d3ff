"""Whether a change of the compiler leaves every weight as it was.

    python -m benchmarks.same_bytes record FILE [--every N]
    python -m benchmarks.same_bytes compare FILE [--every N]

Each small construction and test circuit is compiled for its targets in float32 and bfloat16, and packaged as a language
model. `record` writes what became of each: a hash of config and model.safetensors, or the refusal. `compare` compiles
all again, names the records that differ, and says how many do; exit code 1 if any does. --every N takes every Nth.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.progress import track
from safetensors.torch import save

from compiler.artifact.package import language_model
from compiler.driver import compile
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from tests.circuits import CASES
from tests.verify.checker.evidence import jobs, title

DTYPES = ("float32", "bfloat16")
OTHERS = ("s4d", "mamba-delta-t")  # targets of which the checker has no numbered checkpoints


def grid() -> dict[str, tuple[Callable[[], Circuit], str, str]]:
    """(circuit, target, dtype) by name."""
    found = {title(job): job[1:] for job in jobs() if job[3] in DTYPES}
    for case in CASES:
        for target in OTHERS:
            if target in case.targets:
                found |= {f"{case.name}-{target}-{d}": (case.build, target, d) for d in DTYPES}
    return found


def became(build: Callable[[], Circuit], target: str, dtype: str) -> str:
    """The hash of what is saved, or the refusal."""
    try:
        model = language_model(compile(build(), target, dtype))
    except (CompileError, ValueError, TypeError) as refusal:
        return f"refused: {refusal}"
    weights = save({name: tensor.contiguous() for name, tensor in sorted(model.tensors.items())}, {"format": "pt"})
    config = json.dumps(model.config, sort_keys=True).encode()
    return hashlib.sha256(config + weights).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_bytes", description=__doc__)
    parser.add_argument("action", choices=("record", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--every", type=int, default=1, help="every Nth only [default: all]")
    options = parser.parse_args()
    before = json.loads(options.file.read_text("utf-8")) if options.action == "compare" else {}
    chosen = list(grid().items())[:: options.every]
    started = time.process_time()
    now = {name: became(*job) for name, job in track(chosen, "compiling", disable=not sys.stdout.isatty())}
    print(f"{len(now)} records, {time.process_time() - started:.0f} s of CPU")
    if options.action == "record":
        options.file.write_text(json.dumps(now, indent=1) + "\n", "utf-8")
        return 0
    differ = [name for name, found in now.items() if before.get(name) != found]
    for name in differ:
        print(f"{name}: {before.get(name, 'not recorded')[:80]} → {now[name][:80]}")
    print(f"{len(differ)} of {len(now)} records differ")
    return 1 if differ else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
