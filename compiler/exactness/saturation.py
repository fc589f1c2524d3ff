"""Saturation: counts that outgrow the dtype, and what may still be asked of them.

A running sum c of non-negative lattice values, or a non-negative lattice input (a position), is exact
up to 2^p quanta, p the significand of the dtype. Beyond, the computed c̃ is wrong, but never below 2^p
steps, in whatever order it is summed: rounding is monotone and 2^p steps is representable. (A
sequential float32 count stops at 2^24, a parallel scan goes on in larger strides.) So a falling
ramp relu(k − w·c), w > 0 a power of two, is exact at *every* length if k/w lies below 2^p steps:
up to k/w the difference is exact, and beyond it is negative, whatever c̃ is. Comparisons of
counts are lowered to falling ramps for this reason (`represent`). A count that is read in no
other way is exempt from the bound on exact sums.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import sparse

from compiler.analysis.affine_form import ONE, AffineForm, port_form
from compiler.analysis.domains import Domains
from compiler.language.operations import Source
from compiler.language.stream import Stream
from compiler.passes.schedule import Schedule


def grows(stream: Stream, domains: Domains) -> bool:
    """Whether a stream is a numeric input, or a running sum, of non-negative lattice values."""
    domain, operation = domains.of(stream), stream.operation
    summed = domains.of(stream.inputs[0]) if operation.accumulates else domain
    counts = operation.accumulates or operation.source is Source.NUMBERS
    return counts and summed.lo >= 0 and domain.step > 0


def rising_count(form: AffineForm, domains: Domains) -> bool:
    """Whether an affine form is a sum of such counts with non-negative weights, up to constants."""
    counts = [(atom, matrix) for (atom, _), matrix in form.items() if atom is not ONE]
    return bool(counts) and all(grows(atom, domains) and (matrix.data >= 0).all() for atom, matrix in counts)


def saturating(plan: Schedule, domains: Domains, limit: int) -> set[Stream]:
    """The counts that may exceed the exact range, because every reader is a falling ramp, and these ramps
    themselves. Where no sequence is too long there are none: counts outgrow all floats.
    """
    if domains.language is not None and domains.language.every_length:
        return set()
    counts = {s for s in plan.circuit.streams if grows(s, domains) and domains.of(s).steps > limit}
    ramps: set[Stream] = set()
    output = port_form(plan.circuit.output, plan.forms)
    counts -= {atom for atom, _ in output}
    for reader in plan.circuit.streams:
        if reader.operation.free:
            continue
        for operand in reader.inputs:
            form = port_form(operand, plan.forms)
            read = counts & {atom for atom, _ in form}
            if read and reader.operation.rectifies and _falling_ramps(form, read, domains, limit):
                ramps.add(reader)
            else:
                counts -= read
    return counts | {ramp for ramp in ramps if {a for a, _ in port_form(ramp.inputs[0], plan.forms)} <= counts | {ONE}}


def _falling_ramps(form: AffineForm, read: set[Stream], domains: Domains, limit: int) -> bool:
    """Whether each row is k − w·c for one of the counts, or reads none of them, with k/w below the limit of its
    steps.
    """
    if any(lag if atom is ONE else atom not in read for atom, lag in form):
        return False
    starts = form[(ONE, 0)].toarray()[:, 0] if (ONE, 0) in form else np.zeros(next(iter(form.values())).shape[0])
    weights = [(atom, sparse.csr_array(matrix)) for (atom, _), matrix in form.items() if atom is not ONE]
    entries = sum(np.diff(matrix.indptr) for _, matrix in weights)
    return bool((entries <= 1).all()) and all(
        w < 0
        and np.frexp(w)[0] == -0.5
        and Fraction(float(starts[row])) / Fraction(-float(w)) < (limit - 1) * domains.of(atom).step
        for atom, matrix in weights
        for row, w in zip(matrix.tocoo().row, matrix.tocoo().data, strict=True)
    )
