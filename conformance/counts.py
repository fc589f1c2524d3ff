"""How many cases there are of each kind, and of which sizes: `python -m conformance.counts` writes them on a page.

All numbers are read off the cases, as they are drawn for a kernel that takes all options, and documents in every way.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch
from torch import Tensor

from conformance import exact, values
from conformance.cases import OPERATIONS
from conformance.cases.crossings import NAMED
from conformance.cases.draw import name_of
from conformance.cases.factors import DTYPES
from conformance.cases.kinds import KINDS, all_of, of_kind
from conformance.features import operand_of, sizes
from conformance.kernel.arguments import TIME_AXIS
from conformance.loader import Case, ends_of_documents
from conformance.stages import STAGES
from conformance.steps import STEPS, steps_of

PAGE = Path(__file__).parents[1] / "docs" / "conformance_cases.md"
_SMALLEST_CHUNK = 16
"""Positions: that many or a multiple have the chunks of most kernels whose chunks are their own."""
_NONE = "–"


def ordinary_numbers(op: str) -> list[Case]:
    """The cases of ordinary numbers, of every kind in which options meet."""
    return [case for kind in NAMED for case in of_kind(kind, op) if case.tolerance]


def stages() -> Iterator[str]:
    """Of each stage what is asked, and how many cases each operation has."""
    yield from _head("stage", "what is asked", *OPERATIONS)
    found = {op: Counter(case.stage for case in all_of(op)) for op in OPERATIONS}
    for stage, asks in STAGES.items():
        yield _row(stage, asks, *(f"{found[op][stage] or _NONE}" for op in OPERATIONS))


def kinds() -> Iterator[str]:
    """How many cases of each kind: exact ones, and those that are held to a tolerance."""
    yield from _head("cases", *OPERATIONS)
    for kind in KINDS:
        yield _row(kind, *(_exact_and_near(of_kind(kind, op)) for op in OPERATIONS))
    yield _row("all", *(_exact_and_near(all_of(op)) for op in OPERATIONS))


def _exact_and_near(found: Sequence[Case]) -> str:
    near = sum(bool(case.tolerance) for case in found)
    return f"{len(found) - near} + {near}" if found else _NONE


def lengths() -> Iterator[str]:
    """How many positions the sequences of each kind have, in which chunks and dtypes."""
    yield from _head("operation", "cases", "positions", "chunk_size", "dtypes")
    for op, kind in product(OPERATIONS, KINDS):
        if found := of_kind(kind, op):
            chunks = {case.options["chunk_size"] for case in found if "chunk_size" in case.options}
            used = {name_of(operand_of(case)[1].dtype) for case in found}
            dtypes = ", ".join(name for name in DTYPES if name in used)
            yield _row(op, kind, _listed(map(positions, found)), _listed(chunks) or _NONE, dtypes)


def positions(case: Case) -> int:
    """Of a sequence, also where it is handed on in pieces."""
    return case.expected["y"].shape[TIME_AXIS[case.op]]


def numbers() -> Iterator[str]:
    """Each size of the operands, and how many documents stand in a row."""
    yield from _head("operation", "how many", "in some case")
    for op in OPERATIONS:
        found: dict[str, set[int]] = {}
        for case in all_of(op):
            counts = {what: {count} for what, count in sizes(case).items() if what != "positions"}
            for what, some in (counts | {"documents in a row": set(documents(case))}).items():
                found.setdefault(what, set()).update(some)
        yield from (_row(op, what, _listed(some)) for what, some in found.items() if some)


def documents(case: Case) -> Iterator[int]:
    """How many each row of a case has that is told of documents."""
    yield from (len(ends_of_documents(row)) for row in case.inputs.get("seq_idx", ()))


def ranges() -> Iterator[str]:
    """Between which values the functions of ordinary numbers are asked."""
    yield from _head("operation", "of ordinary numbers", "least", "largest", "smallest beside 0")
    for op in OPERATIONS:
        found: dict[str, values.Values] = {}
        for case in ordinary_numbers(op):
            for name, m in functions_of(case):
                found[name] = found.get(name, values.Values()).and_those_of(m)
        for name, some in found.items():
            yield _row(op, name, *map(values.shown, (some.least, some.largest, some.smallest)))


def functions_of(case: Case) -> Iterator[tuple[str, Tensor]]:
    """Δ behind its bias, softplus and limits; softplus itself; exp of a decay; and of what silu is taken.

    Of an exp there are the least and the largest of each channel, head or row.
    """
    if case.op in STEPS:
        yield "Δ", steps_of(case)
        if case.options.get(STEPS[case.op][2]):
            yield "softplus", steps_of(_without_limits(case))
        yield "exp(ΔA)", exponents(case).double().exp()
    if "g" in case.inputs:
        yield "exp(g)", case.inputs["g"].double().exp()
    if "z" in case.inputs:
        yield "z, of silu", case.inputs["z"].double()
    if case.options.get("activation"):
        yield "sum, of silu", sums(case)


def _without_limits(case: Case) -> Case:
    return replace(case, options={name: value for name, value in case.options.items() if name != "dt_limit"})


def sums(case: Case) -> Tensor:
    """What the activation of a convolution is taken of."""
    options = {name: value for name, value in case.arguments.items() if name != "activation"}
    inputs = {name: m.float() if m.is_floating_point() else m for name, m in case.inputs.items()}
    return torch.from_numpy(exact.conv(exact.Double, **inputs, **options)["y"].astype(float))


def exponents(case: Case) -> Tensor:
    """ΔA of each channel or head: the products of the least and largest Δ with the least and largest A."""
    steps, rates = steps_of(case).double(), case.inputs["A"].double()
    of_time = (0, 2) if case.op == "selective_scan" else (0, 1)
    ends = [steps.amin(of_time), steps.amax(of_time)]
    rates = rates if rates.dim() == 2 else rates[:, None]
    return torch.stack([end * rate for end in ends for rate in (rates.amin(1), rates.amax(1))])


def endings() -> Iterator[str]:
    """Where documents end in cases in which a state is to go on over the ends of chunks."""
    yield from _head("operation", "ordinary, with documents", "end with a chunk", "wide states", "end with a chunk")
    for op in OPERATIONS:
        ordinary = [case for case in of_kind("ordinary", op) if "seq_idx" in case.inputs]
        wide = [case for case in of_kind("where chunks meet", op) if not case.tolerance and "seq_idx" in case.inputs]
        counts = [str(count) for some in (ordinary, wide) for count in (len(some), sum(map(ends_with_a_chunk, some)))]
        yield _row(op, *counts)


def ends_with_a_chunk(case: Case) -> bool:
    """Whether a document, but the last of its row, ends where a chunk does: of this case, or of 16 positions."""
    size = case.options.get("chunk_size", _SMALLEST_CHUNK)
    return any(end % size == 0 for row in case.inputs["seq_idx"] for end in ends_of_documents(row)[:-1])


def _listed(some: Iterable[int]) -> str:
    """Numbers in order: three neighbours or more as "1–5"."""
    runs: list[list[int]] = []
    for number in sorted({*some}):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = ([f"{run[0]:,}–{run[-1]:,}"] if len(run) > 2 else [f"{number:,}" for number in run] for run in runs)
    return ", ".join(words for each in said for words in each)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _head(*names: str) -> Iterator[str]:
    yield _row(*names)
    yield _row(*["---"] * len(names))


TABLES: Mapping[str, Callable[[], Iterator[str]]] = {
    "stages": stages,
    "kinds": kinds,
    "lengths": lengths,
    "numbers": numbers,
    "ranges": ranges,
    "endings": endings,
    "values": values.lines,
}
"""By the names of their marks on the page."""


def marks(name: str) -> tuple[str, str]:
    """Between which lines a table stands."""
    return f"<!-- table {name} -->\n", f"<!-- end {name} -->"


def write(page: Path) -> None:
    """Put the tables between their marks on a page."""
    text = page.read_text("utf-8")
    for name, table in TABLES.items():
        mark, end = marks(name)
        before, found, rest = text.partition(mark)
        if not found or end not in rest:
            raise ValueError(f"{page} has no lines {mark.strip()} and {end}, between which the table would stand.")
        text = before + mark + "\n".join(table()) + "\n" + end + rest.partition(end)[2]
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
