"""Skip path: one block needs no residual if nothing of its input has to pass around it.

What the head reads of a block's own input is put out by the block where that costs no
channel: the constant by the channel that is on at every position (it is there for the
constant column), and a multiple of what a memory writes by the D of its channels
(y = C·h + D·x̂). Everything else stays with the residual stream.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from scipy import sparse

from compiler.analysis.affine_form import ONE, AffineForm, affine_form
from compiler.analysis.exact_matrices import InexactWeight, product, scaled
from compiler.context import Context
from compiler.gadgets.memory import OuterProductMemory
from compiler.language import operations as ops
from compiler.language.graph import operation_of
from compiler.language.stream import Stream, constant, standing_for
from compiler.lowering.ports import CONSTANT_COLUMN
from compiler.passes.schedule import Schedule, column_group, schedule
from compiler.targets.target import Target


def use_skip_path(plan: Schedule, context: Context) -> Schedule:
    """The plan of a circuit whose output reads less of the input lanes, or as it is where that would cost channels."""
    circuit = plan.circuit
    if len(plan.blocks) != 1:
        return plan
    form = affine_form(circuit.output)
    changed = _constant_carried(_skipping(form, context.target), plan, context.target)
    if changed.keys() == form.keys():
        return plan
    with standing_for(circuit.output):
        output = Stream(
            ops.Linear(tuple(changed.values()), circuit.output.type), [atom for atom, _ in changed], circuit.output.name
        )
    return schedule(replace(circuit, output=output), context)


def _constant_carried(form: AffineForm, plan: Schedule, target: Target) -> AffineForm:
    """ONE by a channel of its own, where the constant column has that channel and D paths share blocks with states."""
    on_anyway = any(column_group(stream, target) == CONSTANT_COLUMN for stream in plan.blocks[0])
    if (ONE, 0) not in form or not on_anyway or target.column != "linear" or not target.apart:
        return form
    with standing_for(plan.circuit.output):
        carried = constant(1).relu().named("one")
    return {(carried, 0) if atom is ONE else (atom, lag): matrix for (atom, lag), matrix in form.items()}


def _skipping(form: AffineForm, target: Target) -> AffineForm:
    """Reads of a memory and of a multiple of what it writes, as one read of a memory with that skip."""
    for (memory, lag), matrix in form.items():
        gadget = target.gadget(memory.operation)
        if lag == 0 and isinstance(gadget, OuterProductMemory) and not operation_of(memory, ops.MemoryRead).skip:
            try:
                skip = _common_factor(form, matrix, affine_form(memory.inputs[0]))
            except InexactWeight:
                skip = Fraction(0)
            if skip:
                merged = gadget.with_skip(memory, skip)
                written = affine_form(memory.inputs[0])
                rest = {key: m for key, m in form.items() if key not in written and key[0] is not memory}
                return {(merged, 0): matrix, **rest}
    return form


def _common_factor(form: AffineForm, read: sparse.csr_array, written: AffineForm) -> Fraction:
    """The s with form[atom] = s · read · written[atom] for every atom that is written; 0 if there is none."""
    if not written or not written.keys() <= form.keys():  # a value that is 0 writes nothing
        return Fraction(0)
    products = [(form[key], product(read, matrix)) for key, matrix in written.items()]
    first, base = products[0]
    if not base.nnz:
        return Fraction(0)
    row, column = (int(i[0]) for i in base.nonzero())
    factor = Fraction(float(first[row, column])) / Fraction(float(base[row, column]))
    if not ops.is_dyadic(factor):
        return Fraction(0)
    same = all((scaled(written, factor) != wanted).nnz == 0 for wanted, written in products)
    return factor if same else Fraction(0)
