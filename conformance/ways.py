"""Whether each way to tell a kernel of documents met each option in what it ran; what did not is asked of it, or told.

A kernel of few sizes refuses most cases of the crossing, and with them what meets there. Which options it takes is
known when it has been asked for them at a size of its own: only then each way is crossed with them, at that size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from conformance.asked import fitting, named
from conformance.cases.fitted import Size
from conformance.cases.options import Option, options_of
from conformance.cases.told import WAYS, asked_in_name, fitted_told_cases, fitted_told_with, meeting_ways, ways_in_rows
from conformance.findings import RAN, Ran
from conformance.kernel.arguments import OFFSETS
from conformance.kernel.kernel import Kernel
from conformance.loader import Case

Asks = Callable[[Case], Iterable[Ran]]
Together = frozenset[Option]

_STARTS: set[Option] = {("start", "documents"), ("start", "state and documents")}
_WORDS: dict[Option, str] = {
    ("whole", True): "one document that fills its row",
    ("told", "numbers"): "seq_idx alone in one row",
    ("told", "offsets"): f"{OFFSETS} alone",
    ("asked", "no states"): f"{OFFSETS} without a state",
    ("asked", "no states of documents"): "no states of documents",
    ("start", "documents"): "no state before documents",
    ("whole", False): "several documents",
    ("told", None): "documents told as elsewhere",
    ("asked", None): "states",
}


def is_told(kernel: Kernel) -> bool:
    """Whether it has an argument that tells it of documents."""
    return not kernel.is_step and bool({OFFSETS, "seq_idx"} & kernel.accepts)


def in_each_way(kernel: Kernel, op: str, found: Sequence[Ran], without: frozenset[Option], asks: Asks) -> Iterator[Ran]:
    """A kernel on what has not met of the ways and of the options that it takes, at a size that it takes."""
    without = without - _STARTS
    missing = {*_missing(op, found, without)} if is_told(kernel) else set()
    ran = _cases_run(found)
    runs = lambda case: any(each.finding.status in RAN for each in asks(case))
    size = fitting(kernel, op, ran, runs) if missing else None
    if size is None:
        return
    known = _met_in(ran)
    names = {case.name for case in ran}
    for case in _asked_at(op, size, without, missing, known):
        if case.name not in names:
            for each in asks(case):
                yield each
                if each.finding.status in RAN:
                    known |= _met(each.case)
                    missing -= known


def _asked_at(
    op: str, size: Size, without: frozenset[Option], missing: set[Together], known: set[Together]
) -> Iterator[Case]:
    """Of the crossing those cases in which something missing meets; then each that still is, of ways that it takes."""
    for case in fitted_told_cases(op, size, without):
        if _met(case) & missing:
            yield case
    for some in sorted(missing, key=lambda some: sorted(map(str, some))):
        if some in missing and all(_is_known(option, known) for option in some):
            yield from fitted_told_with(op, size, some, without)


def never_told(kernel: Kernel, op: str, found: Sequence[Ran], without: frozenset[Option]) -> tuple[str, ...]:
    """The ways that met an option in no case that a kernel ran, in words: of ways and options that it ran, the option
    beside documents.
    """
    if not is_told(kernel):
        return ()
    ran = [case for case in _cases_run(found) if case.op == op]
    known = _met_in(ran)
    packed = {option for case in ran if "seq_idx" in case.inputs for option in options_of(case)}
    packed |= {("last state", "last_state" in case.expected) for case in ran if "seq_idx" in case.inputs}
    missing = [each for each in _missing(op, found, without - _STARTS) if all(_is_known(o, known) for o in each)]
    least = [each for each in missing if not any(other < each for other in missing)]
    told = [each for each in least if all(option in packed for option in each if option[0] not in WAYS[op])]
    return tuple(sorted(" with ".join(sorted(_named(op, option) for option in each)) for each in told))


def _missing(op: str, found: Sequence[Ran], without: frozenset[Option]) -> frozenset[Together]:
    return ways_in_rows(op, without) - _met_in(_cases_run(found))


def _cases_run(found: Sequence[Ran]) -> list[Case]:
    return [each.case for each in found if each.finding.status in RAN]


def _met_in(cases: Iterable[Case]) -> set[Together]:
    return {some for case in cases for some in _met(case)}


def _met(case: Case) -> set[Together]:
    """What meets of the ways and the options in a case."""
    if case.op not in WAYS or "seq_idx" not in case.inputs:
        return set()
    return meeting_ways(case.op, {**dict(options_of(case)), **asked_in_name(case)})


def _is_known(option: Option, known: Collection[Together]) -> bool:
    """Whether a way was met with anything; an option is asked beside each."""
    return option[0] not in ("whole", "told", "asked") or not option[1] or any(option in some for some in known)


def _named(op: str, option: Option) -> str:
    return _WORDS.get(option) or named(op, option)
