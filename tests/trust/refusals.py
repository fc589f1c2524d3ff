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
    """The programs that the page names for these parts, each once."""
    found = [refusals(numbers[part]["result"])[:SHOWN] for part in parts if part in numbers]
    return list(dict.fromkeys(str(refusal.seed) for each in found for refusal in each))


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
    alike: dict[str, list[str]] = {}
    for target in sorted(targets):
        alike.setdefault(_listed([reason for at, reason in said if at == target]), []).append(target)
    return "compiled" if alike.keys() <= {"compiled"} else "; ".join(f"{', '.join(at)}: {w}" for w, at in alike.items())


def _listed(reasons: list[str]) -> str:
    """The first of them, and how many there are beside it: of other dtypes, mostly."""
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}" if reasons else "compiled"
