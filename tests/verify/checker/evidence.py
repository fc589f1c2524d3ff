"""The checker against thousands of mutants: python -m tests.verify.checker.evidence COUNT [SEED]

Compiles every circuit and construction at small sizes for both mixers and all dtypes, and then

- mutates the weights: what the checker accepts must run bit for bit as exact arithmetic says (`fuzz`);
- plants one change: none that changes a logit may be accepted (`plants`).

COUNT mutants and COUNT plants, shared out evenly. Prints one JSON object; exit code 1 if anything was unsound or
missed.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from compiler.errors import CompileError
from constructions.registry import CONSTRUCTIONS
from tests.circuits import CASES
from tests.verify.checker.checkpoints import write
from tests.verify.checker.fuzz import fuzz
from tests.verify.checker.plants import plant
from verify.checker.check import check

DTYPES = ("float32", "bfloat16", "float16")
SMALL = {
    "mqar": [{"kappa": 3, "vocab": 6, "write": w} for w in ("sum", "first", "last")],
    "induction-heads": [{"vocab": 5, "codes": codes} for codes in (False, True)],
    "keep-nth": [{"n": 3, "vocab": 8}],
    "absolute-time": [{"horizon": 6}],
    "count-in-row": [{"largest": 5}],
}


def checkpoints(root: Path) -> Iterator[Path]:
    """Every checkpoint that compiles, written below root."""
    jobs = [(c.name, c.build, target) for c in CASES for target in ("mamba", "mamba2") if target in c.targets]
    for name, sizes in SMALL.items():
        for i, params in enumerate(sizes):
            for target in ("mamba", "mamba2"):
                jobs.append(
                    (f"{name}-{i}", lambda n=name, p=params, a=target: CONSTRUCTIONS[n](**p, arch=a).circuit(), target)
                )
    for name, build, target in jobs:
        for dtype in DTYPES:
            try:
                yield write(root / f"{name}-{target}-{dtype}", build(), target, dtype)
            except CompileError:
                continue


def main() -> None:
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    rng, verdicts, fuzzed, planted, problems = random.Random(seed), Counter(), Counter(), Counter(), []
    with tempfile.TemporaryDirectory() as root:
        directories = list(checkpoints(Path(root)))
        for directory in directories:
            verdict = check(directory)
            for part in ("arithmetic", "meaning", "specials"):
                verdicts[part] += getattr(verdict, part) is None
            if verdict.arithmetic:
                problems.append(f"{directory.name} is rejected: {verdict.arithmetic}")
        share = max(1, count // len(directories))
        for directory in directories:
            tally, found = fuzz(directory, share, rng)
            fuzzed, problems = fuzzed + tally, problems + found
            tally, missed = plant(directory, share, rng)
            planted, problems = planted + tally, problems + missed
    print(json.dumps({"checkpoints": len(directories), "proved": verdicts, "mutants": fuzzed, "plants": planted}))
    for problem in problems[:20]:
        print(problem[:400], file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
