"""The reasons of refusals that the page shows, and what the compiler of today says of the same programs.

Reasons are counted over months of compilers. One program of each is run again, so that none is told as today's that
is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SHOWN = 30
OF_PROGRAMS = ("fuzz", "joined", "sizes", "forms")
TODAY = {"again refusals": OF_PROGRAMS[:3], "again refusals in every form": OF_PROGRAMS[3:]}
"""Names of what is run again, and the parts whose programs these are: they share targets and dtypes."""
NOBODY = "the language"  # refuses before any target does


@dataclass(frozen=True)
class Refusal:
    """count: how often; seed: of one program; by: the targets that say so, or NOBODY."""

    reason: str
    count: int
    seed: int
    by: frozenset[str]


def refusals(result: dict) -> list[Refusal]:
    """All reasons of a part, the most frequent first; alike ones are one."""
    found: dict[str, Refusal] = {}
    for entry in result["reasons"]:
        target, reason = parted(entry["reason"])
        seen = found.get(reason, Refusal(reason, 0, entry["seed"], frozenset()))
        count, seed = seen.count + entry["count"], min(seen.seed, entry["seed"])
        found[reason] = Refusal(reason, count, seed, seen.by | {target})
    return sorted(found.values(), key=lambda refusal: (-refusal.count, refusal.reason))


def parted(told: str) -> tuple[str, str]:
    """(target, reason) of what the random programs count."""
    target, _, reason = told.partition(": ")
    return target or NOBODY, re.sub("('…' → '…', )+", "", reason)


def shown(numbers: dict, parts: tuple[str, ...]) -> list[str]:
    """The programs that the page names for these parts."""
    return [
        str(refusal.seed) for part in parts if part in numbers for refusal in refusals(numbers[part]["result"])[:SHOWN]
    ]


def today(refusal: Refusal, numbers: dict) -> str:
    """What is said of the program now: "the same", what each target says instead, or "" where it was not run again."""
    told = [numbers[name]["result"]["refused"] for name in TODAY if name in numbers]
    found = next((each[str(refusal.seed)] for each in told if str(refusal.seed) in each), None)
    if found is None:
        return ""
    said = [parted(reason) for reason in found]
    if refusal.reason in {reason for _, reason in said}:
        return "the same"
    if everywhere := [reason for target, reason in said if target == NOBODY]:
        return "; ".join(everywhere)
    targets = refusal.by - {NOBODY} or {target for target, _ in said}
    by = {target: [reason for at, reason in said if at == target] for target in sorted(targets)}
    return "; ".join(f"{target}: {' and '.join(reasons) or 'compiled'}" for target, reasons in by.items()) or "compiled"
