"""Cases by their numbers, judged one after another, and what they add up to."""

from __future__ import annotations

import random
import resource
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.artifact.hostile.built_once import built_once
from tests.artifact.hostile.damage import damage
from tests.artifact.hostile.forked import LONGEST, MIB, MOST_MEMORY, forked, limited
from tests.artifact.hostile.originals import MAKERS, files_of, reseal
from tests.artifact.hostile.too_much import enlarge
from tests.artifact.hostile.verdict import judge, verdict
from verify.checker.check import check

LONGEST_MAKING = 60  # seconds of processor time: files of gigabytes are sealed


@dataclass
class Tally:
    """kinds: how often each verdict came out of each kind of damage. failures: a line for each case that broke a rule.

    seconds, memory: the most processor time of one case, and the most bytes that a process of one held.
    """

    verdicts: Counter = field(default_factory=Counter)
    kinds: dict[str, Counter] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0
    memory: int = 0

    def to_json(self) -> dict[str, Any]:
        kinds = {kind: dict(sorted(counts.items())) for kind, counts in sorted(self.kinds.items())}
        most = {"seconds": round(self.seconds, 1), "mebibytes": self.memory // MIB}
        verdicts = dict(sorted(self.verdicts.items()))
        count = sum(verdicts.values())
        return {"cases": count, "verdicts": verdicts, "kinds": kinds, "most": most, "failures": self.failures}


def run(cases: Iterable[int], report: Callable[[str], None] = lambda line: None, over: str = "tokens") -> Tally:
    """Judge these cases; the same number is the same case. report: gets the line of each failure at once."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, built_once():
        originals = MAKERS[over](Path(folder))
        for good in originals:  # what every case needs is imported, built and proved here
            verdict(good), check(good)
        for case in cases:
            _count(tally, case, originals, Path(folder) / "bad", over, report)
    return tally


def _count(tally: Tally, case: int, originals: list[Path], bad: Path, over: str, report: Callable[[str], None]) -> None:
    """Make a case in one child and judge it in another, whose time and memory are those of the readers alone."""
    made = forked(lambda: _made(case, originals, bad, over))
    if not made.given:  # what builds a construction from its parameters is ours
        tally.verdicts["stopped"] += 1
        tally.kinds.setdefault("not made", Counter())["stopped"] += 1
        tally.failures.append(f"case {case}: it was not made: {made.fault}")
        report(tally.failures[-1])
        shutil.rmtree(bad, ignore_errors=True)
        return
    kind, how, good = made.given[0]
    ended = forked(lambda: _judged(None if over == "oversized" else Path(good), bad))
    shutil.rmtree(bad, ignore_errors=True)
    name, wrong, seconds = ended.given[0] if ended.given else ("stopped", ended.fault, LONGEST)
    if wrong is None and ended.memory > MOST_MEMORY:
        wrong = f"it took {ended.memory // MIB} MiB"
    tally.verdicts[name] += 1
    tally.kinds.setdefault(kind, Counter())[name] += 1
    tally.seconds, tally.memory = max(tally.seconds, seconds), max(tally.memory, ended.memory)
    if wrong:
        tally.failures.append(f"case {case}, {Path(good).name}: {how}: {wrong}")
        report(tally.failures[-1])


def _made(case: int, originals: list[Path], bad: Path, over: str) -> Iterator[tuple[str, str, str]]:
    """Damage a copy of a good checkpoint: (the kind of damage, what was done, the good one)."""
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_MAKING, LONGEST_MAKING + 1))
    rng = random.Random(f"0/{case}")
    good = rng.choice(originals)
    shutil.copytree(good, bad)
    kind, how = (enlarge if over == "oversized" else damage)(bad, rng, files_of(good))
    if over == "oversized" or rng.random() < 0.5:
        reseal(bad, files_of(good))
        how += ", resealed"
    yield kind, how, str(good)


def _judged(good: Path | None, bad: Path) -> Iterator[tuple[str, str | None, float]]:
    """(the verdict, what is wrong with it, seconds of processor time), within the limits."""
    limited()
    start = time.process_time()
    name, wrong = judge(good, bad)
    seconds = time.process_time() - start
    if wrong is None and seconds > LONGEST:
        wrong = f"it took {seconds:.0f} s"
    yield name, wrong, seconds
