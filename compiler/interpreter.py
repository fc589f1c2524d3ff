"""The interpreter: what a circuit means, in exact arithmetic.

This is the reference of every test. It runs each operation's one definition on arrays
of Python integers and Fractions. Where the domains pass has shown that every value is
a lattice point within the integer range of float64, the same definitions give the same
numbers on float64 arrays, thousands of times faster; `compiled.interpret` chooses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream


def interpret(
    circuit: Circuit,
    tokens: np.ndarray | None = None,
    inputs: Mapping[Stream, np.ndarray] | None = None,
    keep: Collection[Stream] | None = None,
    dtype: type = object,
) -> dict[Stream, np.ndarray]:
    """Run a circuit on a batch.

    tokens: (batch, time) ids; inputs: for each Numbers stream a (batch, time, width) array.
    keep:   the streams to return (default: the output alone); others are dropped after their last reader.
    dtype:  object for Python integers and Fractions, np.float64 where the caller knows that it is exact.
    Returns {stream: (batch, time, width) array}.
    """
    wanted = {circuit.output} if keep is None else set(keep)
    readers = {s: circuit.graph.out_degree(s) for s in circuit.streams}
    like = _shape_of_run(tokens, inputs, dtype)
    values: dict[Stream, np.ndarray] = {}
    for stream in circuit.streams:
        values[stream] = _value(stream, values, tokens, inputs, like, dtype)
        for source in set(stream.inputs):
            readers[source] -= 1
            if readers[source] == 0 and source not in wanted:
                del values[source]
    return {stream: values[stream] for stream in wanted}


def _shape_of_run(tokens: np.ndarray | None, inputs: Mapping | None, dtype: type) -> np.ndarray:
    given = tokens if tokens is not None else next(iter(inputs.values())) if inputs else None
    if given is None:
        raise ValueError("a run needs tokens or numeric inputs, and neither was given")
    return np.zeros((*given.shape[:2], 1), dtype=dtype)


def _value(stream, values, tokens, inputs, like, dtype) -> np.ndarray:
    operation = stream.operation
    if isinstance(operation, ops.Embed):
        return _converted(operation.evaluate(tokens), dtype)
    if isinstance(operation, ops.Numbers):
        if inputs is None or stream not in inputs:
            raise ValueError(f"numeric input {stream.label!r} has no values; pass inputs={{stream: array}}")
        return _converted(inputs[stream], dtype)
    if isinstance(operation, (ops.Constant, ops.Position)):
        return operation.evaluate(like)
    return operation.evaluate(*(values[s] for s in stream.inputs))


_to_integer = np.frompyfunc(lambda v: int(v) if v == int(v) else v, 1, 1)


def _converted(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array in the run's dtype; whole floats become Python integers in object runs."""
    if dtype is object and array.dtype != object:
        return _to_integer(array.astype(object)) if array.dtype.kind == "f" else array.astype(object)
    return array.astype(dtype)
