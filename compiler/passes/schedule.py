"""Pass 5, schedule: which block computes what.

A block is a set of ports, not a chain: everything whose operands stand on lanes by then
goes into the earliest block. Rectifiers that only feed ports are computed in the block
that needs them and cost no lane. Operations with a state conflict: B and C are shared by
all channels of a block, so a block holds the state of one column group (the same key and
query, or the constant column of running sums and latches). Channels without a state
(rectifiers, products) never conflict: their Δ is 0. Time is linear in the graph.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from compiler.analysis.linear_form import Form, port_form
from compiler.analysis.one_channel import is_rectified
from compiler.context import Context
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream
from compiler.targets.ports import PortRules

SOURCES = (ops.Embed, ops.Constant, ops.Numbers)
Port = Literal["written", "linear", "lanes"]


@dataclass
class Schedule:
    """The blocks of a circuit.

    blocks:  for each block the operations it computes, in graph order.
    on_lanes: for each atom, which of its numbers some reader needs on lanes (mask over its width).
    in_ports: for each rectifier, which of its numbers feed ports of their own block.
    """

    circuit: Circuit
    blocks: list[list[Stream]]
    on_lanes: dict[Stream, np.ndarray]
    in_ports: dict[Stream, np.ndarray]
    forms: dict[Stream, Form] = field(repr=False)


def operands(stream: Stream, rules: PortRules) -> list[tuple[Stream, Port]]:
    """(operand, the port it stands at) for each operand of an operation that a block computes.

    A latch or a running sum behind a gate is one operation with it (the gate closes the
    channels of the state itself).
    """
    operation = stream.operation
    column: Port = "linear" if rules.columns == "linear" else "written"
    if isinstance(operation, ops.Relu):
        return [(stream.inputs[0], "lanes")]
    if isinstance(operation, ops.Multiply):
        return [(stream.inputs[0], "written"), (stream.inputs[1], "lanes")]
    if isinstance(operation, ops.GateSum):
        state, gate = stream.inputs
        return [*operands(state, rules), (gate, "lanes")]
    if isinstance(operation, ops.Cumsum):
        return [(stream.inputs[0], "written")]
    if isinstance(operation, ops.Latch):
        return [(stream.inputs[0], "written"), (stream.inputs[1], "linear" if rules.delta == "features" else "lanes")]
    if isinstance(operation, ops.MemoryRead):
        value, key, query = stream.inputs
        return [(value, "written"), (key, column), (query, column)]
    if isinstance(operation, ops.Count):
        return [(stream.inputs[0], "written"), (stream.inputs[1], "linear")]
    if isinstance(operation, ops.Dot):
        return [(stream.inputs[0], column), (stream.inputs[1], column)]
    if isinstance(operation, ops.ScaledSum):
        value, weight, gate = stream.inputs
        return [(value, "written"), (weight, "linear"), (gate, "lanes")]
    return []


def served_in_block(atom: Stream, lag: int, form: Form, port: Port) -> bool:
    """Whether a port takes this atom from a rectifier of its own block, so that it needs no lane."""
    if lag or port == "lanes" or not isinstance(atom.operation, ops.Relu):
        return False
    return port == "linear" or is_rectified(form)


def column_group(stream: Stream, rules: PortRules) -> tuple | None:
    """What an operation needs the shared columns B and C to be; None when it has no state.

    Where the step belongs to the columns, channels cannot keep out of the state (their own
    Δ is 0 elsewhere), so that operations without a state need a block without columns.
    """
    operation = stream.operation
    if isinstance(operation, ops.MemoryRead):
        key, query = stream.inputs[1:3]
        return ("memory", operation.policy, id(key), id(query))  # by identity: == of streams builds a comparison
    if isinstance(operation, ops.Dot):
        return ("dot", *map(id, stream.inputs))
    if isinstance(operation, (ops.Cumsum, ops.Latch, ops.GateSum, ops.ScaledSum, ops.Count)):
        return ("constant",)
    return ("no columns",) if rules.delta == "columns" else None


def schedule(circuit: Circuit, context: Context) -> Schedule:
    """Assign every operation to its block."""
    rules, forms = context.target, context.forms
    gated = {s.inputs[0] for s in circuit.streams if isinstance(s.operation, ops.GateSum)}
    computed = {s: ports for s in circuit.streams if s not in gated and (ports := operands(s, rules))}
    on_lanes, in_ports = _demand(circuit.output, computed, forms)
    block_of = _place(computed, on_lanes, forms, rules)
    blocks: list[list[Stream]] = [[] for _ in range(1 + max(block_of.values(), default=-1))]
    for stream, block in block_of.items():
        blocks[block].append(stream)
    return Schedule(circuit, blocks, on_lanes, in_ports, forms)


# Demand: which numbers of which atoms are read at all, and how ----------------------------------

Operands = dict[Stream, list[tuple[Stream, Port]]]


def _demand(output: Stream, computed: Operands, forms: dict) -> tuple[dict, dict]:
    on_lanes: dict[Stream, np.ndarray] = {}
    in_ports: dict[Stream, np.ndarray] = {}
    _ask(port_form(output, forms), np.ones(output.width, dtype=bool), "lanes", on_lanes, in_ports)
    for stream in reversed(computed):
        wanted = np.zeros(stream.width, dtype=bool)
        for asked in (on_lanes.get(stream), in_ports.get(stream)):
            wanted |= asked if asked is not None else False
        if wanted.any():
            for (operand, port), rows in zip(computed[stream], _operand_rows(stream, wanted), strict=True):
                _ask(port_form(operand, forms), rows, port, on_lanes, in_ports)
    return on_lanes, in_ports


def _ask(form: Form, rows: np.ndarray, port: Port, on_lanes: dict, in_ports: dict) -> None:
    """Mark the numbers of each atom that the wanted rows of a form read."""
    for (atom, lag), matrix in form.items():
        columns = np.zeros(atom.width, dtype=bool)
        columns[matrix.indices[np.repeat(rows, np.diff(matrix.indptr))]] = True
        target = in_ports if served_in_block(atom, lag, form, port) else on_lanes
        target[atom] = target[atom] | columns if atom in target else columns


def _operand_rows(stream: Stream, wanted: np.ndarray) -> list[np.ndarray]:
    """For each operand, which of its numbers the wanted numbers of the result depend on."""
    operation = stream.operation
    if isinstance(operation, (ops.Relu, ops.Cumsum)):
        return [wanted]
    if isinstance(operation, (ops.Multiply, ops.ScaledSum, ops.Count)):
        return [wanted] * len(stream.inputs)
    if isinstance(operation, ops.Dot):
        return [np.ones(s.width, dtype=bool) for s in stream.inputs]
    if isinstance(operation, ops.MemoryRead):
        return [wanted, *(np.ones(s.width, dtype=bool) for s in stream.inputs[1:])]
    if isinstance(operation, ops.Latch):
        value, when = stream.inputs
        table = wanted.reshape(when.width, value.width)
        return [table.any(axis=0), table.any(axis=1)]
    state, gate = stream.inputs
    copies = np.tile(wanted, gate.width)
    return [*_operand_rows(state, copies), np.ones(gate.width, dtype=bool)]


# Placement ----------------------------------------------------------------------------------


def _place(computed: Operands, on_lanes: dict[Stream, np.ndarray], forms: dict, rules: PortRules) -> dict[Stream, int]:
    earliest: dict[Stream, int] = {}  # the first block in which an operation's operands stand on lanes
    block_of: dict[Stream, int] = {}
    free = _FreeBlocks()
    for stream, ports in computed.items():
        earliest[stream] = max(_level(port_form(s, forms), port, earliest, block_of) for s, port in ports)
        if stream in on_lanes and on_lanes[stream].any():
            block_of[stream] = free.first(earliest[stream], column_group(stream, rules))
    return block_of


def _level(form: Form, port: Port, earliest: dict[Stream, int], block_of: dict[Stream, int]) -> int:
    level = 0
    for atom, lag in form:
        if served_in_block(atom, lag, form, port):
            level = max(level, earliest[atom])
        elif not isinstance(atom.operation, SOURCES):
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
