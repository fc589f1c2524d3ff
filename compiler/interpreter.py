"""The interpreter: what a circuit means, in exact arithmetic.

This is the reference of every test. It runs each operation's one definition on arrays
of Python integers and Fractions. Where the domains pass has shown that every value is
a lattice point within the integer range of float64 or float32, the same definitions give the
same numbers on such arrays, thousands of times faster; `compiled.interpret` chooses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike

from compiler.language.arguments import instance, number, shown
from compiler.language.circuit import Circuit
from compiler.language.operations import Source
from compiler.language.stream import Stream


def interpret(
    circuit: Circuit,
    tokens: ArrayLike | None = None,
    inputs: Mapping[Stream, np.ndarray] | None = None,
    keep: Collection[Stream] | None = None,
    dtype: type = object,
    fixed: Mapping[Stream, tuple[np.ndarray, np.ndarray]] | None = None,
) -> dict[Stream, np.ndarray]:
    """Run a circuit on a batch.

    tokens: (batch, time) ids; inputs: for each Numbers stream a (batch, time, width) array.
    keep:   the streams to return (default: the output alone); others are dropped after their last reader.
    dtype:  object for Python integers and Fractions, np.float64 or np.float32 where the caller knows that it is exact.
    fixed:  an intervention: for each of these streams (a (batch, time) mask of where it is set, the
        (batch, time, width) values that its readers find there).
    Returns {stream: (batch, time, width) array}.
    """
    instance(circuit, Circuit, "what is interpreted", "a Circuit (compiled.interpret(tokens) runs a compiled one)")
    if dtype not in (object, float, np.float64, np.float32):
        raise ValueError(f"dtype of interpret is {shown(dtype)}, and it must be object, np.float64 or np.float32")
    if inputs is not None:
        instance(inputs, Mapping, "inputs", "a dict from numeric input to array")
    wanted = {circuit.output} if keep is None else _kept(keep, circuit)
    ids = None if tokens is None else np.asarray(tokens)
    if ids is not None and circuit.alphabet is not None:
        ids = token_ids(ids, circuit.alphabet.size)
    used = needed(wanted)
    readers = Counter(source for stream in used for source in set(stream.inputs))
    like = _shape_of_run(ids, inputs, dtype)
    values: dict[Stream, np.ndarray] = {}
    for stream in (s for s in circuit.streams if s in used):
        values[stream] = _value(stream, values, ids, inputs, like, dtype)
        if fixed is not None and stream in fixed:
            where, given = fixed[stream]
            values[stream] = np.where(where[..., None], _converted(given, dtype), values[stream])
        for source in set(stream.inputs):
            readers[source] -= 1
            if readers[source] == 0 and source not in wanted:
                del values[source]
    return {stream: values[stream] for stream in wanted}


def needed(wanted: Collection[Stream]) -> set[Stream]:
    """These streams and all that they are made of."""
    found: set[Stream] = set()
    left = list(wanted)
    while left:
        stream = left.pop()
        if stream not in found:
            found.add(stream)
            left += stream.inputs
    return found


def _kept(keep: Collection[Stream], circuit: Circuit) -> set[Stream]:
    """The streams to return; TypeError or ValueError for what is none of the circuit's."""
    known = set(circuit.streams)
    for stream in instance(keep, Collection, "keep", "a list of the circuit's streams"):
        if instance(stream, Stream, "what is kept", "a stream") not in known:
            raise ValueError(f"keep holds {stream.label}, and circuit {circuit.name!r} has no such stream")
    return set(keep)


def token_ids(tokens: ArrayLike, alphabet: int) -> np.ndarray:
    """The (batch, time) ids of an alphabet of this size; ValueError or TypeError where they are none."""
    ids = np.asarray(tokens)
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        found = f"the shape {ids.shape}"
        if ids.size and ids.dtype.kind not in "iu":
            found = (
                f"entries such as {shown(ids.flat[0].item() if isinstance(ids.flat[0], np.generic) else ids.flat[0])}"
            )
        raise TypeError(
            f"tokens have {found}, and (batch, time) integer ids are needed; alphabet.encode(text) gives one row"
        )
    if ids.size and not (ids.min() >= 0 and ids.max() < alphabet):
        wrong = int(ids.min() if ids.min() < 0 else ids.max())
        raise ValueError(f"token id {wrong} is none of the alphabet's 0 … {alphabet - 1}")
    return ids


def _shape_of_run(tokens: np.ndarray | None, inputs: Mapping | None, dtype: type) -> np.ndarray:
    given = tokens if tokens is not None else next(iter(inputs.values())) if inputs else None
    if given is None:
        raise ValueError("a run needs tokens or numeric inputs, and neither was given")
    return np.zeros((*given.shape[:2], 1), dtype=dtype)


def _value(stream, values, tokens, inputs, like, dtype) -> np.ndarray:
    operation = stream.operation
    if operation.source is Source.TOKEN:
        return _converted(operation.evaluate(tokens), dtype)
    if operation.source is Source.NUMBERS:
        if inputs is None or stream not in inputs:
            raise ValueError(f"numeric input {stream.label!r} has no values; pass inputs={{stream: array}}")
        return _converted(inputs[stream], dtype)
    if operation.source is Source.RUN:
        return operation.evaluate(like)
    return operation.evaluate(*(values[s] for s in stream.inputs))


_exact = np.frompyfunc(lambda v: number(v, "a number that is run") if isinstance(v, float | np.generic) else v, 1, 1)


def _converted(array: np.ndarray, dtype: type) -> np.ndarray:
    """The array in the run's dtype; in object runs floats become the integers and Fractions that they stand for."""
    if dtype is not object:
        return array.astype(dtype)
    if array.dtype == object:
        return _exact(array)
    different, places = np.unique(array, return_inverse=True)  # few, and each is made once
    return _exact(different.astype(object))[places.reshape(array.shape)]
