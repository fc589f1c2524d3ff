"""Mutants that once survived the suite, by name: each must be killed by the tests named with it.

    python -m benchmarks.named_mutants [--json]

An attack on an early version changed 76 places, and nobody noticed 19 of them: guards of the block IR, the counter that
is reset everywhere, constants of the sensitivity and of error bounds, the default key code. These are they, as far as
what they guard is still there. Exit code 1 where one survives.
"""

from __future__ import annotations

import json
import sys

from benchmarks.mutation import ROOT, Mutant, preload, survives

BLOCK, LEVELS = "compiler/ir/block.py", "compiler/exactness/levels.py"
ERRORS, SENSITIVITY = "compiler/exactness/error_bound.py", "verify/sensitivity.py"
GUARDS, SENSES = ["tests/ir/test_guards.py"], ["tests/verify/test_sensitivity.py"]
BOUNDS = ["tests/exactness/test_error_bound.py"]
COUNTERS = ["tests/gadgets/test_counter.py", "tests/passes/test_conditions.py"]
SECONDS = 600

NAMED: list[tuple[str, str, str, list[str]]] = [
    (LEVELS, "SAFE_NEGATIVE = -104.0", "SAFE_NEGATIVE = -60.0", GUARDS),
    (LEVELS, "SAFE_POSITIVE = 20.1", "SAFE_POSITIVE = 12.0", GUARDS),
    (LEVELS, "KEPT = 2.0**-26", "KEPT = 2.0**-12", GUARDS),
    (LEVELS, "RESET = 2.0**50", "RESET = 2.0**40", ["tests/exactness/test_levels.py"]),
    (LEVELS, "FAINT_LOG = -28.0", "FAINT_LOG = -20.0", ["tests/exactness/test_levels.py"]),
    (BLOCK, "if not zero_is_safe:", "if False:", ["tests/passes/test_conditions.py"]),
    ("compiler/gadgets/counter.py", "Stream(ops.Relu(), (when - reset,))", "Stream(ops.Relu(), (when,))", COUNTERS),
    ("compiler/gadgets/counter.py", "np.full(reset.width, COUNT)", "np.full(reset.width, 2 * COUNT)", COUNTERS),
    ("compiler/gadgets/counter.py", "if (ONE, 0) in fitter.form(", "if not fitter.form(", COUNTERS),
    (ERRORS, "SILU_OFF = 0.2785", "SILU_OFF = 0.1", BOUNDS),
    (ERRORS, "reach**4 / (48 * scale**2)", "reach**4 / (480 * scale**2)", BOUNDS),
    (ERRORS, "off = 1.1 * error", "off = 0.1 * error", BOUNDS),
    (ERRORS, "size_a * error_b + size_b * error_a +", "size_a * error_b +", BOUNDS),
    ("constructions/selectivity/mqar.py", "self.key_code or 8 * max", "self.key_code or 7 * max",
     ["tests/constructions/test_mqar.py"]),
    (SENSITIVITY, "self.measured - self.predicted", "self.measured - self.measured", SENSES),
    (SENSITIVITY, ".flip(0), self.predicted", ", self.predicted", SENSES),
    (SENSITIVITY, "(taps - 1, 0)", "(taps - 2, 1)", SENSES),
    (SENSITIVITY, "scan.rate * torch.cumsum(steps, 0)", "2 * scan.rate * torch.cumsum(steps, 0)", SENSES),
]  # fmt: skip


def mutant(file: str, before: str, after: str) -> Mutant:
    """The one place of a file that reads so; ValueError where there are none or several."""
    data = (ROOT / file).read_bytes()
    found = before.encode()
    if data.count(found) != 1:
        raise ValueError(f"{file} has {before!r} {data.count(found)} times, and once is needed")
    start = data.index(found)
    return Mutant(file, data[:start].count(b"\n") + 1, start, start + len(found), before, after)


def main() -> int:
    chosen = [(mutant(*entry[:3]), entry[3]) for entry in NAMED]
    preload()
    records, survivors = [], []
    for found, tests in chosen:
        lives = survives(found, tests, SECONDS)
        survivors += [str(found)] if lives else []
        records.append({"mutant": str(found), "killed by": None if lives else " ".join(tests)})
        if "--json" not in sys.argv:
            print("SURVIVES" if lives else "killed  ", found, flush=True)
    if "--json" in sys.argv:
        print(json.dumps({"named": records, "failures": survivors}, ensure_ascii=False))
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
