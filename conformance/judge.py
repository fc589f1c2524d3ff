"""Running a kernel on cases: a verdict for each stage, where it first goes wrong, and what is known of the cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from conformance.cases import cases
from conformance.cases.crossed import LENGTHS, STEPS, crossed_cases, options_of, varied
from conformance.cases.layers import layer_cases
from conformance.cases.ordinary import ordinary_cases
from conformance.cases.states import AFTER_A_STATE, of_each_document
from conformance.causes import Seen, likely
from conformance.entries import described
from conformance.features import apart, first_use
from conformance.kernel import STATE_IN, TIME_AXIS, Kernel, Lacks, Misbehaved
from conformance.loader import Case, ends_of_documents
from conformance.stages import STAGES

Status = Literal["passed", "failed", "failed to run", "skipped"]


@dataclass(frozen=True)
class Finding:
    """How a case came out.

    position: the first wrong position, None where none or where the last state alone is wrong; near: that position
    against known borders; wrong, of: how many entries; entries: which they are; asks: what the case asks for that no
    earlier one does; cause: the known mistake that gives all that was seen, "" where there is none.
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
    entries: str = ""
    asks: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Ran:
    """A case that was run; results: what came back, where it was compared."""

    case: Case
    finding: Finding
    results: Mapping[str, Tensor] | None = None


@dataclass(frozen=True)
class Why:
    """What is known of why cases are wrong.

    likely: the known mistakes that give all that was seen, of right cases too; else "". apart: each says what all
    wrong cases have and no right one has; first: where there is no such thing, what the first of them has.
    """

    likely: str = ""
    apart: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


def trial(kernel: Kernel, full: bool = False) -> Iterator[Ran]:
    """A kernel on every case of its operations, then on those in which the options that it takes are crossed."""
    kernel = told(kernel)
    found: list[Ran] = []
    basic = [case for op in kernel.operations() for case in cases(op, full)]
    for case in sorted(basic, key=lambda case: list(STAGES).index(case.stage)):
        found.append(run(kernel, case))
        yield found[-1]
    for op in kernel.operations():
        lacking = untaken(op, [each for each in found if each.case.op == op])
        lengths = STEPS if kernel.is_step else LENGTHS
        yield from (run(kernel, case) for case in crossed_cases(op, lacking, lengths))
        yield from (run(kernel, case) for case in ordinary_cases(op, lacking, lengths))
        yield from (run(kernel, case) for case in layer_cases(op, lacking, lengths))


def told(kernel: Kernel) -> Kernel:
    """With what it takes for initial states beside offsets alone: one of each document, or that of the first. Which of
    them is read off one case, in which the one is wrong where the other is right; of two that are wrong, the nearer.
    """
    if not (kernel.offsets_alone and STATE_IN[kernel.op] in kernel.accepts):
        return kernel
    case = next(case for case in cases(kernel.op) if case.name == AFTER_A_STATE)
    one, each = replace(kernel, states="one"), replace(kernel, states="each")
    return min((one, each), key=lambda tried: _how_wrong(judged(tried, case)))


def _how_wrong(finding: Finding) -> tuple[int, int]:
    """Right comes before what can be compared, that before what cannot, and all of it before what did not run."""
    if finding.status == "failed":
        return (1, finding.wrong) if finding.of else (2, 0)
    return (0, 0) if finding.status == "passed" else (3, 0)


def untaken(op: str, found: Sequence[Ran]) -> frozenset[tuple[str, Any]]:
    """The options of an operation that a kernel does not take: cases with them there are, and none could be run."""
    with_option = {option: [r.finding.status for r in found if option in options_of(r.case)] for option in varied(op)}
    none = {"failed to run", "skipped"}
    return frozenset(option for option, statuses in with_option.items() if statuses and none.issuperset(statuses))


def judge(kernel: Kernel, cases: Iterable[Case]) -> list[Finding]:
    """A finding for each case, in order, with the cause of all that are wrong, if one mistake is."""
    found = [run(kernel, case) for case in cases]
    return with_cause(found, why(found))


def judged(kernel: Kernel, case: Case) -> Finding:
    """How one case comes out; no cause is looked for."""
    return run(kernel, case).finding


def why(found: Sequence[Ran]) -> Why:
    """What is known of why cases are wrong: all that ran is looked at together."""
    wrong = [each for each in found if each.finding.status == "failed"]
    right = [each for each in found if each.finding.status == "passed"]
    if not wrong:
        return Why()
    seen = [Seen(each.case, each.results, each.finding.position) for each in wrong]
    cause = likely(seen, [each.case for each in right])
    wrong_cases, right_cases = [each.case for each in wrong], [each.case for each in right]
    both = tuple(apart(wrong_cases, right_cases))
    began_right = found[0].finding.status == "passed"
    return Why(cause, both, tuple(first_use(wrong_cases, right_cases)) if began_right and not both else ())


def with_cause(found: Sequence[Ran], known: Why) -> list[Finding]:
    """The findings, with what explains those that are wrong."""
    return [
        replace(each.finding, cause=known.likely) if each.finding.status == "failed" else each.finding for each in found
    ]


def run(kernel: Kernel, case: Case) -> Ran:
    """One case on a kernel."""
    case = of_each_document(case) if kernel.states == "each" and kernel.offsets_alone else case
    finding = Finding(case.stage, case.name, "failed", asks=case.asks)
    try:
        results = kernel.run(case)
    except Lacks as lack:
        return Ran(case, replace(finding, status="skipped", says=str(lack)))
    except NotImplementedError as error:
        return Ran(case, replace(finding, status="skipped", says=sentence(error)))
    except Misbehaved as error:
        return Ran(case, replace(finding, says=str(error)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a kernel of others may raise anything: SystemExit, what pytest.skip raises, …
        return Ran(case, replace(finding, status="failed to run", says=sentence(error)))
    try:
        wrong = {name: case.wrong(name, results[name]) for name in case.expected if name in results}
    except ValueError as error:
        return Ran(case, replace(finding, says=str(error)))
    count, of = sum(int(m.sum()) for m in wrong.values()), sum(m.numel() for m in wrong.values())
    finding = replace(finding, wrong=count, of=of)
    if not finding.wrong:
        if case.stage == "last state" and "last_state" not in results:
            return Ran(case, replace(finding, status="skipped", says="it returns no last state", of=0))
        return Ran(case, replace(finding, status="passed"), results)
    (row, position), says = _first(case, wrong, results)
    finding = replace(finding, says=says, position=position, near=near(case, position, row))
    return Ran(case, replace(finding, entries=described(case, wrong, results)), results)


def sentence(error: BaseException) -> str:
    """What was raised, in one line; its type alone where that is all it says, or its text cannot be had. What no file
    or terminal shows, such as half a surrogate pair, is escaped.
    """
    try:
        said = str(error).strip()
    except Exception:
        said = ""
    line = ": ".join(filter(None, [type(error).__name__, said])).splitlines()[0][:300]
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)


def _first(case: Case, wrong: dict[str, Tensor], results: dict[str, Tensor]) -> tuple[tuple[int, int | None], str]:
    """The row and place of the first wrong position, and a sentence with the value there."""
    if not wrong["y"].any():
        name = next(name for name, places in wrong.items() if places.any())
        at = tuple(torch.nonzero(wrong[name])[0].tolist())
        given, wanted = _value(results[name], at), _value(case.expected[name], at)
        return (0, None), f"y is right, {name}{list(at)} is {given}, not {wanted}"
    axis = TIME_AXIS[case.op]
    places = torch.nonzero(wrong["y"])
    at = tuple(places[places[:, axis].argmin()].tolist())
    return (at[0], at[axis]), f"y{list(at)} is {_value(results['y'], at)}, not {_value(case.expected['y'], at)}"


def _value(tensor: Tensor, at: tuple[int, ...]) -> str:
    return f"{float(tensor[at]):.9g}"


def near(case: Case, position: int | None, row: int = 0) -> str:
    """A position of a row against the last border at or before it."""
    if position is None:
        return "at the end"
    if position == 0:
        return "at the first position"
    borders = dict(case.borders)
    if "seq_idx" in case.inputs:
        borders["document"] = ends_of_documents(case.inputs["seq_idx"][row])[:-1]
    found = [(place, what) for what, places in borders.items() for place in places if place <= position]
    if found:
        place, what = max(found)
        behind = f"{position - place} after" if position > place else "at"
        return f"{behind} the {what} border {place}"
    multiple = position & -position
    return f"at a multiple of {multiple}" if multiple >= 8 else ""


def verdict(rows: Iterable[Finding]) -> Status:
    """A stage failed where a case did; it passed where one passed and none was refused."""
    statuses = {row.status for row in rows}
    order: tuple[Status, ...] = ("failed", "failed to run", "passed", "skipped")
    return next(status for status in order if status in statuses)
