"""Compare: the blocks give what the circuit as written gives, tried on inputs before anything leaves the
compiler.

The passes argue that each rewriting keeps the meaning; this runs both ends of the argument and believes none of it.
The circuit is interpreted (on part of the inputs with Python integers and Fractions), the block IR is run with its
own checks that every pre-activation is where silu and softplus are exact, and both must agree to the last bit. What
the blocks form are multiples of powers of two below 2^53 of them wherever they fit the target's own format, so
float64 runs them exactly; real numbers are compared within rounding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from compiler.analysis.affine_form import ONE
from compiler.errors import CompileError
from compiler.exactness.domains_held import first_outside
from compiler.exactness.samples import inputs_of
from compiler.interpreter import interpret
from compiler.ir.block import UnsafePreactivation
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream

POSITIONS = 1200
WORK = 1 << 21  # numbers formed by the blocks and the interpreter together, about
EXACT_WORK = 1 << 13  # of them with Python integers and Fractions
ROUNDING = 1e-9  # of real numbers, of the largest output: the blocks and the interpreter add in another order
CANCELLED = 2.0**-48  # of the largest number that is formed: what float64 loses where such numbers cancel


class Miscompiled(RuntimeError):
    """The blocks do not compute the circuit: a mistake of the compiler, found before anything left it."""


def compare(compiled, written: Circuit | None = None) -> None:
    """Raise Miscompiled, naming the stream and lane, where blocks and circuit differ on short strings and random walks.

    written: the circuit before anything was left out of it. Both must give the same numbers, or, where rules had no
        weights yet, the same numbers must be largest.
    """
    circuit = compiled.source
    lanes = compiled.lanes.count
    size = _work(circuit) + sum(
        lanes + len(b.features.names) + len(b.channels.names) * (1 + b.d_state) for b in compiled.blocks
    )
    positions = max(8, min(POSITIONS, WORK // size))
    floats = {each: _floats_do(compiled, each) for each in (circuit, compiled.core)}
    for tokens, numbers in inputs_of(written or circuit, positions):  # what was left out may have inputs of its own
        _compare(compiled, tokens, numbers, floats[circuit])
        for each, by_floats in floats.items():
            _hold_domains(compiled, each, tokens, numbers, by_floats)
        if written is not None and written is not circuit:
            _compare_circuits(compiled, written, tokens, numbers)


def _compare_circuits(compiled, written: Circuit, tokens, numbers: Mapping[Stream, np.ndarray]) -> None:
    """The circuit as written and the one that was compiled: of rules, the largest scores, for each position has its own
    weight.
    """
    try:
        dtype = np.float64 if _floats_do(compiled, written) else object
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


def _compare(compiled, tokens: np.ndarray | None, numbers: Mapping[Stream, np.ndarray], floats: bool) -> None:
    """floats: whether float64 gives the values of the circuit as written."""
    expected = _expected(compiled, tokens, numbers, floats)
    try:
        stream = first = _first(compiled, tokens, numbers)
        for block in compiled.blocks:
            stream = stream + block.run(stream)
    except UnsafePreactivation as reason:
        raise Miscompiled(f"{MISTAKE} {reason}.") from reason
    flat = stream.reshape(-1, stream.shape[-1])
    outputs = np.asarray((compiled.head @ flat.T).T).reshape(*stream.shape[:2], -1)
    at = _difference(outputs, expected, _tolerance(compiled, expected))
    if at is not None:
        raise Miscompiled(_sentence(compiled, tokens, numbers, first, at, outputs[at], expected[at]))


def _hold_domains(
    compiled, circuit: Circuit, tokens: np.ndarray | None, numbers: Mapping[Stream, np.ndarray], floats: bool
) -> None:
    """Raise Miscompiled, naming the stream, where one leaves its domain, on as many sequences as the work allows.

    floats: whether float64 gives its values.
    """
    batch, length = (tokens if tokens is not None else next(iter(numbers.values()))).shape[:2]
    count = max(1, min(batch, (WORK if floats else EXACT_WORK) // (length * _work(circuit))))
    part = np.arange(count) * batch // count
    read = {s: v[part] for s, v in _read_by(circuit.streams, numbers).items()}
    known = {s: compiled.domains.of(s) for s in circuit.streams}
    values = interpret(circuit, None if tokens is None else tokens[part], read, known, np.float64 if floats else object)
    streams = [stream for stream in known if stream.width]
    domains = [known[stream] for stream in streams]
    real = floats and any(not domain.step for domain in domains)
    bounds = [float(domain.bounds.max(initial=0)) for domain in domains]
    lost = CANCELLED * max(bounds)  # of what may cancel on the way
    tolerances = [ROUNDING * max(1.0, bound) + lost if real else 0.0 for bound in bounds]
    found = first_outside(domains, [values[s].astype(np.float64) for s in streams], tolerances)
    if found is not None:
        which, reason = found
        stream = streams[which]
        raise Miscompiled(f"{MISTAKE} {stream.as_written.label} ({stream.origin}): {reason}.")


MISTAKE = "the compiler made a mistake, and nothing was compiled (please report the circuit):"


def _floats_do(compiled, circuit: Circuit) -> bool:
    """Whether float64 gives a circuit's values: exactly, or, of real numbers, within what is compared."""
    held = all(ops.is_dyadic(value) for s in circuit.streams for value in s.operation.constants or ())
    real = held and any(not compiled.domains.of(s).step for s in circuit.streams)
    return real or compiled.domains.exact_dtype(circuit) is np.float64


def _work(circuit: Circuit) -> int:
    """How many numbers a position of the interpreter takes, about."""
    entries = sum(m.nnz for s in circuit.streams for m in s.operation.maps or ())
    return entries + sum(s.width for s in circuit.streams)


def _first(compiled, tokens: np.ndarray | None, numbers: Mapping[Stream, np.ndarray]) -> np.ndarray:
    """The residual stream before the first block: (batch, time, lanes) float64."""
    lanes = compiled.lanes
    if tokens is not None:
        return lanes.embedding[tokens.reshape(-1)].toarray().reshape(*tokens.shape, -1)
    shape = next(iter(numbers.values())).shape[:2]
    stream = np.zeros((*shape, lanes.count))
    stream[..., lanes.index[ONE]] = 1
    for source, values in _read_by(compiled.core.streams, numbers).items():
        if source in lanes.index:
            held = lanes.index[source] >= 0
            stream[..., lanes.index[source][held]] = values[..., held]
    return stream


def _read_by(streams: Iterable[Stream], numbers: Mapping[Stream, np.ndarray]) -> dict[Stream, np.ndarray]:
    """The values of the numeric inputs under the streams that stand for them after the passes."""
    values = {source.operation: array for source, array in numbers.items()}
    return {s: values[s.operation] for s in streams if s.operation in values}


def _expected(compiled, tokens: np.ndarray | None, numbers: Mapping[Stream, np.ndarray], floats: bool) -> np.ndarray:
    """The output of the circuit as written.

    Sequences that the work allows with exact numbers, all if floats would not do.
    """
    circuit = compiled.source
    batch, length = (tokens if tokens is not None else next(iter(numbers.values()))).shape[:2]
    count = min(batch, EXACT_WORK // (length * _work(circuit))) if floats else batch
    values = np.empty((batch, length, circuit.output.width))
    if count < batch:
        values[:] = interpret(circuit, tokens, numbers, dtype=np.float64)[circuit.output]
    if not count:
        return values
    exact = np.arange(count) * batch // count
    part = interpret(circuit, None if tokens is None else tokens[exact], {s: v[exact] for s, v in numbers.items()})
    values[exact] = part[circuit.output].astype(np.float64)
    return values


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
    numbers = _read_by(compiled.core.streams, numbers)
    expected = interpret(compiled.core, tokens, numbers, keep=atoms, dtype=np.float64)
    for number, operations in enumerate(compiled.schedule.blocks, start=1):
        stream = stream + compiled.blocks[number - 1].run(stream)
        for atom in operations:
            held = np.flatnonzero(lanes.index[atom] >= 0)
            at = lanes.index[atom][held]
            wrong = _difference(stream[..., at], expected[atom][..., held], 0.0)
            if wrong is not None:
                return f"{lanes.names[at[wrong[2]]]} of {atom.label} ({atom.origin}), block {number}"
    return None
