"""How large the operands are that a kernel was asked with, and how they lay in memory, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from torch import Tensor

from conformance.features import OF_ARGUMENTS, features, operand_of, sizes
from conformance.findings import Ran
from conformance.kernel.arguments import OFFSETS, STATE_IN, TIME_AXIS
from conformance.kernel.kernel import Kernel, Layout
from conformance.loader import Case

_TOLD: dict[str, dict[str, str]] = {
    "selective_scan": {"channels": "channels", "columns": "state columns"},
    "ssd": {"heads": "heads", "channels of a head": "channels of a head", "columns": "state columns"},
    "conv": {"channels": "channels", "taps": "taps"},
    "norm": {"channels": "channels"},
    "delta_rule": {
        "heads": "heads",
        "places of a key": "places of a key",
        "channels of a value": "channels of a head",
    },
}
"""By operation the sizes that are told with the positions, and their names in `features.sizes`."""
_READ = {"state columns": ("B", "C"), "places of a key": ("k", "q")}
"""Sizes that no axis of the operand has: by what they are written and read."""
_COLUMNS = {"selective_scan": -2, "ssd": -1, "delta_rule": -1}
_OPTIONS = {*OF_ARGUMENTS.values(), "D of each channel of a head"} - {"gate after the norm"}
"""Of `features`: what a large size may stand without."""


def by_operation(ran: Sequence[Ran], said: Callable[[Sequence[Ran]], str]) -> Iterator[str]:
    """What is said of the cases of each operation, behind its name where there are several; not where it is ""."""
    ops = list(dict.fromkeys(each.case.op for each in ran))
    for op in ops:
        if words := said([each for each in ran if each.case.op == op]):
            yield f"{op}: {words}" if len(ops) > 1 else words


def asked_sizes(ran: Sequence[Ran], forms: Sequence[Kernel] = ()) -> Iterator[str]:
    """Of the cases that a kernel ran, a sentence for each operation: beyond these nothing is known of it.

    forms: those of initial states in which it was asked. A step is called once for each position.
    """
    length = "calls one after the other" if any(form.is_step for form in forms) else "positions"
    parts = lambda of_op: [
        *_ends(of_op, length),
        *_numbers(of_op),
        *_dense(of_op),
        *_dtypes(of_op),
        *_states(of_op, forms),
    ]
    return by_operation(ran, lambda of_op: "; ".join(parts(of_op)))


def positions_of(case: Case) -> int:
    """The most positions of one call: a sequence that is handed on in pieces is given in as many calls."""
    ends = [0, *case.options.get("cuts", []), case.expected["y"].shape[TIME_AXIS[case.op]]]
    return max(stop - start for start, stop in pairwise(ends))


def counted(case: Case, what: str) -> int:
    """How many of something a case has that are not 0 throughout: of these alone anything is asked."""
    if what in _READ:
        both = [_beside_0(case.inputs[name], _COLUMNS[case.op]) for name in _READ[what]]
        return int((both[0] & both[1]).sum())
    axes, operand = operand_of(case)
    return int(_beside_0(operand, axes.index(what)).sum()) if what in axes else sizes(case)[what]


def _beside_0(m: Tensor, axis: int) -> Tensor:
    return (m != 0).movedim(axis, 0).flatten(1).any(1)


def options_met(ran: Ran) -> frozenset[str]:
    """What a case has of what kernels have arguments for, several groups, and a decay beside 0, in words."""
    case, found = ran.case, features(ran.case)
    met = {words for words in found.keys() & _OPTIONS if words != "last state" or ran.states}
    met |= {"several groups"} if found.get("groups", 1) > 1 else set()
    decay = case.inputs.get("A", case.inputs.get("g"))
    met |= {"decay"} if decay is not None and bool(decay.any()) else set()
    several = "weight" in case.inputs and len(case.inputs["weight"].unique(dim=0)) > 1
    return frozenset(met | ({"a weight of each channel"} if several else set()))


def _ends(ran: Sequence[Ran], length: str) -> Iterator[str]:
    """Of each size: "channels: positions up to 1,025 with up to 6, 260 with up to 64 (without z)"; length: what is told
    in the place of positions.
    """
    met = [(each.case, options_met(each)) for each in ran]
    for what, name in _TOLD.get(ran[0].case.op, {}).items():
        found = [(counted(case, name), positions_of(case), some) for case, some in met]
        steps = frontier({(size, positions) for size, positions, _ in found})
        said = (f"{most:,} with up to {size:,}{_without(found, (size, most))}" for size, most in steps)
        yield f"{what}: {length} up to {', '.join(said)}"


def frontier(pairs: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """(size, positions) than which no pair has more of both, from the most positions on."""
    found: list[tuple[int, int]] = []
    for size, positions in sorted(pairs, reverse=True):
        if not found or positions > found[-1][1]:
            found.append((size, positions))
    return found[::-1]


def _without(found: Sequence[tuple[int, int, frozenset[str]]], step: tuple[int, int]) -> str:
    """The options that some case has, and none of just this size and so many positions: an option that a larger case
    has and a longer one was not asked at both.
    """
    there = {words for size, positions, some in found if (size, positions) == step for words in some}
    missing = sorted({words for _, _, some in found for words in some} - there, key=str.lower)
    return f" (without {', '.join(missing)})" if missing else ""


def _numbers(ran: Sequence[Ran]) -> Iterator[str]:
    """Of how many there are few: "rows 1, 2, 33"."""
    found = rows_and_groups(each.case for each in ran)
    yield from (f"{what} {', '.join(map(str, some))}" for what, some in found.items() if some)


def rows_and_groups(some: Iterable[Case]) -> dict[str, list[int]]:
    """How many rows and how many groups the cases have, each number once."""
    found = [sizes(case) for case in some]
    return {what: sorted({each[what] for each in found if what in each}) for what in ("rows", "groups")}


def _layouts(ran: Sequence[Ran]) -> dict[str, set[Layout]]:
    found: dict[str, set[Layout]] = {}
    for each in ran:
        for name, seen in each.layouts.items():
            found.setdefault(name, set()).update(seen)
    return found


def _dense(ran: Sequence[Ran]) -> Iterator[str]:
    """The operands that were dense in every call."""
    found = _layouts(ran)
    always = [name for name, seen in found.items() if all(each.dense for each in seen)]
    if always:
        yield f"always dense: {', '.join(always) if len(always) < len(found) else 'every operand'}"


def _dtypes(ran: Sequence[Ran]) -> Iterator[str]:
    """Which operands were given in which dtypes, and whether those of several dtypes ever differ within a case."""
    of: dict[tuple[str, ...], list[str]] = {}
    for name, seen in _layouts(ran).items():
        of.setdefault(tuple(sorted({str(each.dtype).removeprefix("torch.") for each in seen})), []).append(name)
    for dtypes, names in of.items():
        one = len(dtypes) > 1 and all(_of_one_dtype(each, names) for each in ran)
        yield f"{', '.join(names)} in {', '.join(dtypes)}{', all of one dtype' * (one and len(names) > 1)}"


def _of_one_dtype(ran: Ran, names: Sequence[str]) -> bool:
    return len({each.dtype for name in names for each in ran.layouts.get(name, ())}) < 2


def _states(of_op: Sequence[Ran], forms: Sequence[Kernel]) -> Iterator[str]:
    """Which of the two forms of an initial state beside offsets alone was asked, where one was: as it is read off a
    case.
    """
    name = STATE_IN.get(forms[0].op) if forms else None
    if forms and name in forms[0].accepts and forms[0].documents.offsets_alone:
        if not any({name, "seq_idx"} <= ran.case.inputs.keys() for ran in of_op):
            return
        words = {"one": "that of the first document", "each": "one of each document"}
        yield f"{name} beside {OFFSETS}: {', and '.join(words[each.states] for each in forms)}"
