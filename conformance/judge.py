"""Running a kernel on cases: a verdict for each stage, where it first goes wrong, and what is known of the cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import Any

import torch
from torch import Tensor

from conformance.asked import Runs, with_documents
from conformance.asked import tried as size_tried
from conformance.cases import cases
from conformance.cases.borders import CHUNKS_OF
from conformance.cases.crossings import CROSSINGS
from conformance.cases.each_state import of_each_document
from conformance.cases.factors import DTYPES, LENGTHS, STEPS, factors_of
from conformance.cases.fitted import plain, usual
from conformance.cases.forms import forms_of
from conformance.cases.options import PACKED_ROWS, firsts, options_of, varied
from conformance.cases.states import AFTER_A_STATE
from conformance.causes import Seen, causes
from conformance.demands import asked_beside, demand_anywhere, demand_of
from conformance.entries import described
from conformance.features import OF_CHUNKS, apart, first_use
from conformance.findings import RAN, Finding, Ran, Status, Why
from conformance.interrupt import interrupted
from conformance.kernel.arguments import OFFSET_STATES, OFFSETS, STATE_IN, TIME_AXIS, Lacks
from conformance.kernel.kernel import Kernel
from conformance.kernel.misbehaved import Misbehaved
from conformance.keywords import looked_into
from conformance.loader import Case, ends_of_documents
from conformance.sentences import sentence
from conformance.stages import STAGES
from conformance.together import asked_together
from conformance.ways import in_each_way, never_told


def trial(kernel: Kernel, full: bool = False) -> Iterator[Ran]:
    """A kernel on every case of its operations, then on those in which the options that it takes are crossed."""
    yield from trial_of_settled(settled(kernel), full)


def settled(kernel: Kernel) -> Kernel:
    """With what its signature leaves open, which is read off cases: what its ** takes, and the side of its gate."""
    return sided(looked_into(kernel))


def trial_of_settled(kernel: Kernel, full: bool = False) -> Iterator[Ran]:
    """The same of a kernel of which that is known."""
    kernel, *both = forms(kernel)
    found: list[Ran] = []
    basic = [case for op in kernel.operations() for case in cases(op, full)]
    for case in sorted(basic, key=lambda case: list(STAGES).index(case.stage)):
        for ran in _run(kernel, case, bool(both)):
            found.append(ran)
            yield ran
    for op in kernel.operations():
        of_op = [each for each in found if each.case.op == op]
        lengths = STEPS if kernel.is_step else LENGTHS
        lacking = left_out(kernel, op, of_op, lengths)
        for crossing in CROSSINGS:
            for case in crossing(op, lacking, lengths):
                for ran in _run(kernel, case, bool(both)):
                    found.append(ran)
                    yield ran
        asks = lambda case: _run(kernel, case, bool(both))
        of_op = [each for each in found if each.case.op == op]
        for ran in asked_together(kernel, op, of_op, asks):
            of_op.append(ran)
            yield ran
        yield from in_each_way(kernel, op, of_op, untaken(op, of_op) | untold(kernel), asks)


def never_in_each_way(kernel: Kernel, found: Sequence[Ran]) -> tuple[str, ...]:
    """The ways to tell a kernel of documents that met an option which it takes in no case that it ran, in words."""
    op = kernel.operations()[0]
    of_op = [each for each in found if each.case.op == op]
    return never_told(kernel, op, of_op, untaken(op, of_op) | untold(kernel))


def left_out(
    kernel: Kernel, op: str, found: Sequence[Ran], lengths: Sequence[int] = LENGTHS
) -> frozenset[tuple[str, Any]]:
    """What is not crossed, for a kernel does not take it: it was asked for that beside what the kernel demands."""
    left = untaken(op, found) | refused_forms(found)
    demand = demand_of(kernel, op, found, _runs(kernel), lengths) if left else None
    seen = [*found, *(asked_beside(kernel, demand, left, lambda case: run(kernel, case)) if demand else ())]
    lacking = untaken(op, seen) | refused_forms(seen) | chunks_refused(kernel, op, found) | untold(kernel)
    return lacking | ({("start", "pieces")} if kernel.is_step else set())


def chunks_refused(kernel: Kernel, op: str, found: Sequence[Ran]) -> frozenset[tuple[str, Any]]:
    """The sizes of a chunk that a kernel says it does not take: the rest is crossed at those that it takes."""
    if "chunk_size" not in kernel.accepts or not (demand := demand_anywhere(kernel, op, found, _runs(kernel))):
        return frozenset()
    ran = {each.case.options.get("chunk_size") for each in found if each.finding.status in RAN}
    skips = lambda chunk: all(judged(kernel, case).status == "skipped" for case in demand.chunks(chunk))
    return frozenset(("chunk", chunk) for chunk in CHUNKS_OF.get(op, ()) if chunk not in ran and skips(chunk))


def untold(kernel: Kernel) -> frozenset[tuple[str, Any]]:
    """The ways to tell a kernel of documents, and to ask it for states, that its arguments do not have; and documents
    in several rows, of which offsets do not tell.
    """
    found: set[tuple[str, Any]] = set()
    if not kernel.documents.takes_both:
        found |= {("told", "numbers"), ("told", "offsets")}
    if OFFSETS not in kernel.accepts:
        found.add(("asked", "no states"))
    if kernel.documents.offsets_alone:
        found.add(PACKED_ROWS)
    if OFFSET_STATES not in kernel.accepts or not kernel.documents.takes_both:
        found.add(("asked", "no states of documents"))
    return frozenset(found)


def refused_forms(found: Sequence[Ran]) -> frozenset[tuple[str, Any]]:
    """Forms of operands that cases have, none of which could be run: a kernel says that it does not take them."""
    forms = [(forms_of(each.case), each.finding.status in RAN) for each in found]
    ran = {form for having, runs in forms if runs for form in having}
    return frozenset(form for having, _ in forms for form in having if form not in ran)


def _runs(kernel: Kernel) -> Runs:
    return lambda case: judged(kernel, case).status in RAN


def _run(kernel: Kernel, case: Case, both: bool) -> Iterator[Ran]:
    """A case, and, where a kernel takes one state or one of each document, both forms of it."""
    yield run(kernel, case)
    if both and (other := of_each_document(case)) is not case:
        yield run(kernel, replace(other, name=f"{case.name}, a state for each document"))


def told(kernel: Kernel) -> Kernel:
    """With what it takes for initial states beside offsets alone, as it is asked first."""
    return forms(kernel)[0]


def forms(kernel: Kernel) -> tuple[Kernel, ...]:
    """With what it takes for initial states beside offsets alone: that of the first document, one of each, or either.
    Which of them is read off one case, in which the one is wrong where the other is right; of two that are wrong, the
    nearer.
    """
    if not (kernel.documents.offsets_alone and STATE_IN[kernel.op] in kernel.accepts):
        return (kernel,)
    either = (replace(kernel, states="one"), replace(kernel, states="each"))
    tried: dict[Kernel, Finding] = {}
    for case in _after_a_state(kernel):
        tried = {form: judged(form, case) for form in either}
        if any(finding.status in RAN for finding in tried.values()):
            break
    if all(finding.status == "passed" for finding in tried.values()):
        return (*tried,)
    return (min(tried, key=lambda form: _how_wrong(tried[form])),)


def _after_a_state(kernel: Kernel) -> Iterator[Case]:
    """Documents after a state: the small case, then beside what the kernel demands at a size of the crossing, or in
    every dtype at the first usual size at which it runs.
    """
    yield next(case for case in cases(kernel.op) if case.name == AFTER_A_STATE)
    if demand := demand_of(kernel, kernel.op, (), _runs(kernel)):
        yield from demand.cases({"start": "state and documents", "last state": True})
    elif size := size_tried(kernel, kernel.op, _runs(kernel)):
        yield from (with_documents(kernel.op, size, dtype) for dtype in DTYPES)


def sided(kernel: Kernel) -> Kernel:
    """With the side of a norm on which it has its gate, where it has no argument for that: the one on which the first
    case with a gate that it takes is right, or else the nearer in the first of each; None where it takes none.
    """
    if kernel.op != "norm" or "norm_before_gate" in kernel.accepts or "z" not in kernel.accepts:
        return kernel
    nearest: dict[bool, tuple[int, float]] = {}
    for case in _gated():
        if len(nearest) == 2 and case.name.startswith("fitted"):  # it is wrong in all others of both sides
            break
        behind = bool(case.options["norm_before_gate"])
        finding = judged(replace(kernel, gate_after=behind), case)
        if finding.status == "passed":
            return replace(kernel, gate_after=behind)
        if finding.status == "failed":
            first, part = _how_wrong(finding)
            nearest.setdefault(behind, (first, part / max(1, finding.of)))
    return replace(kernel, gate_after=min(nearest, key=lambda side: nearest[side]) if nearest else None)


def _gated() -> Iterator[Case]:
    """Cases of a norm with a gate, on either side of it: those that all are asked, then usual sizes with options."""
    asked = sorted(cases("norm"), key=lambda case: list(STAGES).index(case.stage))
    crossed = (case for crossing in CROSSINGS for case in crossing("norm"))
    yield from (case for case in chain(asked, crossed) if "z" in case.inputs)
    factors = factors_of("norm")
    names = ("dtype", "batch", "groups", "views")
    for size in usual("norm"):
        for values in product(*(factors[name] for name in names)):
            for side in factors["gate"]:
                yield plain("norm", size, z=True, gate=side, **dict(zip(names, values, strict=True)))


def _how_wrong(finding: Finding) -> tuple[int, int]:
    """Right comes before what can be compared, that before what cannot, and all of it before what did not run."""
    if finding.status == "failed":
        return (1, finding.wrong) if finding.of else (2, 0)
    return (0, 0) if finding.status == "passed" else (3, 0)


def untaken(op: str, found: Sequence[Ran]) -> frozenset[tuple[str, Any]]:
    """The options of an operation that a kernel does not take: cases with them there are, and none could be run. Of
    what most kernels take, such as float32, only where some could with another option in its place.
    """
    having = [(options_of(each.case), each.finding.status in RAN) for each in found]
    asked = {option for options, _ in having for option in options}
    ran = {option for options, runs in having if runs for option in options}
    others = {name for name, value in ran if (name, value) not in {*firsts(op)}}
    first = [option for option in firsts(op) if option[0] in others]
    return frozenset(option for option in (*varied(op), *first) if option in asked - ran)


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
    cause, somewhere = causes(seen, [each.case for each in right])
    wrong_cases, right_cases = [each.case for each in wrong], [each.case for each in right]
    untold = frozenset(name for each in found for name in each.untold)
    both = tuple(apart(wrong_cases, right_cases, untold))
    began_right = next(each.finding.status for each in found if each.finding.status in RAN) == "passed"
    first = tuple(first_use(wrong_cases, right_cases, untold)) if began_right and not both else ()
    return Why(cause, somewhere, both, first, none_right=not right)


def with_cause(found: Sequence[Ran], known: Why) -> list[Finding]:
    """The findings, with what explains those that are wrong."""
    return [
        replace(each.finding, cause=known.likely) if each.finding.status == "failed" else each.finding for each in found
    ]


def run(kernel: Kernel, case: Case) -> Ran:
    """One case on a kernel."""
    found = _compared(kernel, case)
    untold = frozenset() if kernel.told_of_chunks else frozenset({OF_CHUNKS})
    return replace(found, layouts={name: frozenset(seen) for name, seen in kernel.layouts.items()}, untold=untold)


def _compared(kernel: Kernel, case: Case) -> Ran:
    case = of_each_document(case) if kernel.states == "each" and kernel.documents.offsets_alone else case
    case = whole(case) if kernel.is_step else kernel.documents.asked_of(case)
    finding = Finding(case.stage, case.name, "failed", asks=case.asks, op=case.op)
    try:
        results = kernel.run(case)
    except Lacks as lack:
        return Ran(case, replace(finding, status="skipped", says=str(lack)), lacks=True)
    except NotImplementedError as error:
        return Ran(case, replace(finding, status="skipped", says=sentence(error)))
    except Misbehaved as error:
        return Ran(case, replace(finding, says=str(error)))
    except BaseException as error:  # a kernel of others may raise anything: SystemExit, what pytest.skip raises, …
        if isinstance(error, KeyboardInterrupt) and interrupted():
            raise
        return Ran(case, replace(finding, status="failed to run", says=sentence(error)))
    try:
        wrong = {name: case.wrong(name, results[name]) for name in case.expected if name in results}
    except ValueError as error:
        return Ran(case, replace(finding, says=str(error)))
    except Exception as error:  # of a result of a class of others, no dense tensor of its own
        return Ran(case, replace(finding, says=f"a result cannot be compared: {sentence(error)}"))
    count, of = sum(int(m.sum()) for m in wrong.values()), sum(m.numel() for m in wrong.values())
    without = case.states and not any(name in results for name in case.states)
    alone = "y alone, for it returns no last state" if without else ""
    finding = replace(finding, wrong=count, of=of, compared=alone)
    if not finding.wrong:
        if case.stage == "last state" and "last_state" not in results:
            return Ran(case, replace(finding, status="skipped", says="it returns no last state", of=0))
        return Ran(case, replace(finding, status="passed"), results)
    (row, position), says = _first(case, wrong, results)
    where = near(case, position, row, _unknown_borders(kernel, case))
    finding = replace(finding, says=says, position=position, near="" if "document_states" in says else where)
    return Ran(case, replace(finding, entries=described(case, wrong, results)), results)


def whole(case: Case) -> Case:
    """Of a step, which knows no pieces: the same positions one after the other."""
    if "cuts" not in case.options:
        return case
    options = {name: value for name, value in case.options.items() if name != "cuts"}
    borders = {what: places for what, places in case.borders.items() if what != "cut"}
    return replace(case, options=options, borders=borders, asks="a state handed from position to position")


def _first(case: Case, wrong: dict[str, Tensor], results: dict[str, Tensor]) -> tuple[tuple[int, int | None], str]:
    """The row and place of the first wrong position, and a sentence with the value there."""
    if not wrong["y"].any():
        name = next(name for name, places in wrong.items() if places.any())
        at = tuple(torch.nonzero(wrong[name])[0].tolist())
        return (0, None), f"y is right, {_values(case, name, at, results[name])}"
    axis = TIME_AXIS[case.op]
    places = torch.nonzero(wrong["y"])
    at = tuple(places[places[:, axis].argmin()].tolist())
    return (at[0], at[axis]), _values(case, "y", at, results["y"])


def _values(case: Case, name: str, at: tuple[int, ...], result: Tensor) -> str:
    """What an entry is and must be: what is exact, as it is in the result's dtype; else with how far it may be off."""
    right, shown = case.expected[name], lambda m: f"{float(m):.9g}"
    if name in case.tolerance:
        wanted = f"{shown(right[at])} ± {float(case.tolerance[name][at]):.2g}"
    else:
        wanted = shown(right[at].float().to(torch.float32 if result.dtype == torch.float64 else result.dtype))
    return f"{name}{list(at)} is {shown(result[at])}, not {wanted}"


def _unknown_borders(kernel: Kernel, case: Case) -> frozenset[str]:
    """Chunks of its own, or that may begin anew with each document, which is told by where it begins."""
    unknown = not kernel.told_of_chunks or ("seq_idx" in case.inputs and OFFSETS in kernel.accepts)
    return frozenset({"chunk"} if unknown else ())


def near(case: Case, position: int | None, row: int = 0, unknown: frozenset[str] = frozenset()) -> str:
    """A position of a row against the last border at or before it; unknown: borders that the kernel does not have."""
    if position is None:
        return "at the end"
    if position == 0:
        return "at the first position"
    borders = {what: places for what, places in case.borders.items() if what not in unknown}
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
