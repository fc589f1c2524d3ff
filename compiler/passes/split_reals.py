"""Split reals: carry real numbers through silu as pairs of halves.

On a lattice silu is relu; on real numbers it is not, but half(x) − half(−x) = x holds for
half = silu(S·)/S exactly, and for relu too (exactness E3). So wherever a real number
meets an x̂ port, it enters as the two halves, and the difference is taken in the linear map
behind. Products are products of such differences (four channels), so nothing cancels: each
product is right within a few units in the last place, at every magnitude, and exact on
integers.

A rectifier of a real number is one half alone: |silu(S·x)/S − relu(x)| ≤ 0.2785/S (paper B, Lemma 2, has 1/S),
and S is as large as float32 has room for, 2^40 where |x| ≤ 2^19, so that the rounding of x weighs more. Clips, minima
and maxima are made of these. A comparison of real numbers is discontinuous: it is refused, but where no number is near.

After this pass no rectifier other than Half reads a real number.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import singledispatchmethod

import numpy as np
from scipy import sparse

from compiler.analysis.domains import Domains, DomainsDraft
from compiler.analysis.scale import half_scale
from compiler.context import Context
from compiler.errors import CompileError
from compiler.exactness.levels import HALF, WIDEST_HALF
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import operation_of, rebuilt
from compiler.language.operations import Source
from compiler.language.stream import Stream, standing_for
from compiler.language.words import concatenate
from compiler.passes.dead_code import lanes_read


def split_reals(circuit: Circuit, context: Context) -> tuple[Circuit, Context]:
    """The same circuit, in which every real number that a block writes is a pair of halves.

    CompileError where it cannot be.
    """
    domains = context.domains.draft()
    if all(domains.of(s).step for s in circuit.streams) and not any(s.operation.halved for s in circuit.streams):
        return circuit, context
    lowered = context.target.reals
    read = lanes_read(circuit)
    needing = [s for s in circuit.streams if read[s].any() and _needs_halves(s, domains)]
    for stream in needing:
        if not (isinstance(stream.operation, lowered) or (lowered and stream.operation.source)):
            raise CompileError([(stream, _refusal(stream, domains, lowered, context.target.name))])
        if stream.operation.keyed and context.target.column == "written":
            _check_columns(stream, domains, context.target.name)
    if not needing:
        return circuit, context
    splitter = _Splitter(domains)
    for stream in circuit.streams:
        splitter.split(stream)
    return replace(circuit, output=splitter.known[circuit.output]), context.knowing(domains)


def _check_columns(memory: Stream, domains: Domains, target: str) -> None:
    """CompileError for a real key or query where B and C are the silu of a row, which is that row of integers only."""
    for kind, stream in zip(("write", "query"), memory.inputs[1:], strict=False):
        if not domains.of(stream).step:
            raise CompileError(
                [
                    (
                        memory,
                        f"its {kind} {stream.as_written.label} ({stream.origin}) is real, and on {target} a memory "
                        "takes real values alone, under integers: B and C pass silu there; compile it for mamba, or "
                        "declare this stream as Int",
                    )
                ]
            )


def _refusal(stream: Stream, domains: Domains, lowered: tuple[type[ops.Operation], ...], target: str) -> str:
    if not lowered:
        known = "real numbers are lowered for mamba and mamba2, scaled sums are lowered for mamba only"
        return f"{known}, and the target is {target}"
    if all(domains.of(s).step for s in stream.inputs):  # it forms fractions of whole numbers
        return f"{type(stream.operation).__name__} is lowered for mamba only, and the target is {target}"
    return (
        f"{type(stream.operation).__name__} of real numbers is lowered for mamba only, and the target is {target}, "
        f"which takes them in linear maps, {', '.join(kind.__name__ for kind in lowered)}"
    )


def _needs_halves(stream: Stream, domains: Domains) -> bool:
    """Whether a block would have to carry a real number: a fading sum of a lattice makes one, a linear map reads one
    freely.
    """
    if stream.operation.source is Source.NUMBERS:
        return not domains.of(stream).step
    reads_real = not all(domains.of(s).step for s in stream.inputs)
    return stream.operation.halved or (reads_real and stream.operation.maps is None)


class _Splitter:
    def __init__(self, domains: DomainsDraft):
        self.domains = domains
        self.known: dict[Stream, Stream] = {}
        self._halves: dict[tuple[Stream, float], Stream] = {}

    def split(self, stream: Stream) -> None:
        inputs = tuple(self.known[s] for s in stream.inputs)
        with standing_for(stream):
            result = self.rule(stream.operation, stream, *inputs)
        if result is not stream:
            for new in (result, *result.inputs):
                new.name = new.name or stream.label
            self.domains.replaced(stream, result)
        self.known[stream] = result

    def real(self, stream: Stream) -> bool:
        return self.domains.of(stream).step == 0

    def halves(self, x: Stream, most: int | Fraction = WIDEST_HALF) -> Stream:
        """half(x), half(−x), with a scale of at most `most` for a real x."""
        key = (x, half_scale(self.domains.of(x), most))
        if key not in self._halves:
            with standing_for(x):
                self._halves[key] = Stream(ops.Half(key[1]), (concatenate(x, -1 * x),), f"{x.label}.half")
        return self._halves[key]

    @singledispatchmethod
    def rule(self, operation: ops.Operation, stream: Stream, *inputs: Stream) -> Stream:
        return rebuilt(stream, inputs)

    @rule.register
    def _(self, operation: ops.Relu, stream: Stream, x: Stream) -> Stream:
        """silu(S·x)/S with the largest S there is: within 0.2785/S of relu(x)."""
        if not self.real(x):
            return rebuilt(stream, (x,))
        return Stream(ops.Half(half_scale(self.domains.of(x)), alone=True), (x,), stream.name)

    @rule.register
    def _(self, operation: ops.Settled, stream: Stream, x: Stream) -> Stream:
        """0 or 1 to the last bit: silu(S)/S = 1, and silu(−S)/S = 0."""
        return Stream(ops.Half(half_scale(self.domains.of(x)), alone=True, settled=True), (x,), stream.name)

    @rule.register
    def _(self, operation: ops.Multiply, stream: Stream, a: Stream, b: Stream) -> Stream:
        if not (self.real(a) or self.real(b)):  # even if the product is known to be 0
            return rebuilt(stream, (a, b))
        for bank, flag in ((a, b), (b, a)):
            memory = _memory_behind(bank)
            if memory is not None and flag.width == 1 and self.domains.of(flag).is_flag:
                copy = Stream(memory.operation, memory.inputs, memory.name)
                return operation_of(bank, ops.Linear).matrices[0] @ Stream(ops.GateSum(), (copy, flag), stream.name)
        a, b = (s if s.width == stream.width else np.ones((stream.width, 1)) @ s for s in (a, b))
        if not self.real(a):
            a, b = b, a
        return _difference(stream.width) @ Stream(operation, (self.halves(a), concatenate(b, b)), stream.name)

    @rule.register(ops.FadingSum)
    @rule.register(ops.Cumsum)
    def _(self, operation: ops.Operation, stream: Stream, value: Stream) -> Stream:
        if not self.real(value):
            return rebuilt(stream, (value,))
        return _difference(value.width) @ Stream(operation, (self.halves(value),), stream.name)

    @rule.register
    def _(self, operation: ops.SelectiveSum, stream: Stream, value: Stream, level: Stream) -> Stream:
        if not self.real(value):
            return rebuilt(stream, (value, level))
        return _difference(value.width) @ Stream(operation, (self.halves(value), level), stream.name)

    @rule.register
    def _(self, operation: ops.Latch, stream: Stream, value: Stream, when: Stream) -> Stream:
        if not self.real(value):
            return rebuilt(stream, (value, when))
        back = sparse.kron(sparse.eye_array(when.width), _difference(value.width), format="csr")
        return back @ Stream(operation, (self.halves(value), when), stream.name)

    @rule.register
    def _(self, operation: ops.GateSum, stream: Stream, bank: Stream, gate: Stream) -> Stream:
        memory = _memory_behind(bank)
        if memory is None:
            return rebuilt(stream, (bank, gate))
        copy = Stream(memory.operation, memory.inputs, memory.name)
        return _difference(stream.width) @ Stream(operation, (copy, gate), stream.name)

    @rule.register(ops.FadingMemory)
    @rule.register(ops.MemoryRead)
    def _(self, operation: ops.Operation, stream: Stream, value: Stream, *others: Stream) -> Stream:
        if not self.real(value):
            return rebuilt(stream, (value, *others))
        return _difference(value.width) @ Stream(operation, (self.halves(value, HALF), *others), stream.name)

    @rule.register
    def _(self, operation: ops.ScaledSum, stream: Stream, value: Stream, weight: Stream, gate: Stream) -> Stream:
        parts = (self.halves(value, HALF), concatenate(weight, weight), concatenate(gate, gate))
        return _difference(value.width) @ Stream(operation, parts, stream.name)


def _difference(width: int) -> sparse.csr_array:
    """(width × 2·width): what is computed from half(x) minus what is computed from half(−x)."""
    eye = sparse.eye_array(width)
    return ops.exact_matrix(sparse.hstack([eye, -eye]))


def _memory_behind(bank: Stream) -> Stream | None:
    """The latches or running sums of real numbers of which a stream is the difference of halves."""
    if not bank.operation.maps or len(bank.inputs) != 1:
        return None
    (memory,) = bank.inputs
    stores = memory.operation.latches or memory.operation.accumulates
    return memory if stores and memory.inputs[0].operation.silu_scale is not None else None
