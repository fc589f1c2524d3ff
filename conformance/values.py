"""How large and how small the numbers are that the cases have: `python -m conformance.values docs/conformance.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, log2
from pathlib import Path

from torch import Tensor

from conformance.cases import OPERATIONS, cases
from conformance.cases.crossings import CROSSINGS
from conformance.loader import Case
from conformance.sizes import by_operation
from conformance.steps import STEPS, steps_of

MARK, END = "<!-- table values -->\n", "<!-- end values -->"
WRITES = "Δ of a write"


@dataclass(frozen=True)
class Values:
    """least, largest: of all entries; smallest: the least size of one that is not 0."""

    least: float = inf
    largest: float = -inf
    smallest: float = inf

    def and_those_of(self, m: Tensor) -> Values:
        """With the entries of one operand more."""
        sizes = m[m != 0].abs()
        smallest = float(sizes.min()) if len(sizes) else inf
        least, largest = (float(m.min()), float(m.max())) if m.numel() else (inf, -inf)
        return Values(min(self.least, least), max(self.largest, largest), min(self.smallest, smallest))


@cache
def values(op: str) -> dict[str, Values]:
    """Of every operand and result of an operation, of a last state that is asked for, and of the steps that write,
    behind their bias, softplus and limits: where u or x is not 0.
    """
    return values_of((*cases(op), *(case for crossing in CROSSINGS for case in crossing(op))))


def values_of(some: Iterable[Case]) -> dict[str, Values]:
    """The same of some cases of one operation."""
    found: dict[str, Values] = {}
    for case in some:
        for name, m in _numbers(case):
            found[name] = found.get(name, Values()).and_those_of(m.double())
    return found


def asked_values(ran: Sequence[Case]) -> Iterator[str]:
    """Of the cases that a kernel ran, in words, a sentence for each operation: beyond these nothing is known of it."""
    return by_operation(ran, _ends)


def _ends(ran: Sequence[Case]) -> str:
    found = values_of(ran).items()
    return ", ".join(f"{name} {shown(each.least)} … {shown(each.largest)}" for name, each in found)


def _numbers(case: Case) -> Iterator[tuple[str, Tensor]]:
    yield from ((name, m) for name, m in case.inputs.items() if name != "seq_idx")
    yield "y", case.expected["y"]
    if "last_state" in case.expected:
        yield "last state", case.expected["last_state"]
    if case.op in STEPS:
        yield WRITES, writing_steps(case)


def writing_steps(case: Case) -> Tensor:
    """The steps of a scan where it has something to write."""
    read = case.inputs["x"].any(-1) if case.op == "ssd" else case.inputs["u"]
    return steps_of(case)[read != 0]


def lines() -> Iterator[str]:
    """The table of the page."""
    yield "| operation | operand | least | largest | smallest beside 0 |"
    yield "| --- | --- | --- | --- | --- |"
    for op in OPERATIONS:
        for name, found in values(op).items():
            numbers = " | ".join(map(shown, (found.least, found.largest, found.smallest)))
            yield f"| {op} | {name if name in (WRITES, 'last state', 'y') else f'`{name}`'} | {numbers} |"


def shown(value: float) -> str:
    """A power of two as one, where it is large or small; else three digits."""
    size = abs(value)
    if not size:
        return "0"
    if (size >= 2**17 or size < 2**-6) and log2(size).is_integer():
        return f"{'−' * (value < 0)}2^{int(log2(size))}"
    return (f"{value:,.0f}" if size >= 1000 or value == int(value) else f"{value:.3g}").replace("-", "−")


def write(page: Path) -> None:
    """Put the table between its marks on a page."""
    before, mark, rest = page.read_text("utf-8").partition(MARK)
    page.write_text(before + mark + "\n".join(lines()) + "\n" + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
