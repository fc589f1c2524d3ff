"""Compare: the blocks give what the circuit as written gives, tried on inputs before anything leaves the
compiler.

The passes argue that each rewriting keeps the meaning; this runs both ends of the argument and believes none of it.
The circuit is interpreted (on part of the inputs with Python integers and Fractions), the block IR is run with its
own checks that every pre-activation is where silu and softplus are exact, and both must agree to the last bit. What
the blocks form are multiples of powers of two below 2^53 of them wherever they fit the target's own format, so
float64 runs them exactly; real numbers are compared within rounding.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from compiler.analysis.affine_form import ONE
from compiler.errors import CompileError
from compiler.exactness.error_bound import float64_bound
from compiler.exactness.sampled import CANCELLED, ROUNDING, WORK, Held, Inputs, Sampled, floats_do, picked, read_by
from compiler.exactness.samples import inputs_of
from compiler.interpreter import interpret
from compiler.ir.block import UnsafePreactivation
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream

POSITIONS = 1200


class Miscompiled(RuntimeError):
    """The blocks do not compute the circuit: a mistake of the compiler, found before anything left it."""


def compare(compiled, written: Circuit | None = None) -> None:
    """Raise Miscompiled, naming the stream and lane, where blocks and circuit differ on short strings and random walks.

    written: the circuit before anything was left out of it. Both must give the same numbers, or, where rules had no
        weights yet, the same numbers must be largest.
    """
    circuit = compiled.source
    lanes = compiled.lanes.count
    source, core = (Sampled(each, compiled.domains) for each in (circuit, compiled.core))
    size = source.work + sum(
        lanes + len(b.features.names) + len(b.channels.names) * (1 + b.d_state) for b in compiled.blocks
    )
    positions = max(8, min(POSITIONS, WORK // size))
    for inputs in inputs_of(written or circuit, positions):  # what was left out may have inputs of its own
        tokens, numbers = inputs
        held = source.held(inputs)
        _compare(compiled, source, inputs, source.output(inputs, held))
        _need_held(source, held)
        _need_held(core, core.held(inputs))
        if written is not None and written is not circuit:
            _compare_circuits(compiled, written, tokens, numbers)


def _compare_circuits(compiled, written: Circuit, tokens, numbers: Mapping[Stream, np.ndarray]) -> None:
    """The circuit as written and the one that was compiled: of rules, the largest scores, for each position has its own
    weight.
    """
    try:
        dtype = np.float64 if floats_do(written, compiled.domains) else object
    except CompileError:  # what was left out may have no bounds
        dtype = object
    before, after = (interpret(c, tokens, numbers, dtype=dtype)[c.output] for c in (written, compiled.source))
    output, tolerance = written.output, 0.0
    if any(s.operation.ranks for s in written.streams):
        before, after = (s == s.max(axis=-1, keepdims=True) for s in (before, after))
    elif dtype is np.float64:
        tolerance = _tolerance(compiled, before)
    at = _difference(after.astype(float), before.astype(float), tolerance)
    if at is not None:
        sequence, position, number = at
        raise Miscompiled(
            f"{MISTAKE} what was left out of {output.label} ({output.origin}), or the weights of its rules, changed "
            f"number {number} at position {position} of sequence {sequence} of the comparison."
        )


def _compare(compiled, source: Sampled, inputs: Inputs, expected: np.ndarray) -> None:
    """Raise Miscompiled where the blocks give anything else than the circuit as written, which gives `expected`."""
    tokens, numbers = inputs
    try:
        stream = first = _first(compiled, tokens, numbers)
        for block in compiled.blocks:
            stream = stream + block.run(stream)
    except UnsafePreactivation as reason:
        raise Miscompiled(f"{MISTAKE} {reason}.") from reason
    flat = stream.reshape(-1, stream.shape[-1])
    outputs = np.asarray((compiled.head @ flat.T).T).reshape(*stream.shape[:2], -1)
    tolerance = _tolerance(compiled, expected)
    at = _difference(outputs, expected, tolerance)
    if at is not None and tolerance:
        expected, lost = _without_loss(compiled, source, inputs, outputs, expected, tolerance)
        at = _difference(outputs, expected, tolerance + lost)
    if at is not None:
        raise Miscompiled(_sentence(compiled, tokens, numbers, first, at, outputs[at], expected[at]))


def _without_loss(
    compiled, source: Sampled, inputs: Inputs, outputs: np.ndarray, expected: np.ndarray, tolerance: float
) -> tuple[np.ndarray, float]:
    """(expected, lost): of real numbers that cancel float64 loses what is then multiplied, or compared.

    Sequences that differ are expected by exact numbers, until one of these differs; lost: by how much the blocks may.
    """
    lost = float64_bound(compiled.core, compiled.domains, compiled.context.target.chunk) or 0.0
    exact: set[int] = set()
    while (at := _difference(outputs, expected, tolerance + lost)) is not None and at[0] not in exact:
        expected[at[0]] = source.exactly(inputs, at[0])
        exact.add(at[0])
    return expected, lost


def _need_held(sampled: Sampled, held: Held) -> None:
    """Raise Miscompiled, naming the stream, where one leaves its domain."""
    found = sampled.outside(held)
    if found is not None:
        stream, reason = found
        raise Miscompiled(f"{MISTAKE} {stream.as_written.label} ({stream.origin}): {reason}.")


MISTAKE = "the compiler made a mistake, and nothing was compiled (please report the circuit):"


def _first(compiled, tokens: np.ndarray | None, numbers: Mapping[Stream, np.ndarray]) -> np.ndarray:
    """The residual stream before the first block: (batch, time, lanes) float64."""
    lanes = compiled.lanes
    if tokens is not None:
        return lanes.embedding[tokens.reshape(-1)].toarray().reshape(*tokens.shape, -1)
    shape = next(iter(numbers.values())).shape[:2]
    stream = np.zeros((*shape, lanes.count))
    stream[..., lanes.index[ONE]] = 1
    for source, values in read_by(compiled.core.streams, numbers).items():
        if source in lanes.index:
            held = lanes.index[source] >= 0
            stream[..., lanes.index[source][held]] = values[..., held]
    return stream


def _tolerance(compiled, expected: np.ndarray) -> float:
    real = any(not compiled.domains.of(s).step for s in compiled.source.streams)
    if not real:
        return 0.0
    # the block IR knows the float32 A and not the decay that it stands for, and a silu that is curved
    approximate = any(s.operation.approximate for s in compiled.source.streams)
    off = compiled.error_bound or 0.0 if approximate else 0.0
    largest = max(float(compiled.domains.of(s).bound) for s in compiled.core.streams)  # of what may cancel on the way
    return ROUNDING * max(1.0, float(np.abs(expected).max(initial=0))) + CANCELLED * largest + off


def _difference(values: np.ndarray, expected: np.ndarray, tolerance: float) -> tuple[int, int, int] | None:
    """(sequence, position, number) of the first difference, by position."""
    wrong = np.argwhere(~(np.abs(values - expected) <= tolerance))
    if not len(wrong):
        return None
    sequence, position, number = wrong[np.lexsort((wrong[:, 2], wrong[:, 0], wrong[:, 1]))[0]]
    return int(sequence), int(position), int(number)


def _sentence(compiled, tokens, numbers, first, at, got: float, wanted: float) -> str:
    sequence, position, number = at
    shown = f"position {position} of random numbers"
    if tokens is not None:
        names = compiled.source.token_alphabet.tokens
        shown = f"position {position} of {' '.join(names[i] for i in tokens[sequence, : position + 1])}"
    output = compiled.source.output
    found = _first_lane(compiled, tokens, numbers, first)
    where = (
        f"; the first lane that leaves its stream is {found}"
        if found
        else "; every lane holds its stream, so a rewriting of the circuit is wrong"
    )
    return f"{MISTAKE} {output.label}[{number}] ({output.origin}) is {got:g} instead of {wanted:g} at {shown}{where}."


def _first_lane(compiled, tokens, numbers, stream: np.ndarray) -> str | None:
    """The lane written first, by blocks, that differs from what the core circuit says, with its stream and line."""
    lanes = compiled.lanes
    atoms = [s for s in lanes.index if s is not ONE]
    inputs = picked(compiled.core, (tokens, numbers))
    expected = interpret(compiled.core, *inputs, keep=atoms, dtype=np.float64)
    for number, operations in enumerate(compiled.schedule.blocks, start=1):
        stream = stream + compiled.blocks[number - 1].run(stream)
        for atom in operations:
            held = np.flatnonzero(lanes.index[atom] >= 0)
            at = lanes.index[atom][held]
            wrong = _difference(stream[..., at], expected[atom][..., held], 0.0)
            if wrong is not None:
                return f"{lanes.names[at[wrong[2]]]} of {atom.label} ({atom.origin}), block {number}"
    return None
