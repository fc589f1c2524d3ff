"""The cases of each operation: operands drawn from a fixed seed, results from `conformance.exact`."""

from __future__ import annotations

from functools import cache

from conformance.cases.around import conv_cases, norm_cases
from conformance.cases.curves import curve_cases
from conformance.cases.delta import delta_cases
from conformance.cases.scans import scan_cases
from conformance.loader import Case
from conformance.stages import STAGES

OPERATIONS = ("selective_scan", "ssd", "conv", "norm", "delta_rule")


def cases(op: str, full: bool = False) -> list[Case]:
    """All cases of an operation in the order of their stages; full: long sequences and wide layers as well."""
    return drawn(op, True) if full else [*_kept(op)]


@cache
def _kept(op: str) -> tuple[Case, ...]:
    """Drawn once in a process: every kernel gets copies of their operands."""
    return tuple(drawn(op))


def drawn(op: str, full: bool = False) -> list[Case]:
    """The same, drawn and computed anew."""
    if op in ("selective_scan", "ssd"):
        found = [*scan_cases(op, full), *curve_cases(op)]
    elif op == "delta_rule":
        found = list(delta_cases())
    else:
        found = list({"conv": conv_cases, "norm": norm_cases}[op](full))
    order = list(STAGES)
    return sorted(found, key=lambda case: order.index(case.stage))
