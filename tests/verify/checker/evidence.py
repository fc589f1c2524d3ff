"""The checker against changed weights and claims: python -m tests.verify.checker.evidence [count] [first] [--json]
python -m tests.verify.checker.evidence --named lis-0-mamba-float16 …   these checkpoints only

Every circuit and construction at small sizes, for both mixers and all dtypes, is one checkpoint; each gets FAULTS
faults, and they are numbered through. Of each checkpoint

- mutants: several weights changed; what the checker accepts must run bit for bit as exact arithmetic says (`fuzz`);
- faults: one weight changed; none that changes a score of a letter may be accepted (`faults`);
- claims: one value of its promise, circuit or config changed; what is accepted must still be true (`claims`).

A checkpoint that is not accepted as it is gets no faults and no claims, which would say nothing: it is counted as not
proved, and named. Exit code 1 if anything was unsound or missed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from constructions.registry import CONSTRUCTIONS
from tests.circuits import CASES, Case
from tests.verify.checker.checkpoints import write
from tests.verify.checker.claims import claims
from tests.verify.checker.faults import inject
from tests.verify.checker.fuzz import fuzz
from tests.verify.checker.learned import LEARNED
from verify.checker.check import check
from verify.checker.tasks.task_matches import MATCHES

FAULTS, MUTANTS, CLAIMS = 25, 5, 10  # of each checkpoint
TARGETS, DTYPES = ("mamba", "mamba2"), ("float32", "bfloat16", "float16")
SMALL: dict[str, list[dict]] = {
    "mqar": [{"kappa": 3, "vocab": 6, "write": w} for w in ("sum", "first", "last")],
    "induction-heads": [{"vocab": 5, "codes": codes} for codes in (False, True)],
    "keep-nth": [{"n": 3, "vocab": 8}],
    "absolute-time": [{"horizon": 6}],
    "count-in-row": [{"largest": 5}],
    "copy": [{"form": form, "n": 4, "vocab": 2} for form in ("string", "delay", "pointer", "place")],
    "selective-copy": [{"n": 2, "vocab": 2, "length": 6}],
    "phonebook": [{"names": 3, "entries": 2, "digits": 2}],
    "edit-distance": [{"length": 3, "distinct_letters": 2}],
    "lcs": [{"length": 3, "distinct_letters": 2}],
    "lis": [{"length": 4, "values": 4}],
    "max-subarray": [{"length": 4, "values": 3}],
    "knapsack": [{"items": 2, "capacity": 3, "values": 2}],
    "fibonacci": [{"modulus": 5, "length": 8}],
    "coin-change": [{"amount": 6}],
    "shortest-path": [{"nodes": 3, "lengths": 2}],
    "matrix-chain": [{"matrices": 2, "largest": 2}],
    "in-context-recall": [{"vocab": 4, "length": 8, "max_length": 16}],
    "fuzzy-recall": [{"vocab": 6, "key_size": 2, "value_size": 2, "length": 12, "max_length": 24}],
    "mad-copying": [{"n": 3, "vocab": 3, "length": 10, "max_length": 20}],
    "mad-compression": [{"n": 2, "vocab": 3, "questions": 2, "max_length": 16}],
    "mad-memorization": [{"vocab": 6, "length": 6, "max_length": 12}],
    "token-selection": [{"size": 4, "values": 2, "length": 6}],
    "recall": [{"keys": 3, "values": 3, "pairs": 2}],
    "unique-induction": [{"vocab": 4, "length": 6}],
    "copy-ngram": [{"n": 2, "vocab": 2, "length": 4}],
    "viterbi": [{"length": 3}],
}
READ_BY_VALUE = (
    "edit-distance",
    "lcs",
    "lis",
    "max-subarray",
    "knapsack",
    "fibonacci",
    "coin-change",
    "shortest-path",
    "matrix-chain",
    "viterbi",
)  # in narrow dtypes, which hold no parabola of their numbers: another circuit than in float32
LATER = ("sums_at_each_letter", "place_of_the_only_c")  # circuits that came when the others had their numbers
LAST = ("accepted", "climbed", "climbed_before")  # and those that came after them
NEWEST = ("deleted_keys",)  # and after those
Job = tuple[str, Callable[[], Circuit], str, str]
"""Name, circuit, target, dtype."""


def jobs() -> list[Job]:
    """Every checkpoint that there may be, in one order: what is added comes last, for faults keep their numbers."""
    found = [job for case in CASES if case.name not in LATER + LAST + NEWEST for job in _of_case(case)]
    for name, sizes in SMALL.items():
        for number, params in enumerate(sizes):
            for target in TARGETS:
                found += [(f"{name}-{number}", _construction(name, params, target), target, d) for d in DTYPES]
    found += [(name, build, t, d) for name, build in LEARNED.items() for t in TARGETS for d in DTYPES]
    for number, params in enumerate(SMALL["mqar"]):
        found += [(f"mqar-{number}", _construction("mqar", params, "s4d"), "s4d", d) for d in DTYPES]
    found += [job for case in CASES if case.name in LATER for job in _of_case(case)]
    narrow = [(name, t, d) for name in READ_BY_VALUE for t in TARGETS for d in DTYPES[1:]]
    found += [(f"{name}-by-value", _construction(name, SMALL[name][0], t, d), t, d) for name, t, d in narrow]
    found += [job for case in CASES if case.name in LAST for job in _of_case(case)]
    return found + [job for case in CASES if case.name in NEWEST for job in _of_case(case)]


def _of_case(case: Case) -> list[Job]:
    return [(case.name, case.build, t, d) for t in TARGETS if t in case.targets for d in DTYPES]


def title(job: Job) -> str:
    """What a checkpoint is called."""
    name, _, target, dtype = job
    return f"{name}-{target}-{dtype}"


def _construction(name: str, params: dict, target: str, dtype: str = DTYPES[0]) -> Callable[[], Circuit]:
    """The circuit that is made for a dtype; that for float32 is compiled in the others too."""
    return lambda: CONSTRUCTIONS[name](**params, arch=target, dtype=dtype).circuit()


def _task(job: Job) -> dict[str, Any] | None:
    """What the manifest says is asked, where matches prove it (lemma of matches): then an answer must be proved as
    well.
    """
    name, _, target, _ = job
    name, _, number = name.rpartition("-")
    return CONSTRUCTIONS[name](**SMALL[name][int(number)], arch=target).asks() if name in MATCHES else None


def examine(job: Job, directory: Path, faults: int) -> dict:
    """What became of one checkpoint, its faults, mutants and claims."""
    _, build, target, dtype = job
    name, failures = title(job), []
    rng, saved = random.Random(name), directory / name
    try:
        write(saved, build(), target, dtype, task=_task(job))
    except CompileError:
        return {"checkpoints": {"refused by the compiler": 1}}
    except TypeError as error:  # a construction for one mixer only
        if "arch" not in str(error):
            raise
        return {"checkpoints": {"of one mixer": 1}}
    verdict = check(saved)
    found: dict = {"checkpoints": {"proved" if verdict.accepted else "not proved": 1}}
    if verdict.arithmetic is None:
        found["mutants"], unsound = fuzz(saved, min(MUTANTS, faults), rng)
        failures += unsound
    if verdict.accepted:
        found["plants"], missed = inject(saved, faults, rng, command=True)
        failures += missed
        found["claims"], believed = claims(saved, min(CLAIMS, faults), rng)
        failures += believed
    else:
        found["not proved"] = {name: verdict.reason[:160]}
    return found | {"failures": [line[:400] for line in failures]}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=FAULTS * len(jobs()), help="faults, of all checkpoints")
    parser.add_argument("first", type=int, nargs="?", default=0, help="number of the first fault")
    parser.add_argument("--named", nargs="+", default=(), metavar="NAME", help="these checkpoints, by name, instead")
    parser.add_argument("--json", action="store_true", help="print one object and nothing else")
    options = parser.parse_args()
    total: dict = {"failures": []}
    with tempfile.TemporaryDirectory() as root:
        for job in _chosen(options.count, options.first, options.named):
            found = examine(job, Path(root), min(FAULTS, options.count))
            add(total, found)
            if not options.json:
                print(job[0], *job[2:], json.dumps(found), flush=True)
    print(json.dumps(total, ensure_ascii=False))
    return 1 if total["failures"] else 0


def _chosen(count: int, first: int, named: Collection[str]) -> list[Job]:
    """The checkpoints of these names, or those that hold the faults from `first` on."""
    if named:
        return [job for job in jobs() if title(job) in named]
    return jobs()[first // FAULTS : (first + count - 1) // FAULTS + 1]


def add(total: dict, found: dict) -> None:
    """What became of one more checkpoint."""
    for key, value in found.items():
        if isinstance(value, list):
            total[key] = total.get(key, []) + value
        elif key == "not proved":
            total[key] = total.get(key, {}) | value
        else:
            total[key] = dict(Counter(total.get(key, {})) + Counter(value))


if __name__ == "__main__":
    sys.exit(main())
