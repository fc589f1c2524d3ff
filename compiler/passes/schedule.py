"""Schedule: which block computes what.

A block is a set of ports, not a chain: everything whose operands stand on lanes by then
goes into the earliest block, in graph order or by urgency (`passes.urgency`), whichever
takes fewer blocks. Rectifiers that only feed ports are computed in the block that needs
them and cost no lane. Operations with a state conflict: B and C are shared by all channels
of a block, so a block holds the state of one column group (the same key and query, or the
constant column of running sums and latches); where that is asked for, several that are a direct sum
(`passes.direct_sums`). Channels without a state (rectifiers,
products) never conflict: their Δ is 0. Time is linear in the graph, but for a logarithm.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from compiler.analysis.affine_form import AffineForm
from compiler.analysis.one_channel import is_rectified
from compiler.context import Context
from compiler.gadgets.gadget import Gadget, Operands
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream
from compiler.lowering.ports import Port
from compiler.passes.direct_sums import DirectSums, OutOfWork
from compiler.passes.urgency import by_urgency
from compiler.targets.target import Target


@dataclass
class Schedule:
    """The blocks of a circuit.

    blocks:  for each block the operations it computes, in graph order.
    on_lanes: for each atom, which of its numbers some reader needs on lanes (mask over its width).
    in_ports: for each rectifier, which of its numbers feed ports of their own block.
    least: how many blocks there would be if column groups were never in conflict.
    mirrored: for each block that is a direct sum of column groups, those that stand twice in it (`passes.direct_sums`).
    """

    circuit: Circuit
    blocks: list[list[Stream]]
    on_lanes: dict[Stream, np.ndarray]
    in_ports: dict[Stream, np.ndarray]
    forms: dict[Stream, AffineForm] = field(repr=False)
    least: int
    mirrored: dict[int, frozenset[tuple]] = field(default_factory=dict)

    @property
    def sums(self) -> bool:
        """Whether a block is a direct sum of column groups."""
        return bool(self.mirrored)


def served_in_block(atom: Stream, lag: int, form: AffineForm, port: Port) -> bool:
    """Whether a port takes this atom from a rectifier of its own block, so that it needs no lane."""
    if lag or port == "lanes" or not atom.operation.rectifies:
        return False
    return port == "linear" or is_rectified(form)


def column_group(stream: Stream, target: Target) -> tuple | None:
    """What an operation needs the shared columns B and C to be; None when it has no state.

    Where channels cannot keep out of the state, operations without one need a block without columns.
    """
    group = target.needed_gadget(stream.operation).column_group(stream)
    if target.heads:
        return None
    return ("no columns",) if group is None and not target.apart else group


def schedule(circuit: Circuit, context: Context, sums: bool = False) -> Schedule:
    """Assign every operation to its block. sums: blocks may be direct sums of column groups, where that saves any."""
    target = context.target
    gadgets = {s: gadget for s in circuit.streams if (gadget := target.gadget(s.operation)) is not None}
    absorbed = {part for s, gadget in gadgets.items() for part in gadget.absorbs(s)}
    computed = {s: gadget.operands(s, target) for s, gadget in gadgets.items() if s not in absorbed}
    read = [circuit.output, *(operand for ports in computed.values() for operand, _ in ports)]
    forms = {operand: context.form(operand) for operand in read}
    on_lanes, in_ports, reads = _demand(circuit.output, computed, gadgets, forms)
    placed = _place(reads, on_lanes, context, sums)
    blocks: list[list[Stream]] = [[] for _ in range(1 + placed.last)]
    for stream, block in placed.block_of.items():
        blocks[block].append(stream)
    return Schedule(circuit, blocks, on_lanes, in_ports, forms, placed.least, placed.mirrored)


# Demand: which numbers of which atoms are read at all, and how ----------------------------------

Masks = dict[Stream, np.ndarray]
Reads = dict[Stream, list[tuple[Stream, bool]]]  # for each wanted operation: (an atom, whether a port computes it)


def _demand(
    output: Stream, computed: dict[Stream, Operands], gadgets: dict[Stream, Gadget], forms: dict[Stream, AffineForm]
) -> tuple[Masks, Masks, Reads]:
    """(on_lanes, in_ports, what each wanted operation reads, in graph order)."""
    on_lanes: Masks = {}
    in_ports: Masks = {}
    reads: Reads = {}
    _ask(forms[output], np.ones(output.width, dtype=bool), "lanes", on_lanes, in_ports)
    for stream in reversed(computed):
        wanted = np.zeros(stream.width, dtype=bool)
        for asked in (on_lanes.get(stream), in_ports.get(stream)):
            wanted |= asked if asked is not None else False
        if wanted.any():
            operands = zip(computed[stream], gadgets[stream].rows(stream, wanted), strict=True)
            asked_for = [_ask(forms[operand], rows, port, on_lanes, in_ports) for (operand, port), rows in operands]
            reads[stream] = list(dict.fromkeys(read for part in asked_for for read in part))
    return on_lanes, in_ports, dict(reversed(reads.items()))


def _ask(form: AffineForm, rows: np.ndarray, port: Port, on_lanes: Masks, in_ports: Masks) -> list[tuple[Stream, bool]]:
    """Mark the numbers of each atom that the wanted rows of a form read, and list the atoms that they read."""
    found = []
    for (atom, lag), matrix in form.items():
        columns = np.zeros(atom.width, dtype=bool)
        columns[matrix.indices[np.repeat(rows, np.diff(matrix.indptr))]] = True
        if columns.any():
            in_port = served_in_block(atom, lag, form, port)
            masks = in_ports if in_port else on_lanes
            masks[atom] = masks[atom] | columns if atom in masks else columns
            found.append((atom, in_port))
    return found


# Placement ----------------------------------------------------------------------------------


@dataclass
class _Placed:
    """block_of: each operation that has lanes; least, mirrored: of the Schedule."""

    block_of: dict[Stream, int]
    least: int
    mirrored: dict[int, frozenset[tuple]] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return max(self.block_of.values(), default=-1)


def _place(reads: Reads, on_lanes: Masks, context: Context, sums: bool) -> _Placed:
    """In graph order, or by urgency, or with direct sums, each where that takes fewer blocks than the one before."""
    groups: dict[Stream, tuple | None] = {}

    def group_of(stream: Stream) -> tuple | None:
        groups[stream] = column_group(stream, context.target)
        return groups[stream]

    plain = _in_graph_order(reads, on_lanes, group_of)
    best = _Placed(plain, 1 + max(plain.values(), default=-1))
    if len(set(groups.values()) - {None}) < 2:
        return best
    best.least = 1 + max(_in_graph_order(reads, on_lanes, lambda stream: None).values())
    waits = {stream: [read for read in found if read[0] in reads] for stream, found in reads.items()}
    urgent = by_urgency(waits, list(plain), groups)
    best.block_of = urgent if max(urgent.values()) < best.last else plain
    if sums:
        _join(best, lambda together: by_urgency(waits, list(plain), groups, together), DirectSums(groups, context))
    return best


def _join(best: _Placed, placing: Callable, sums: DirectSums) -> None:
    """Direct sums of as few groups as save the most blocks, of those that are found in time."""
    for most in range(2, 1 + len(sums.members)):
        if best.last + 1 == best.least:
            return
        try:
            joined = placing(partial(sums.together, most=most))
        except OutOfWork:
            return
        if max(joined.values()) < best.last:
            best.block_of, best.mirrored = joined, sums.in_blocks(joined)


def _in_graph_order(reads: Reads, on_lanes: Masks, group_of: Callable[[Stream], tuple | None]) -> dict[Stream, int]:
    earliest: dict[Stream, int] = {}  # the first block in which an operation's operands stand on lanes
    block_of: dict[Stream, int] = {}
    free = _FreeBlocks()
    for stream, found in reads.items():  # sources stand on lanes before the first block
        levels = (earliest[atom] if in_port else block_of.get(atom, -1) + 1 for atom, in_port in found)
        earliest[stream] = max(levels, default=0)
        if stream in on_lanes:
            block_of[stream] = free.first(earliest[stream], group_of(stream))
    return block_of


class _FreeBlocks:
    """The first block from a level on whose columns are free or already of the wanted group."""

    def __init__(self) -> None:
        self._next_free: dict[int, int] = {}
        self._blocks_of: dict[tuple, list[int]] = {}

    def first(self, level: int, group: tuple | None) -> int:
        if group is None:
            return level
        own = self._blocks_of.setdefault(group, [])
        at = bisect_left(own, level)
        free = self._find(level)
        if at < len(own) and own[at] < free:
            return own[at]
        self._next_free[free] = free + 1
        insort(own, free)
        return free

    def _find(self, block: int) -> int:
        path = []
        while block in self._next_free:
            path.append(block)
            block = self._next_free[block]
        for passed in path:
            self._next_free[passed] = block
        return block
