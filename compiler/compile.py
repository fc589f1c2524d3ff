"""The compiler: a circuit in, blocks over named lanes out, pass by pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from compiler.block import Block
from compiler.builder import BlockBuilder
from compiler.gadgets import lower
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream
from compiler.passes.allocate import Lanes, allocate
from compiler.passes.check import check
from compiler.passes.domains import Domains
from compiler.passes.fit_ports import fit_ports
from compiler.passes.linear_form import linear_form
from compiler.passes.represent import represent
from compiler.passes.schedule import Schedule, schedule
from compiler.ports import TARGETS, PortRules


@dataclass(frozen=True, eq=False)
class Compiled:
    """A compiled circuit, before it is packaged as a module.

    source: the circuit as written; core: the one that the blocks compute, stream by stream.
    lanes:  the residual stream; blocks: the block IR, in order.
    head:   (output width × lanes) csr, the last linear map.
    """

    source: Circuit
    core: Circuit
    rules: PortRules
    domains: Domains
    schedule: Schedule
    lanes: Lanes
    blocks: tuple[Block, ...]
    head: sparse.csr_array


def compile(circuit: Circuit, target: str = "mamba") -> Compiled:
    """Lower a circuit to blocks of a target: "mamba", "mamba2" or "s4d".

    Raises CompileError with every reason found when the circuit is ill-typed, does not fit
    the target, or could leave the exact range.
    """
    rules = TARGETS[target]
    check(circuit)
    domains = Domains(circuit.language, circuit.language.max_length)
    domains.all(circuit.streams)
    core = fit_ports(represent(circuit, domains), domains, rules)
    plan = schedule(core, rules)
    lanes = allocate(plan, circuit.alphabet.size)
    blocks = tuple(_lower(operations, plan, lanes, domains, rules) for operations in plan.blocks)
    return Compiled(circuit, core, rules, domains, plan, lanes, blocks, _head(core.output, lanes))


def _lower(operations: list[Stream], plan: Schedule, lanes: Lanes, domains: Domains, rules: PortRules) -> Block:
    builder = BlockBuilder(lanes, domains, rules, plan.forms)
    for stream in operations:
        lower(stream, plan.on_lanes[stream], builder)
    return builder.build()


def _head(output: Stream, lanes: Lanes) -> sparse.csr_array:
    total = sparse.csr_array((output.width, lanes.count))
    for (atom, _), matrix in linear_form(output).items():
        total = total + matrix @ lanes.place(atom)
    return sparse.csr_array(total)


def run_blocks(compiled: Compiled, tokens: np.ndarray) -> list[np.ndarray]:
    """The residual stream before the first block and after each, by the block IR: (batch, time, lanes) float64."""
    from compiler.block import run

    lanes = compiled.lanes.embedding[tokens.reshape(-1)].toarray().reshape(*tokens.shape, -1)
    streams = [lanes]
    for block in compiled.blocks:
        streams.append(streams[-1] + run(block, streams[-1]))
    return streams
