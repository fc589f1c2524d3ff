"""Counts over many programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from tests.fuzz.generate import generate
from tests.fuzz.program import HEADER, Program
from tests.fuzz.run import Outcome, classified, outcomes
from tests.fuzz.shrink import shrunk


@dataclass
class Report:
    """What became of the programs of some seeds."""

    programs: int = 0
    compiled: int = 0
    verdicts: Counter = field(default_factory=Counter)
    reasons: Counter = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)
    refused: dict[int, list[str]] = field(default_factory=dict)
    failures: list[dict] = field(default_factory=list)

    def add(self, seed: int, found: Sequence[Outcome]) -> None:
        self.programs += 1
        self.compiled += any(outcome.verdict == "exact" for outcome in found)
        self.refused[seed] = []
        for outcome in found:
            where = " ".join(filter(None, (outcome.target, outcome.dtype, outcome.form))) or "writing it"
            self.verdicts[f"{where}: {outcome.verdict}"] += 1
            if outcome.verdict.startswith("refused"):
                kind = f"{outcome.target}: {classified(outcome.reason)}"
                self.reasons[kind] += 1
                self.examples.setdefault(kind, seed)
                self.refused[seed] += [] if kind in self.refused[seed] else [kind]

    def to_json(self) -> dict:
        """Plain values, the most frequent reasons first."""
        return {
            "programs": self.programs,
            "compiled": self.compiled,
            "verdicts": dict(sorted(self.verdicts.items())),
            "failures": self.failures,
            "reasons": [
                {"reason": reason, "count": count, "seed": self.examples[reason]}
                for reason, count in sorted(self.reasons.items(), key=lambda item: (-item[1], item[0]))
            ],
        }


def fuzz(
    seeds: Iterable[int],
    targets: Sequence[str],
    dtypes: Sequence[str],
    forms: Sequence[str],
    failed: Callable[[dict], None] = lambda failure: None,
    device: str = "cpu",
) -> Report:
    """The programs of these seeds, their models on a device; each failure is shrunk, told and kept."""
    report = Report()
    for seed in seeds:
        program = generate(seed)
        found = outcomes(program, seed, targets, dtypes, forms, device)
        report.add(seed, found)
        for outcome in found:
            if outcome.failed:
                report.failures.append(_explained(seed, program, outcome, device))
                failed(report.failures[-1])
                break
    return report


def _explained(seed: int, program: Program, outcome: Outcome, device: str) -> dict:
    """The failure and the least program that fails alike, as code to run."""
    least = shrunk(program, partial(_fails_alike, outcome, seed, device))
    said = next((o for o in _alone(least, outcome, seed, device) if o.verdict == outcome.verdict), outcome)
    options = f"{outcome.target!r}, {outcome.dtype!r}, {least.max_d_state}"
    tail = f"compiled = compile(circuit, {options})\n" if outcome.target else ""
    return {
        "seed": seed,
        "verdict": outcome.verdict,
        "where": [outcome.target, outcome.dtype, outcome.form],
        "reason": said.reason,
        "program": HEADER + least.text() + tail,
    }


def _alone(program: Program, outcome: Outcome, seed: int, device: str) -> list[Outcome]:
    forms = [] if outcome.form in ("", "compile", "interpreter") else [outcome.form]
    return outcomes(program, seed, [outcome.target], [outcome.dtype], forms, device)


def _fails_alike(outcome: Outcome, seed: int, device: str, program: Program) -> bool:
    try:
        return any(
            o.verdict == outcome.verdict and o.form == outcome.form for o in _alone(program, outcome, seed, device)
        )
    except Exception:  # a simpler program may make no sense
        return False
