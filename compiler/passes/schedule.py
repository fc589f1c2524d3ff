"""Pass 5, schedule: which block computes what.

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

import numpy as np

from compiler.analysis.linear_form import Form
from compiler.analysis.one_channel import is_rectified
from compiler.context import Context
from compiler.gadgets.gadget import Gadget, Operands, Port
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream
from compiler.passes.direct_sums import DirectSums
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
    forms: dict[Stream, Form] = field(repr=False)
    least: int
    mirrored: dict[int, frozenset[tuple]] = field(default_factory=dict)

    @property
    def sums(self) -> bool:
        """Whether a block is a direct sum of column groups."""
        return bool(self.mirrored)


def served_in_block(atom: Stream, lag: int, form: Form, port: Port) -> bool:
    """Whether a port takes this atom from a rectifier of its own block, so that it needs no lane."""
    if lag or port == "lanes" or not isinstance(atom.operation, ops.Relu):
        return False
    return port == "linear" or is_rectified(form)


def column_group(stream: Stream, target: Target) -> tuple | None:
    """What an operation needs the shared columns B and C to be; None when it has no state.

    Where channels cannot keep out of the state, operations without one need a block without columns.
    """
    group = target.needed_gadget(stream.operation).column_group(stream)
    return ("no columns",) if group is None and not target.apart else group


def schedule(circuit: Circuit, context: Context, sums: bool = False) -> Schedule:
    """Assign every operation to its block. sums: blocks may be direct sums of column groups, where that saves any."""
    target = context.target
    gadgets = {s: gadget for s in circuit.streams if (gadget := target.gadget(s.operation)) is not None}
    absorbed = {part for s, gadget in gadgets.items() for part in gadget.absorbs(s)}
    computed = {s: gadget.operands(s, target) for s, gadget in gadgets.items() if s not in absorbed}
    read = [circuit.output, *(operand for ports in computed.values() for operand, _ in ports)]
    forms = {operand: context.form(operand) for operand in read}
    on_lanes, in_ports = _demand(circuit.output, computed, gadgets, forms)
    placed = _place(computed, on_lanes, forms, context, sums)
    blocks: list[list[Stream]] = [[] for _ in range(1 + placed.last)]
    for stream, block in placed.block_of.items():
        blocks[block].append(stream)
    return Schedule(circuit, blocks, on_lanes, in_ports, forms, placed.least, placed.mirrored)


# Demand: which numbers of which atoms are read at all, and how ----------------------------------

Computed = dict[Stream, Operands]


def _demand(output: Stream, computed: Computed, gadgets: dict[Stream, Gadget], forms: dict) -> tuple[dict, dict]:
    on_lanes: dict[Stream, np.ndarray] = {}
    in_ports: dict[Stream, np.ndarray] = {}
    _ask(forms[output], np.ones(output.width, dtype=bool), "lanes", on_lanes, in_ports)
    for stream in reversed(computed):
        wanted = np.zeros(stream.width, dtype=bool)
        for asked in (on_lanes.get(stream), in_ports.get(stream)):
            wanted |= asked if asked is not None else False
        if wanted.any():
            for (operand, port), rows in zip(computed[stream], gadgets[stream].rows(stream, wanted), strict=True):
                _ask(forms[operand], rows, port, on_lanes, in_ports)
    return on_lanes, in_ports


def _ask(form: Form, rows: np.ndarray, port: Port, on_lanes: dict, in_ports: dict) -> None:
    """Mark the numbers of each atom that the wanted rows of a form read."""
    for (atom, lag), matrix in form.items():
        columns = np.zeros(atom.width, dtype=bool)
        columns[matrix.indices[np.repeat(rows, np.diff(matrix.indptr))]] = True
        target = in_ports if served_in_block(atom, lag, form, port) else on_lanes
        target[atom] = target[atom] | columns if atom in target else columns


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


def _place(
    computed: Computed, on_lanes: dict[Stream, np.ndarray], forms: dict, context: Context, sums: bool
) -> _Placed:
    """In graph order, or by urgency, or with direct sums, each where that takes fewer blocks than the one before."""
    groups: dict[Stream, tuple | None] = {}

    def group_of(stream: Stream) -> tuple | None:
        groups[stream] = column_group(stream, context.target)
        return groups[stream]

    plain = _in_graph_order(computed, on_lanes, forms, group_of)
    best = _Placed(plain, 1 + max(plain.values(), default=-1))
    if len(set(groups.values()) - {None}) < 2:
        return best
    best.least = 1 + max(_in_graph_order(computed, on_lanes, forms, lambda stream: None).values())
    reads = {stream: _reads(ports, forms, computed) for stream, ports in computed.items()}
    urgent = by_urgency(reads, list(plain), groups)
    best.block_of = urgent if max(urgent.values()) < best.last else plain
    if sums:
        _join(best, lambda together: by_urgency(reads, list(plain), groups, together), DirectSums(groups, context))
    return best


def _join(best: _Placed, placing: Callable, sums: DirectSums) -> None:
    """Direct sums of as few groups as save the most blocks."""
    for most in range(2, 1 + len(sums.members)):
        if best.last + 1 == best.least:
            return
        joined = placing(lambda groups, most=most: len(groups) <= most and sums.mirrored(groups) is not None)
        if max(joined.values()) < best.last:
            best.block_of, best.mirrored = joined, sums.in_blocks(joined)


def _reads(ports: Operands, forms: dict[Stream, Form], computed: Computed) -> list[tuple[Stream, bool]]:
    """What an operation reads of others: (the atom, whether a port of its block computes it)."""
    found = {
        (atom, served_in_block(atom, lag, forms[operand], port)): None
        for operand, port in ports
        for atom, lag in forms[operand]
        if atom in computed
    }
    return list(found)


def _in_graph_order(
    computed: Computed,
    on_lanes: dict[Stream, np.ndarray],
    forms: dict,
    group_of: Callable[[Stream], tuple | None],
) -> dict[Stream, int]:
    earliest: dict[Stream, int] = {}  # the first block in which an operation's operands stand on lanes
    block_of: dict[Stream, int] = {}
    free = _FreeBlocks()
    for stream, ports in computed.items():
        earliest[stream] = max(_level(forms[s], port, earliest, block_of) for s, port in ports)
        if stream in on_lanes and on_lanes[stream].any():
            block_of[stream] = free.first(earliest[stream], group_of(stream))
    return block_of


def _level(form: Form, port: Port, earliest: dict[Stream, int], block_of: dict[Stream, int]) -> int:
    level = 0
    for atom, lag in form:
        if served_in_block(atom, lag, form, port):
            level = max(level, earliest[atom])
        else:  # sources stand on lanes before the first block
            level = max(level, block_of.get(atom, -1) + 1)
    return level


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
