"""Lower: each operation as the channels and columns that its gadget makes of it, block by block.

Leaves the block IR, every block verified, and the last linear map: from here on there are no streams.
"""

from __future__ import annotations

from scipy import sparse

from compiler.analysis.affine_form import affine_form
from compiler.analysis.exact_matrices import InexactWeight
from compiler.context import Context
from compiler.errors import CompileError
from compiler.ir.block import SelectiveBlock
from compiler.language.stream import Stream
from compiler.lowering.builder import BlockBuilder
from compiler.lowering.lanes import Lanes
from compiler.passes.schedule import Schedule


def lower(plan: Schedule, lanes: Lanes, context: Context) -> tuple[tuple[SelectiveBlock, ...], sparse.csr_array]:
    """(the blocks, the head: output width × lanes csr); CompileError where no float holds a weight exactly."""
    blocks = tuple(_block(at, plan, lanes, context) for at in range(len(plan.blocks)))
    return blocks, _head(plan.circuit.output, lanes)


def _block(at: int, plan: Schedule, lanes: Lanes, context: Context) -> SelectiveBlock:
    builder = BlockBuilder(lanes, context, plan.mirrored.get(at, frozenset()))
    for stream in plan.blocks[at]:
        try:
            gadget = context.target.needed_gadget(stream.operation)
            builder.begin(stream, type(gadget).__name__, gadget.column_group(stream))
            gadget.lower(stream, plan.on_lanes[stream], builder)
        except InexactWeight as reason:
            raise CompileError([(stream, str(reason))]) from reason
    try:
        block = builder.build()
    except InexactWeight as reason:  # of what several parts of a row add up to
        raise CompileError([(None, f"block {at + 1}: {reason}")]) from reason
    block.verify()
    return block


def _head(output: Stream, lanes: Lanes) -> sparse.csr_array:
    try:
        return lanes.map(affine_form(output), output.width)
    except InexactWeight as reason:
        raise CompileError([(output, str(reason))]) from reason
