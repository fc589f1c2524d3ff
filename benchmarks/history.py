"""How costs grow: CPU seconds of one run over those of its smallest size, kept from commit to commit.

    python -m benchmarks.history [--only NAME …]     measure, and add a line to benchmarks/history.jsonl
    python -m benchmarks.history --draw               plot the last line into docs/scale.md and docs/figures/cost.png

Seconds of two machines, or of one that is busy, do not compare. Ratios within a run do: each size is measured several
times in turn with the others, and the best of each is taken. The exponent is the slope of log cost against log size.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Callable
from math import log
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from benchmarks.mixtures import mixed, mixture
from compiler.driver import compile
from compiler.runtime.fused import fused
from constructions.checkpoints.built import build
from constructions.selectivity.mqar import MQAR

ROOT = Path(__file__).parents[1]
LINES, PAGE, PICTURE = Path(__file__).with_name("history.jsonl"), ROOT / "docs" / "scale.md", "figures/cost.png"
BEGIN, END = "<!-- the last line of benchmarks/history.jsonl -->", "<!-- its end -->"
ROUNDS = 3
KAPPAS, VOCABS, LENGTHS, GRAPHS = (64, 128, 256), (1_024, 4_096, 16_384), (1_000, 10_000, 100_000), (60, 120, 240)


def _compiling(kappa: int, vocab: int) -> Callable[[], object]:
    return lambda: build(MQAR(kappa=kappa, vocab=vocab))


def _running(length: int) -> Callable[[], object]:
    stack = build(MQAR(kappa=4, vocab=8)).stack()
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, 13, (1, length)))

    def run() -> object:
        with torch.no_grad(), fused():
            return stack.before_head(tokens)

    return run


CURVES: dict[str, tuple[str, tuple[int, ...], float, Callable[[int], Callable[[], object]]]] = {
    "build recall": ("κ", KAPPAS, 2, lambda size: _compiling(size, 64)),
    "build recall of more values": ("V", VOCABS, 1, lambda size: _compiling(8, size)),
    "run a language model": ("length", LENGTHS, 1, _running),
    "compile a mixture": ("operations", GRAPHS, 1, lambda size: lambda: compile(mixture(mixed, size), "mamba")),
}
"""What is measured: against which size, at which sizes, the exponent that is expected, and what runs one.

The tensors of recall have κ² numbers, and a row for each of V values.
"""


def measure(name: str) -> dict[str, Any]:
    """One curve."""
    against, sizes, expected, made = CURVES[name]
    runs = [made(size) for size in sizes]
    best = np.min([[_seconds(run) for run in runs] for _ in range(ROUNDS)], axis=0)
    ratios = [round(float(seconds / best[0]), 3) for seconds in best]
    return {
        "name": name,
        "against": against,
        "sizes": list(sizes),
        "ratios": ratios,
        "exponent": round(exponent(list(sizes), ratios), 2),
        "expected": expected,
    }


def exponent(sizes: list[int], ratios: list[float]) -> float:
    """The least-squares slope of log ratio against log size."""
    return float(np.polyfit([log(size) for size in sizes], [log(ratio) for ratio in ratios], 1)[0])


def _seconds(run: Callable[[], object]) -> float:
    start = process_time()
    run()
    return process_time() - start


def last(lines: Path = LINES) -> dict[str, Any]:
    """The newest line."""
    return json.loads(lines.read_text("utf-8").splitlines()[-1])


def table(line: dict[str, Any]) -> str:
    """The table of the page."""
    rows = [
        f"Measured at {line['commit']}.",
        "",
        "| what | against | sizes | cost over the first | exponent | expected |",
    ]
    rows.append("|---|---|---|---|---|---|")
    for curve in line["curves"]:
        sizes, ratios = (", ".join(f"{value:,}" for value in curve[key]) for key in ("sizes", "ratios"))
        ends = (curve["against"], sizes, ratios, curve["exponent"], f"at most {curve['expected']}")
        rows.append(f"| {curve['name']} | " + " | ".join(map(str, ends)) + " |")
    return "\n".join(rows)


def shown(page: str) -> str:
    """The table that a page shows."""
    return page.split(BEGIN)[1].split(END)[0].strip()


def picture(line: dict[str, Any]) -> Figure:
    """Each curve as measured, and a line of the expected exponent."""
    figure = Figure(figsize=(9, 2.6), layout="constrained")
    for axes, curve in zip(figure.subplots(1, len(line["curves"])), line["curves"], strict=True):
        sizes = np.array(curve["sizes"], dtype=float)
        axes.loglog(sizes, curve["ratios"], "o-", label=f"measured, {curve['exponent']:g}")
        axes.loglog(sizes, (sizes / sizes[0]) ** curve["expected"], "--", label=f"expected, {curve['expected']:g}")
        axes.set_title(curve["name"], fontsize=8)
        axes.set_xlabel(curve["against"], fontsize=8)
        axes.tick_params(labelsize=7, which="both")
        axes.minorticks_off()
        axes.set_xticks(sizes, [f"{int(size):,}" for size in sizes])
        axes.legend(fontsize=7)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CURVES, default=list(CURVES), help="print these, keep nothing")
    parser.add_argument("--draw", action="store_true")
    options = parser.parse_args()
    if options.draw:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{table(last())}\n{END}{rest.partition(END)[2]}", "utf-8")
        picture(last()).savefig(PAGE.parent / PICTURE, dpi=150, metadata={"Software": None})
        return
    curves = []
    for name in options.only:
        curves.append(measure(name))
        print(json.dumps(curves[-1], ensure_ascii=False), flush=True)
    if options.only == list(CURVES):
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        line = {"commit": commit.stdout.strip() or "no commit", "curves": curves}
        with LINES.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
