"""Compile time and memory of MQAR against κ and V, and verification speed.

Each row runs in a process of its own, so that its peak memory is its own. Memory is the
growth of the resident set over the imports, as a ratio to the size of the checkpoint's
weights. Run with `python benchmarks/compile.py [--json]`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

SIZES = [(16, 512), (64, 512), (256, 4096), (1024, 512), (1024, 50257)]


def measure(kappa: int, vocab: int) -> dict:
    """One row: seconds to compile and to package, peak memory, and tokens verified per second."""
    from compiler import compile
    from compiler.artifact.model import Stack
    from compiler.artifact.package import language_model
    from compiler.runtime import mamba_classes
    from constructions.selectivity.mqar import MQAR
    from verify.check import check

    mamba_classes()  # importing mamba_ssm is not compiling
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    construction = MQAR(kappa=kappa, vocab=vocab)
    start = time.perf_counter()
    compiled = compile(construction.circuit(), construction.target)
    compiled_at = time.perf_counter()
    model = language_model(compiled)
    packaged_at = time.perf_counter()
    weights = sum(t.numel() * t.element_size() for t in model.tensors.values())
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    row = {
        "kappa": kappa,
        "vocab": vocab,
        "compile_s": compiled_at - start,
        "package_s": packaged_at - compiled_at,
        "weights_MB": weights / 1e6,
        "peak_over_weights": peak / weights,
    }
    if kappa <= 64:
        row["tokens_per_s"] = _verification_speed(
            construction, compiled, Stack.from_language_model(model.config, model.tensors), check
        )
    return row


def _verification_speed(construction, compiled, stack, check) -> float:
    import torch

    batches = list(construction.tasks()[0].random(256, seed=0, batch_size=64))

    def scores(tokens):
        with torch.no_grad():
            return stack(torch.from_numpy(tokens))[..., : compiled.source.alphabet.size].numpy()

    start = time.perf_counter()
    result = check(scores, compiled.interpret, batches)
    if not result.passed:
        raise SystemExit(f"verification failed: {result}")
    return sum(batch.tokens.size for batch in batches) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object per row")
    parser.add_argument("--row", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.row:
        print(json.dumps(measure(*arguments.row)))
        return
    rows = []
    for kappa, vocab in SIZES:
        command = [sys.executable, __file__, "--row", str(kappa), str(vocab)]
        rows.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    if arguments.json:
        for row in rows:
            print(json.dumps(row))
        return
    table = Table("κ", "V", "compile", "package", "weights", "peak / weights", "verified tokens/s")
    for row in rows:
        speed = f"{row['tokens_per_s']:,.0f}" if "tokens_per_s" in row else ""
        table.add_row(
            str(row["kappa"]), str(row["vocab"]), f"{row['compile_s']:.2f} s", f"{row['package_s']:.2f} s",
            f"{row['weights_MB']:.1f} MB", f"{row['peak_over_weights']:.2f}", speed,
        )  # fmt: skip
    Console(width=80).print(table)


if __name__ == "__main__":
    main()
