"""Fit ports: rewrite the core circuit so that every operand fits its port on the target.

What a port does not accept is first carried to lanes by a block of its own (a channel
whose D path passes it on), or the operation is rewritten in others that fit, or it is
refused with the reason. After this pass every operand fits the port it stands at.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from scipy import sparse

from compiler.context import Context
from compiler.errors import CompileError
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream, standing_for
from compiler.lowering.fitter import Fitter


def fit_ports(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit with every operand in the shape that its port takes."""
    fitter = Fitter(context, partial(_fitted, context))
    reasons = []
    for stream in circuit.streams:
        try:
            fitter.fit(stream)
        except NotImplementedError as error:
            reasons.append((stream, str(error)))
            fitter.fitted[stream] = stream
    with standing_for(circuit.output):
        fitted = replace(circuit, output=fitter.landed(fitter.fitted[circuit.output]))
    reasons += context.target.misfits(fitted)
    if reasons:
        raise CompileError(reasons)
    return fitted, context.knowing(fitter.domains)


def _fitted(context: Context, stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
    """The operation of a stream over fitted inputs: as the target rewrites it, or as its gadget takes it."""
    operation, target = stream.operation, context.target
    rewritten = target.rewrite(stream, inputs, fitter)
    if rewritten is not None:
        return rewritten
    if type(operation) in target.lacks:
        raise NotImplementedError(
            f"{target.name} has no lowering of {operation.symbol}: {target.lacks[type(operation)]}"
        )
    if operation.free and target.gadget(operation) is None:
        return _folded(stream, inputs, fitter)
    return target.needed_gadget(operation).fit(stream, inputs, fitter)


def _folded(stream: Stream, inputs: tuple[Stream, ...], fitter: Fitter) -> Stream:
    """A source or a linear operation; a flag by declaration is remembered as the rectifier that it is."""
    operation = stream.operation
    result = fitter.rebuilt(stream, operation, inputs)
    if operation.maps and operation.declared is not None and len(inputs) == 1 and _is_identity(operation.maps[0]):
        fitter.equals_rectified(result, inputs[0])
    return result


def _is_identity(matrix: sparse.csr_array) -> bool:
    places = np.arange(matrix.shape[0] + 1)
    alone = matrix.shape[0] == matrix.shape[1] == len(matrix.data) and (matrix.indptr == places).all()
    return bool(alone and (matrix.indices == places[:-1]).all() and (matrix.data == 1).all())
