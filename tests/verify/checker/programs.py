"""Of how many random programs the checker proves the weights: python -m tests.verify.checker.programs [count] [first]

Each is compiled for one mixer, as the language model of its first letters' scores. What is proved gets faults and
claims, as `evidence` does for every construction; the others are named with the reason. Programs that the language
refuses are left out, and so are those over real numbers, of which an error is proved. No faults where rules decide:
their weight is free. Exit code 1 if anything was unsound or missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from compiler.language.circuit import Circuit
from tests.fuzz.generate import generate
from tests.fuzz.program import Program
from tests.fuzz.run import Hang, at_most, refusal
from tests.verify.checker.evidence import TARGETS, add, examine, title

FAULTS = 4  # of each program
SECONDS = 120  # for a program with all that is injected
FIRST = 7_000_000


def examined(seed: int, root: Path) -> dict:
    """What became of the program of one seed."""
    program, target = generate(seed), TARGETS[seed % len(TARGETS)]
    circuit = _written(program)
    if circuit is None or program.approximate:
        return {}
    job = (str(seed), lambda: circuit, target, "float32")
    try:
        with at_most(SECONDS):
            return examine(job, root, 0 if program.decides else FAULTS)
    except Hang:
        return {"checkpoints": {"not proved": 1}, "not proved": {title(job): f"more than {SECONDS} s"}}


def _written(program: Program) -> Circuit | None:
    try:
        return program.circuit()
    except Exception as error:
        if refusal(error) is None:
            raise
        return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=100, help="how many seeds")
    parser.add_argument("first", type=int, nargs="?", default=FIRST, help="the first of them")
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    options = parser.parse_args()
    total: dict = {"failures": []}
    with tempfile.TemporaryDirectory() as root:
        for seed in range(options.first, options.first + options.count):
            found = examined(seed, Path(root))
            add(total, found)
            if found and not options.json:
                print(seed, json.dumps(found), flush=True)
    print(json.dumps(total, ensure_ascii=False))
    return 1 if total["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
