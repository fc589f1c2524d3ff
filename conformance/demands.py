"""What a kernel demands is found first, and what else it takes is asked beside that.

One that takes bfloat16 alone, or nothing without an activation, refuses most basic cases for this, whatever else they
have. So a row that it runs is looked for, with as few options as may be, and each option, form of an operand or size of
a chunk that no basic case of it had is asked in that row. What it refuses there it does not take.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from conformance.asked import Runs, fitting, takes, with_options
from conformance.cases.factors import LENGTHS, factors_of
from conformance.cases.fitted import Size, exact_of, ordinary_of, size_of
from conformance.cases.forms import FORMS, forms_of
from conformance.cases.options import Option, firsts
from conformance.cases.told import as_told, placed
from conformance.findings import RAN, Ran
from conformance.kernel.kernel import Kernel
from conformance.loader import Case
from conformance.together import as_row, levels_of, taken

_CHUNK = 64  # whose multiples a kernel may demand
_LONGER = 4  # times as many positions
_NEAR = 5  # rows that were run, from which one with fewer options is made
_NEEDS: Mapping[str, Mapping[str, Any]] = {
    "shared": {"batch": 2},
    "numbers": {"start": "documents"},
    "gate": {"z": True},
}
"""What something stands beside only."""


@dataclass(frozen=True)
class Demand:
    """A row that a kernel runs: its size, and its options, of which none can be left out."""

    op: str
    size: Size
    levels: Mapping[str, Any]

    def cases(self, more: Mapping[str, Any]) -> Iterator[Case]:
        """The row with more options, in each of its places."""
        return _cases(self.op, self.size, {**self.levels, **more})

    def chunks(self, chunk: int) -> Iterator[Case]:
        """The row in chunks of so many positions, over its length and over two of them."""
        sizes, length, _ = self.size
        for positions in (length, 2 * chunk):
            yield from _cases(self.op, (sizes, positions, chunk), self.levels)

    def forms(self, form: Option) -> Iterator[Case]:
        """The row with a form of an operand, in exact numbers, over as many positions or more: few may not have it."""
        name, value = form
        sizes, length, chunk = self.size
        beside = {**_NEEDS.get(name, {})} | ({"limit": "both"} if (self.op, name) == ("ssd", "steps below 0") else {})
        row = {name: value, **as_row(self.op, {**self.levels, **beside})}
        for positions in (length, _LONGER * length):
            for place, levels in placed(self.op, (sizes, positions, chunk), row):
                cases = (as_told(case, levels) for case in exact_of(self.op, place, levels))
                yield from (case for case in cases if form in forms_of(case))


def _cases(op: str, size: Size, levels: Mapping[str, Any]) -> Iterator[Case]:
    for place, row in placed(op, size, as_row(op, levels)):
        yield as_told(ordinary_of(op, place, row)[0], row)


def demand_of(
    kernel: Kernel, op: str, found: Sequence[Ran], runs: Runs, lengths: Sequence[int] = LENGTHS
) -> Demand | None:
    """What a kernel demands at sizes of the crossing; None where it runs at none of them. found: what was asked."""
    return _demand_at([*_places(kernel, op, found, lengths)], kernel, op, found, runs)


def demand_anywhere(kernel: Kernel, op: str, found: Sequence[Ran], runs: Runs) -> Demand | None:
    """The same, or else at a size that it takes."""
    if demand := demand_of(kernel, op, found, runs):
        return demand
    size = fitting(kernel, op, [each.case for each in found if each.finding.status in RAN], runs)
    return _demand_at([size], kernel, op, found, runs) if size else None


def _demand_at(places: Sequence[Size], kernel: Kernel, op: str, found: Sequence[Ran], runs: Runs) -> Demand | None:
    first = _first(kernel, op, found)
    runs_with = lambda size, row: any(runs(case) for case in _cases(op, size, row))
    for size, row in _rows_at(places, kernel, op, found):
        if runs_with(size, row):
            for name, value in first.items():
                fewer = {**row, name: value}
                row = fewer if fewer != row and runs_with(size, fewer) else row
            return Demand(op, size, row)
    return None


def _first(kernel: Kernel, op: str, found: Sequence[Ran] = ()) -> dict[str, Any]:
    """What each factor is where nothing is asked by it."""
    return {name: values[0] for name, values in taken(kernel, op, found).items()}


def _rows_at(
    places: Sequence[Size], kernel: Kernel, op: str, found: Sequence[Ran] = ()
) -> Iterator[tuple[Size, dict[str, Any]]]:
    """Rows of which a kernel may run one: without options in every dtype, as near to those as any that it ran, then, at
    one size, with what one kernel or another demands.
    """
    factors, first = taken(kernel, op, found), _first(kernel, op, found)
    near = [first | {name: v for name, v in row.items() if name in first} for row in _fewest(first, found)]
    yield from product(places, [*({**first, "dtype": dtype} for dtype in factors["dtype"]), *near])
    yield from product(places[:1], (first | row for row in with_options(factors)))


def small_cases(kernel: Kernel, op: str) -> Iterator[Case]:
    """Cases at sizes of the crossing, of which a kernel may run one: in every dtype, and with what it may demand."""
    for size, row in _rows_at([*_places(kernel, op, (), LENGTHS)], kernel, op):
        yield from _cases(op, size, row)


def _fewest(first: Mapping[str, Any], found: Iterable[Ran]) -> list[dict[str, Any]]:
    """The options of some cases that were run, from the fewest on."""
    rows = {frozenset(levels_of(each.case).items()) for each in found if each.finding.status in RAN}
    order = sorted(rows, key=lambda row: (len(row - first.items()), sorted(map(str, row))))
    return [dict(row) for row in order[:_NEAR]]


def _places(kernel: Kernel, op: str, found: Iterable[Ran], lengths: Sequence[int]) -> Iterator[Size]:
    """Sizes of the crossing, at multiples of a chunk where it has some, in chunks that were run before others."""
    factors = factors_of(op, lengths)
    whole = [length for length in factors["length"] if length % _CHUNK == 0] or sorted(factors["length"])[::-1]
    ran = {size_of(each.case)[2] for each in found if each.finding.status in RAN}
    chunks = sorted(factors.get("chunk", [0]), key=lambda chunk: chunk not in ran)
    chunks = chunks if "chunk_size" in kernel.accepts else chunks[:1]
    yield from ((sizes, length, chunk) for chunk, length, sizes in product(chunks, whole, factors["sizes"]))


def asked_beside(
    kernel: Kernel, demand: Demand, left: Collection[Option], asks: Callable[[Case], Ran]
) -> Iterator[Ran]:
    """The row with each of what is left, an option or a form: what is run of it is taken."""
    for option in sorted(left, key=str):
        name, value = option
        if name in FORMS[demand.op]:
            cases = demand.forms(option)
        elif option in firsts(demand.op) or takes(kernel, demand.op, option):
            cases = demand.cases({**_NEEDS.get(name, {}), name: value})
        else:
            continue
        for ran in map(asks, cases):
            yield ran
            if ran.finding.status in RAN:
                break
