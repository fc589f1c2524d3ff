"""Options that met in no case that a kernel ran are asked together, at one size that it takes.

A kernel may say of what it does not take NotImplementedError, and then a case of the crossing that asks for it is not
run, with all else that meets in it. Which options those are, alone or together, is learned from what it refuses: a
row that it ran is changed in one option after the other. What it takes meets, and what never met is told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, product
from typing import Any

from conformance.asked import as_words, fitting, takes, told_apart, tried_with_options
from conformance.cases.factors import STRENGTH, Factors, factors_of
from conformance.cases.fitted import Size, exact_of, fitted_cases, ordinary_of, size_of
from conformance.cases.meeting import meets, rows_without
from conformance.cases.options import Option, option_of
from conformance.cases.told import as_told, placed
from conformance.findings import RAN, Ran
from conformance.kernel.arguments import STATE_OUT
from conformance.kernel.kernel import Kernel
from conformance.loader import Case

Together = frozenset[Option]
"""Options, no two of one factor."""
Levels = Mapping[str, Any]
Asks = Callable[[Case], Iterable[Ran]]

_NOT_OPTIONS = ("length", "chunk", "sizes", "spread")
_FEW = 0.1  # of what should meet: more of it is asked by a crossing
_MOST_ROWS = 400  # that are asked; what has not met then is told
_NEAR = 3  # of the rows that were run
_STEPS = 2_000  # of the search for a row


def levels_of(case: Case) -> dict[str, Any]:
    """The options of a case that mean something there, and whether a state is asked for: its last one, or those of
    documents, for which offsets alone ask by the same argument.
    """
    found = {**dict(told_apart(case)), "last state": bool(case.states)}
    return {name: value for name, value in found.items() if name in _names(case.op)}


def _names(op: str) -> list[str]:
    return [name for name in factors_of(op) if name not in _NOT_OPTIONS]


def taken(kernel: Kernel, op: str, found: Sequence[Ran] = ()) -> dict[str, list[Any]]:
    """The options of each factor that a kernel has arguments for; the first needs none. Not whether the last state is
    asked for, of a kernel that is seen to give none; nor the side of a gate, where there can be none.
    """
    factors: dict[str, list[Any]] = {}
    for name in _names(op):
        first, *others = _values(op, name)
        factors[name] = [first, *(v for v in others if name == "last state" or takes(kernel, op, (name, v)))]
    if kernel.gate_after is None:
        factors["z"] = [False]
    if kernel.gate_after:
        factors["gate"] = ["after"]
    if "gate" in factors and True not in factors["z"]:
        del factors["gate"]
    if "last state" in factors and _gives_no_state(kernel, found):
        del factors["last state"]
    return factors


def _gives_no_state(kernel: Kernel, found: Sequence[Ran]) -> bool:
    """Whether it has no argument for it, and gave none where one was right."""
    right = [each.results for each in found if each.results is not None and "last_state" in each.case.expected]
    return not {*STATE_OUT} & kernel.accepts and bool(right) and not any("last_state" in each for each in right)


def wanted(kernel: Kernel, op: str, found: Sequence[Ran] = ()) -> set[Together]:
    """All up to three options that a kernel has arguments for, and that may stand together."""
    factors = taken(kernel, op, found)
    all_of_it = set()
    for count in range(1, STRENGTH + 1):
        for names in combinations(factors, count):
            for values in product(*(factors[name] for name in names)):
                levels = dict(zip(names, values, strict=True))
                if meets({**levels, "op": op}) and not _of_no_gate(levels):
                    all_of_it.add(frozenset(levels.items()))
    return all_of_it


def _of_no_gate(levels: Levels) -> bool:
    """Whether they say on which side a gate is that is not there."""
    return "gate" in levels and levels.get("z") is False


def _needed(some: Together) -> dict[str, Any]:
    """These, and the gate whose side they say."""
    levels = dict(some)
    return levels | {"z": True} if "gate" in levels else levels


def met(rows: Iterable[Levels]) -> set[Together]:
    """All up to three options that stand together in some row."""
    different = {frozenset(row.items()) for row in rows}
    return {
        frozenset(some) for row in different for count in range(1, STRENGTH + 1) for some in combinations(row, count)
    }


def never_met(kernel: Kernel, found: Sequence[Ran]) -> tuple[str, ...]:
    """What a kernel has arguments for and no case that it ran has together, in words: the fewest options of each.
    What it has no argument for is told elsewhere, as are most options alone. Of a step, which is run on the cases of
    two operations, each names its own; nothing is said of one of which no case ran.
    """
    said: dict[str, None] = {}
    strided = any(each.strided for each in found)
    for op in kernel.operations():
        of_op = [each for each in found if each.case.op == op]
        if not (rows := _rows_run(of_op)):
            continue
        of = f"{op}: " if len(kernel.operations()) > 1 else ""
        there = met(levels_of(each.case) for each in of_op if not each.lacks)
        missing = wanted(kernel, op, of_op) - met(rows)
        for some in sorted(_least(missing), key=lambda some: (len(some), sorted(map(str, some)))):
            if some in there and (words := as_words(op, some, strided)):
                said[of + words] = None
    return tuple(said)


def _rows_run(found: Iterable[Ran]) -> list[dict[str, Any]]:
    return [levels_of(each.case) for each in found if each.finding.status in RAN]


def _least(some: Collection[Together]) -> list[Together]:
    """Those of which no part is among them."""
    return [each for each in some if not any(part in some for part in _parts(each))]


def _parts(some: Together) -> Iterator[Together]:
    yield from (frozenset(part) for count in range(1, len(some)) for part in combinations(some, count))


def asked_together(kernel: Kernel, op: str, found: Sequence[Ran], asks: Asks) -> Iterator[Ran]:
    """A kernel on what has not met in the cases of an operation that it was run on, at a size that it takes."""
    all_of_it = wanted(kernel, op, found)
    ran = [each.case for each in found if each.finding.status in RAN]
    missing = all_of_it - met(_rows_run(found))
    if not missing:
        return
    runs = lambda case: any(each.finding.status in RAN for each in asks(case))
    first: dict[str, Any] = {}
    size = fitting(kernel, op, ran, runs)
    if size is None:
        size, first = tried_with_options(kernel, op, taken(kernel, op, found), runs)
    if size is None:
        return
    meeting = _Meeting(op, size, taken(kernel, op, found), missing, asks)
    rows = [dict(row) for row in {frozenset(row.items()): None for row in _rows_run(found)}]
    meeting.rows += [meeting.filled(row) for row in rows]
    meeting.known |= met(rows)
    yield from meeting.begun(first, [case for case in ran if size_of(case) == size])
    if not meeting.base:
        return
    yield from meeting.alone()
    alone = any(len(some) == 1 for some in meeting.missing)
    if alone or len(meeting.missing) > _FEW * len(all_of_it) or meeting.met_alone:
        yield from meeting.crossed()
    yield from meeting.rest()


class _Meeting:
    """What should meet and has not, and what is known of what a kernel refuses.

    base: the options of a row that it ran; rows: those of all that it ran, of other sizes first; known: what met in
    them; refused: options that it does not take together, or alone; met_alone: whether an option was met here first.
    """

    def __init__(self, op: str, size: Size, factors: dict[str, list[Any]], missing: set[Together], asks: Asks):
        self.op, self.size, self.factors, self.missing, self.asks = op, size, factors, set(missing), asks
        self.without = frozenset(
            (name, v)
            for name in _names(op)
            for first, *others in [_values(op, name)]
            for v in (first, *others)
            if v not in factors.get(name, [first])
        )
        self.base: dict[str, Any] = {}
        self.rows: list[dict[str, Any]] = []
        self.known: set[Together] = set()
        self.refused: set[Together] = set()
        self.met_alone = False
        self.asked: dict[str, bool] = {}

    def filled(self, levels: Levels) -> dict[str, Any]:
        """A row with these, and the first of each other factor: of the gate's side, say, where there was no gate."""
        return {name: levels.get(name, values[0]) for name, values in self.factors.items()}

    def begun(self, first: Levels, ran: Sequence[Case]) -> Iterator[Ran]:
        """With a row that the kernel runs: without options, but of any dtype; or the least that it ran."""
        plain = self.filled({})
        others = sorted(
            (self.filled(levels_of(case)) for case in ran), key=lambda row: len(row.items() - plain.items())
        )
        dtypes = [{**plain, **first, "dtype": first.get("dtype", dtype)} for dtype in self.factors["dtype"]]
        for row in (*dtypes, *others[:_NEAR]):
            if all(row[name] in values for name, values in self.factors.items()) and (yield from self._ask(row)):
                self.base = row
                return

    def alone(self) -> Iterator[Ran]:
        """Each option that was never met, beside those of the base, and, where it is refused there, with one more."""
        for some in self._left(1):
            yield from self._ask(self.base | _needed(some))
        for some in self._left(1):
            for name, values in self.factors.items():
                for value in values if some in self.missing and name not in _needed(some) else ():
                    if value != self.base[name] and frozenset({(name, value)}) not in self.missing:
                        yield from self._ask({**self.base, name: value} | _needed(some))
            if some in self.missing and (yield from self._alone_with(some)) is None:
                self._refuse(some)

    def crossed(self) -> Iterator[Ran]:
        """Any three options that are taken, with other numbers of rows and documents as well."""
        without = self.without | {option for some in self.refused if len(some) == 1 for option in some}
        for case in fitted_cases(self.op, self.size, without):
            if case.name not in self.asked:
                yield from self._case(case)

    def rest(self) -> Iterator[Ran]:
        """What has not met yet: each in a row with as much more of it as there can be; pairs first."""
        for count in (2, 3):
            for some in self._left(count):
                if some in self.missing and len(self.asked) < _MOST_ROWS * 3:
                    yield from self._meet(some)

    def _left(self, count: int) -> list[Together]:
        """What is missing of so many options, in one order."""
        return sorted((each for each in self.missing if len(each) == count), key=lambda each: sorted(map(str, each)))

    def _meet(self, some: Together) -> Iterator[Ran]:
        full = self._completed(some)
        if full is not None:
            yield from self._ask(full)
        if some not in self.missing:
            return
        near = yield from self._alone_with(some)
        if near is None:
            self._refuse(some)
        elif full is not None:
            yield from self._learn(near, full)

    def _alone_with(self, some: Together) -> Generator[Ran, None, dict[str, Any] | None]:
        """A row that is run and holds these, made of the base or of rows near to it; None where there is none."""
        parts = sorted(_parts(some), key=lambda part: (-len(part), sorted(map(str, part))))
        near = (next((row for row in self.rows if part <= row.items()), self.base) for part in parts)
        known = (row for strength in (3, 2) if (row := self._of_known(_needed(some), some, strength, [_STEPS])))
        for row in chain((self.base,), known, near, self._any_two_with(some)):
            changed = {**row, **_needed(some)}
            if not self._holds_refused(changed) and (yield from self._ask(changed)):
                return changed
        return None

    def _any_two_with(self, some: Together) -> Iterator[dict[str, Any]]:
        """Rows with these in which any two others meet: they may be taken beside some that nothing yet has led to."""
        pinned = _needed(some)
        factors: Factors = {n: [v for v in values if pinned.get(n, v) == v] for n, values in self.factors.items()}
        yield from rows_without(factors, frozenset(), 2)

    def _of_known(self, row: dict[str, Any], some: Together, strength: int, left: list[int]) -> dict[str, Any] | None:
        """A row with these of which any so many others have met: nothing known is against it. left: steps that the
        search may take yet.
        """
        name = next((name for name in self.factors if name not in row), None)
        if name is None:
            return row
        for value in sorted(self.factors[name], key=lambda value: value != self.base[name]):
            left[0] -= 1
            if left[0] < 0:
                return None
            new = (name, value)
            beside = (frozenset((*rest, new)) for rest in combinations(row.items(), strength - 1))
            if all(each in self.known or len(each & some) > 1 or _of_no_gate(dict(each)) for each in beside) and (
                found := self._of_known({**row, name: value}, some, strength, left)
            ):
                return found
        return None

    def _learn(self, near: Levels, full: Levels) -> Iterator[Ran]:
        """Which two options of a refused row are not taken together, by a row that is run."""
        row = {**near}
        for name, value in full.items():
            if row[name] == value:
                continue
            if (yield from self._ask({**row, name: value})):
                row[name] = value
                continue
            for other in [level for level in row.items() if level[0] != name]:
                pair = frozenset({(name, value), other})
                if pair in self.missing and (yield from self._alone_with(pair)) is None:
                    self._refuse(pair)

    def _completed(self, some: Together) -> dict[str, Any] | None:
        """A row that holds these and as much more of what is missing as there is."""
        row = _needed(some)
        for name in sorted(self.factors, key=lambda name: -len(self.factors[name])):
            if name in row:
                continue
            values = [v for v in self.factors[name] if not self._holds_refused({**row, name: v})]
            if not values:
                return None
            row[name] = max(values, key=lambda value: (self._gain(row, (name, value)), value == self.base[name]))
        return row if meets({**row, "op": self.op}) else None

    def _gain(self, row: Levels, level: Option) -> int:
        return sum(
            frozenset((*rest, level)) in self.missing
            for count in range(1, STRENGTH)
            for rest in combinations(row.items(), count)
        )

    def _holds_refused(self, row: Levels) -> bool:
        levels = frozenset((name, value) for name, value in row.items() if name != "gate" or row.get("z") is not False)
        return any(some <= levels for some in self.refused)

    def _refuse(self, some: Together) -> None:
        self.refused.add(some)
        self.missing = {each for each in self.missing if not some <= each}

    def _ask(self, row: Levels) -> Generator[Ran, None, bool]:
        """Whether a row is run: with ordinary numbers, and then with exact ones. Pieces and documents end anywhere, or
        at multiples of 16, or where another sequence of this length begins.
        """
        for place, levels in placed(self.op, self.size, as_row(self.op, row)):
            first, *more = ordinary_of(self.op, place, levels)
            if (yield from self._case(as_told(first, levels))):
                for case in (*more, *exact_of(self.op, place, levels)):
                    yield from self._case(as_told(case, levels))
                return True
        return False

    def _case(self, case: Case) -> Generator[Ran, None, bool]:
        if case.name in self.asked:
            return self.asked[case.name]
        found = [*self.asks(case)]
        yield from found
        self.asked[case.name] = any(each.finding.status in RAN for each in found)
        if self.asked[case.name]:
            row = levels_of(case)
            self.rows.append(self.filled(row))
            here = met([row])
            self.met_alone = self.met_alone or any(len(some) == 1 and some in self.missing for some in here)
            self.known |= here
            self.missing -= here
        return self.asked[case.name]


def _values(op: str, name: str) -> list[Any]:
    return [option_of(name, value)[1] for value in factors_of(op)[name]]


def as_row(op: str, levels: Levels) -> dict[str, Any]:
    """Options as rows call them."""
    of_rows = factors_of(op)
    return {n: next(each for each in of_rows[n] if option_of(n, each)[1] == value) for n, value in levels.items()}
