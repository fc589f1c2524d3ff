"""Running a kernel on cases: a verdict for each stage, where it first goes wrong, and the likely cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from conformance.causes import cause
from conformance.kernel import TIME_AXIS, Kernel, Lacks
from conformance.loader import Case
from conformance.stages import STAGES

Status = Literal["passed", "failed", "refused", "skipped"]


@dataclass(frozen=True)
class Finding:
    """How a case came out.

    position: the first wrong position, None where none or where the last state alone is wrong; near: that position
    against known borders; wrong, of: how many entries.
    """

    stage: str
    case: str
    status: Status
    says: str = ""
    position: int | None = None
    near: str = ""
    cause: str = ""
    wrong: int = 0
    of: int = 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def judge(kernel: Kernel, cases: Iterable[Case], explain: bool = True) -> Iterator[Finding]:
    """A finding for each case, in order; explain: whether causes are looked for."""
    for case in cases:
        yield judged(kernel, case, explain)


def judged(kernel: Kernel, case: Case, explain: bool = True) -> Finding:
    try:
        results = kernel.run(case)
    except Lacks as lack:
        return Finding(case.stage, case.name, "skipped", str(lack))
    except (Exception, SystemExit) as error:  # a kernel of others may raise anything
        return Finding(case.stage, case.name, "refused", f"{type(error).__name__}: {error}".splitlines()[0][:300])
    try:
        wrong = {name: case.wrong(name, results[name]) for name in case.expected if name in results}
    except ValueError as error:
        return Finding(case.stage, case.name, "failed", str(error), cause="a result of another form")
    count, of = sum(int(m.sum()) for m in wrong.values()), sum(m.numel() for m in wrong.values())
    if not count:
        if case.stage == "last state" and "last_state" not in results:
            return Finding(case.stage, case.name, "skipped", "it returns no last state")
        return Finding(case.stage, case.name, "passed", of=of)
    position, says = _first(case, wrong, results)
    likely = cause(case, results) if explain else case.asks
    return Finding(case.stage, case.name, "failed", says, position, near(case, position), likely, count, of)


def _first(case: Case, wrong: dict[str, Tensor], results: dict[str, Tensor]) -> tuple[int | None, str]:
    """The first wrong position and a sentence with the value there."""
    if not wrong["y"].any():
        name = next(name for name, places in wrong.items() if places.any())
        at = tuple(torch.nonzero(wrong[name])[0].tolist())
        given, wanted = _value(results[name], at), _value(case.expected[name], at)
        return None, f"y is right, {name}{list(at)} is {given}, not {wanted}"
    axis = TIME_AXIS[case.op]
    places = torch.nonzero(wrong["y"])
    at = tuple(places[places[:, axis].argmin()].tolist())
    return at[axis], f"y{list(at)} is {_value(results['y'], at)}, not {_value(case.expected['y'], at)}"


def _value(tensor: Tensor, at: tuple[int, ...]) -> str:
    return f"{float(tensor[at]):.9g}"


def near(case: Case, position: int | None) -> str:
    """A position against the last border at or before it."""
    if position is None:
        return "at the end"
    if position == 0:
        return "at the first position"
    found = [(place, what) for what, places in case.borders.items() for place in places if place <= position]
    if found:
        place, what = max(found)
        behind = f"{position - place} after" if position > place else "at"
        return f"{behind} the {what} border {place}"
    multiple = position & -position
    return f"at a multiple of {multiple}" if multiple >= 8 else ""


def by_stage(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """The findings of each stage that has any, in the order of the stages."""
    found = list(findings)
    return {stage: rows for stage in STAGES if (rows := [f for f in found if f.stage == stage])}


def verdict(rows: Iterable[Finding]) -> Status:
    """A stage failed where a case did; it passed where one passed and none was refused."""
    statuses = {row.status for row in rows}
    order: tuple[Status, ...] = ("failed", "refused", "passed", "skipped")
    return next(status for status in order if status in statuses)
