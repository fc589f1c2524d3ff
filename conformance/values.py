"""How large and how small the numbers are that the cases have."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, log2

from torch import Tensor

from conformance.cases import OPERATIONS
from conformance.cases.companion import RANDOM
from conformance.cases.each_state import of_each_document
from conformance.cases.kinds import all_of
from conformance.findings import Ran
from conformance.kernel.arguments import OF_A_STEP
from conformance.loader import Case
from conformance.sizes import by_operation
from conformance.steps import STEPS, steps_of

WRITES = "Δ of a write"
_RESULTS = ("y", "last state", "document states")


@dataclass(frozen=True)
class Values:
    """least, largest: of all entries; smallest: the least size of one that is not 0."""

    least: float = inf
    largest: float = -inf
    smallest: float = inf

    def and_those_of(self, m: Tensor, near: bool = True) -> Values:
        """With the entries of one operand more; near: whether one as small as the least of them shows."""
        beside_0 = m[m != 0].abs()
        smallest = float(beside_0.min()) if near and len(beside_0) else inf
        least, largest = (float(m.min()), float(m.max())) if m.numel() else (inf, -inf)
        return Values(min(self.least, least), max(self.largest, largest), min(self.smallest, smallest))


@cache
def values(op: str) -> dict[str, Values]:
    """Of every operand and result of an operation, of a last state that is asked for, and of the steps that write,
    behind their bias, softplus and limits: where u or x is not 0.
    """
    return values_of((each, each.expected.keys()) for case in all_of(op) for each in (case, of_each_document(case)))


def values_of(some: Iterable[tuple[Case, Container[str]]]) -> dict[str, Values]:
    """The same of some cases of one operation, each with the results that are compared."""
    found: dict[str, Values] = {}
    for case, compared in some:
        for name, m in _numbers(case, compared):
            found[name] = found.get(name, Values()).and_those_of(m.double(), near=not case.name.startswith(RANDOM))
    return found


def asked_values(ran: Sequence[Ran], step: bool = False) -> Iterator[str]:
    """Of the cases that a kernel ran, in words, a sentence for each operation: beyond these nothing is known of it.

    step: whether it is one, and so has names of its own for operands.
    """
    return by_operation(ran, lambda of_op: _ends(of_op, OF_A_STEP if step else {}))


def _ends(ran: Sequence[Ran], names: Mapping[str, str]) -> str:
    values = values_of((each.case, each.results or ()) for each in ran)
    found = [(names.get(name, name), each) for name, each in values.items()]
    said = [f"{name} {shown(each.least)} … {shown(each.largest)}{_beside_0(each)}" for name, each in found]
    eps = sorted({each.case.options["eps"] for each in ran if "eps" in each.case.options})
    return ", ".join([*said, *([f"eps {' and '.join(map(str, eps))}"] if eps else [])])


def _beside_0(found: Values) -> str:
    """The least size, where some entries are of either sign or 0."""
    told = found.least <= 0 <= found.largest and found.smallest < inf
    return f" (beside 0 from {shown(found.smallest)})" if told else ""


def _numbers(case: Case, compared: Container[str]) -> Iterator[tuple[str, Tensor]]:
    yield from ((name, m) for name, m in case.inputs.items() if name != "seq_idx")
    yield "y", case.expected["y"]
    yield from ((name.replace("_", " "), case.expected[name]) for name in case.states if name in compared)
    if case.op in STEPS:
        yield WRITES, writing_steps(case)


def writing_steps(case: Case) -> Tensor:
    """The steps of a scan where it has something to write."""
    read = case.inputs["x"].any(-1) if case.op == "ssd" else case.inputs["u"]
    return steps_of(case)[read != 0]


def lines() -> Iterator[str]:
    """The table of a page, which `conformance.counts` writes."""
    yield "| operation | operand | least | largest | smallest beside 0 |"
    yield "| --- | --- | --- | --- | --- |"
    for op in OPERATIONS:
        for name, found in values(op).items():
            numbers = " | ".join(map(shown, (found.least, found.largest, found.smallest)))
            yield f"| {op} | {name if name in (WRITES, *_RESULTS) else f'`{name}`'} | {numbers} |"


def shown(value: float) -> str:
    """A power of two as one, where it is large or small; else three digits."""
    size = abs(value)
    if not size:
        return "0"
    if (size >= 2**17 or size < 2**-6) and log2(size).is_integer():
        return f"{'−' * (value < 0)}2^{int(log2(size))}"
    return (f"{value:,.0f}" if size >= 1000 or value == int(value) else f"{value:.3g}").replace("-", "−")
