"""Pass 4, fit: rewrite the core circuit so that every operand fits its port on the target.

What a port does not accept is first carried to lanes by a block of its own (a channel
whose D path passes it on), or the operation is rewritten in others that fit, or it is
refused with the reason. After this pass every operand fits the port it stands at.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatchmethod

import numpy as np
from scipy import sparse

from compiler.analysis.linear_form import ONE, Form
from compiler.analysis.one_channel import is_rectified, one_channel
from compiler.analysis.scale import half_scale
from compiler.context import Context
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.stream import Stream, concatenate
from compiler.passes.represent import masked
from compiler.passes.signed_keys import signed_memory


def fit_ports(circuit: Circuit, context: Context) -> Circuit:
    """The same circuit with every operand in the shape that its port takes."""
    fitter = _Fitter(context)
    reasons = []
    for stream in circuit.streams:
        try:
            fitter.fit(stream)
        except NotImplementedError as error:
            reasons.append((stream, str(error)))
            fitter.fitted[stream] = stream
    fitted = replace(circuit, output=fitter.landed(fitter.fitted[circuit.output]))
    if context.target.delta == "columns":
        text = f"{context.target.name} has no lowering of a bank of latches that no query selects from: every channel has every column"
        reasons += [(s, text) for s in fitted.streams if isinstance(s.operation, ops.Latch)]
    if reasons:
        raise CompileError(reasons)
    return fitted


def _is_identity(matrix: sparse.csr_array) -> bool:
    return matrix.shape[0] == matrix.shape[1] and (matrix != sparse.eye_array(matrix.shape[0], format="csr")).nnz == 0


class _Fitter:
    def __init__(self, context: Context):
        self.context = context
        self.domains = context.domains
        self.rules = context.target
        self.fitted: dict[Stream, Stream] = {}
        self._carried: dict[tuple[Stream, int], Stream] = {}
        self._unrectified: dict[Stream, Stream] = {}

    def fit(self, stream: Stream) -> None:
        result = self.rule(stream.operation, stream, *(self.fitted[s] for s in stream.inputs))
        if result is not stream:
            result.name, result.origin = result.name or stream.name or stream.label, stream.origin
            self.domains.meet(result, self.domains.of(stream))
        self.fitted[stream] = result

    def form(self, stream: Stream) -> Form:
        return self.context.form(stream)

    def landed(self, stream: Stream) -> Stream:
        """An equal stream that reads present lanes only; what lay k positions back is carried to lanes first."""
        form = self.form(stream)
        if all(lag == 0 for _, lag in form):
            return stream
        parts = [(self._carry(atom, lag), matrix) for (atom, lag), matrix in form.items()]
        result = Stream(ops.Linear(tuple(m for _, m in parts), stream.type), [s for s, _ in parts], stream.name)
        result.origin = stream.origin
        self.domains.meet(result, self.domains.of(stream))
        return result

    def _carry(self, atom: Stream, lag: int) -> Stream:
        """atom(t − lag) on lanes, a block for each max_lag positions."""
        carried, reached = atom, 0
        while reached < lag:
            step = min(self.rules.max_lag, lag - reached)
            reached += step
            if (atom, reached) not in self._carried:
                self._carried[(atom, reached)] = self._passed_on(carried, step, f"{atom.label}.shift{reached}", atom)
            carried = self._carried[(atom, reached)]
        return carried

    def _passed_on(self, stream: Stream, step: int, name: str, atom: Stream) -> Stream:
        """What an atom held, `step` positions after `stream`: relu passes non-negative lanes, a pair of relus signed ones."""
        past = stream.shift(step)
        if not self.domains.of(atom).step:
            half = ops.Half(half_scale(self.domains.of(atom)))
            carried = Stream(half, (past,)) - Stream(half, (-1 * past,))
        else:
            carried = past.relu() - (-1 * past).relu() if self.domains.of(atom).lo < 0 else past.relu()
        carried.name, carried.origin = name, atom.origin
        self.domains.meet(carried, self.domains.of(atom))
        return carried

    def _within_reach(self, stream: Stream) -> Stream:
        return self.landed(stream) if any(lag > self.rules.max_lag for _, lag in self.form(stream)) else stream

    # Ports ------------------------------------------------------------------------------------

    def written(self, value: Stream) -> Stream:
        """A value at the x̂ port: each number one rectified row."""
        form = self.form(value)
        if is_rectified(form) or one_channel(form, value.width, self.rules.d_conv, rectified=False):
            return value
        return self.landed(value)

    def column(self, stream: Stream) -> Stream:
        """A key or query at the B or C port; where nothing linear follows silu it is at least 0."""
        return self._within_reach(stream) if self.rules.columns == "linear" else self.written(stream)

    def threshold(self, flag: Stream) -> Stream:
        """A condition at the Δ port: softplus rectifies, so the pre-activation of a rectified flag will do."""
        flag = self._before_rectifier(flag)
        if self.rules.delta == "features":
            return self._within_reach(flag)
        if self.rules.delta == "constant":
            raise NotImplementedError(
                f"{self.rules.name} has no lowering of latch: its Δ does not see the input, so nothing can be erased; use mamba or mamba2"
            )
        return self.landed(flag)

    def _before_rectifier(self, flag: Stream) -> Stream:
        """An integer that is 1 where the flag holds and at most 0 elsewhere, one rectifier earlier if there is one."""
        relu = self._unrectified.get(flag)
        if relu is None:
            return flag
        domain = self.domains.of(relu)
        return relu if domain.hi <= 1 and domain.step >= 1 else flag

    # Rules ------------------------------------------------------------------------------------

    @singledispatchmethod
    def rule(self, operation: ops.Operation, stream: Stream, *inputs: Stream) -> Stream:
        return self._rebuilt(stream, operation, inputs)

    @staticmethod
    def _rebuilt(stream: Stream, operation: ops.Operation, inputs: tuple[Stream, ...]) -> Stream:
        same = operation is stream.operation and all(a is b for a, b in zip(inputs, stream.inputs, strict=True))
        return stream if same else Stream(operation, inputs, stream.name)

    @rule.register
    def _(self, operation: ops.Relu, stream: Stream, pre: Stream) -> Stream:
        raw = pre
        if one_channel(self.form(pre), pre.width, self.rules.d_conv, rectified=True) is None:
            pre = self.landed(pre)
        result = self._rebuilt(stream, operation, (pre,))
        self._unrectified[result] = raw
        return result

    @rule.register
    def _(self, operation: ops.Linear, stream: Stream, *inputs: Stream) -> Stream:
        result = self._rebuilt(stream, operation, inputs)
        if (
            operation.type is not None
            and len(inputs) == 1
            and inputs[0] in self._unrectified
            and _is_identity(operation.matrices[0])
        ):
            self._unrectified[result] = self._unrectified[inputs[0]]
        return result

    @rule.register
    def _(self, operation: ops.Multiply, stream: Stream, a: Stream, b: Stream) -> Stream:
        split = isinstance(a.operation, ops.Half)
        if not split and (self.domains.of(a).lo < 0 <= self.domains.of(b).lo or any(lag for _, lag in self.form(b))):
            a, b = b, a
        width = stream.width
        a, b = (s if s.width == width else np.ones((width, 1)) @ s for s in (a, b))
        if self.domains.of(a).lo < 0:
            return self._signed_product(a, b)
        return self._rebuilt(stream, operation, (self.written(a), self.landed(b)))

    def _signed_product(self, a: Stream, b: Stream) -> Stream:
        """a·b = relu(a)·b − relu(−a)·b, for the x̂ port passes non-negative values only."""
        pair = self.rule(ops.Relu(), Stream(ops.Relu(), (concatenate(a, -1 * a),)), concatenate(a, -1 * a))
        twice = Stream(ops.Multiply(), (pair, self.landed(concatenate(b, b))))
        eye = sparse.eye_array(a.width)
        return sparse.hstack([eye, -eye], format="csr") @ twice

    @rule.register
    def _(self, operation: ops.Dot, stream: Stream, a: Stream, b: Stream) -> Stream:
        if self.rules.columns != "linear" or self.rules.delta == "columns":
            raise NotImplementedError(
                f"{self.rules.name} has no lowering of dot: its B and C are not linear in x̂; write (a * b).sum()"
            )
        return self._rebuilt(stream, operation, (self._within_reach(a), self._within_reach(b)))

    @rule.register
    def _(self, operation: ops.Count, stream: Stream, when: Stream, reset: Stream) -> Stream:
        """One channel where Δ can erase and keep; else the count since the start minus its copy latched at the last reset."""
        if not self.context.counts:
            total = Stream(ops.Cumsum(), (when,))
            return self._fitted_parts(total - Stream(ops.Latch(), (total, reset)))
        counted = Stream(ops.Relu(), (when - reset,))
        counted = self.rule(ops.Relu(), counted, *counted.inputs)
        return self._rebuilt(stream, operation, (counted, self._within_reach(reset)))

    def _fitted_parts(self, rewritten: Stream) -> Stream:
        """A stream made of new streams over fitted ones, itself fitted."""
        for new in Circuit("", rewritten).streams:
            if new not in self.fitted:
                self.fit(new)
        return self.fitted[rewritten]

    @rule.register
    def _(self, operation: ops.ScaledSum, stream: Stream, value: Stream, weight: Stream, gate: Stream) -> Stream:
        return self._rebuilt(stream, operation, (self.written(value), self._within_reach(weight), self.landed(gate)))

    @rule.register
    def _(self, operation: ops.Cumsum, stream: Stream, value: Stream) -> Stream:
        if self.rules.delta == "columns":
            return Stream(ops.MemoryRead("sum"), (self.written(value), ONE, ONE), stream.name)
        return self._rebuilt(stream, operation, (self.written(value),))

    @rule.register
    def _(self, operation: ops.Latch, stream: Stream, value: Stream, when: Stream) -> Stream:
        if self.rules.delta == "columns":
            if when.width > 1:
                return self._rebuilt(
                    stream, operation, (value, when)
                )  # read behind a gate, which becomes the query of a memory
            return self._column_latch(stream, operation.forgets, value, when, ONE)
        return self._rebuilt(stream, operation, (self.written(value), self.threshold(when)))

    def _column_latch(self, stream: Stream, forgets: bool, value: Stream, when: Stream, query: Stream) -> Stream:
        """Latches where the step belongs to the columns: a memory that keeps the last value (or the sum) under each flag."""
        flags = self._within_reach(when)
        if self.domains.of(flags).lo < 0 or not self.domains.of(flags).is_flag:
            raise NotImplementedError(f"{self.rules.name} has a lowering of latches for flags only")
        return Stream(
            ops.MemoryRead("last" if forgets else "sum"),
            (self.written(value), flags, self._within_reach(query)),
            stream.name,
        )

    @rule.register
    def _(self, operation: ops.GateSum, stream: Stream, bank: Stream, gate: Stream) -> Stream:
        if self.rules.delta == "columns":
            forgets = (
                bank.operation.forgets if isinstance(bank.operation, ops.Latch) else bank.operation.policy == "last"
            )
            return self._column_latch(stream, forgets, *bank.inputs[:2], gate)
        return self._rebuilt(stream, operation, (bank, self.landed(gate)))

    @rule.register
    def _(self, operation: ops.MemoryRead, stream: Stream, value: Stream, key: Stream, query: Stream) -> Stream:
        if self.rules.columns == "constant":
            return self._gated_sums(stream, value, key, query)
        if self.rules.columns == "features" and min(self.domains.of(s).lo for s in (key, query)) < 0:
            rewritten = signed_memory(value, key, query)
            for new in Circuit("", rewritten).streams:
                if new not in self.fitted:
                    self.fit(new)
            return self.fitted[rewritten]
        return self._rebuilt(stream, operation, (self.written(value), self.column(key), self.column(query)))

    def _gated_sums(self, stream: Stream, value: Stream, key: Stream, query: Stream) -> Stream:
        """A memory without selectivity (Theorem 4 of paper A): a running sum per key of the values it masks, gated by the query.

        Each (key, lane) pair has a channel relu(value + M(key − 1)); the gate opens the queried key's channels.
        """
        if not self.domains.of(key).is_flag or self.domains.of(query).lo < 0:
            raise NotImplementedError(
                f"{self.rules.name} has a lowering of {stream.operation.symbol} for keys that are flags and queries of at least 0 only"
            )
        keys, lanes = key.width, value.width
        spread = sparse.kron(np.ones((keys, 1)), sparse.eye_array(lanes), format="csr") @ value
        flags = sparse.kron(sparse.eye_array(keys), np.ones((lanes, 1)), format="csr") @ key
        stored = masked(self.domains, spread, flags)
        sums = Stream(ops.Cumsum(), (self.rule(ops.Relu(), stored, *stored.inputs),))
        cell = self.domains.cell_bound(stream)
        self.domains.meet(sums, replace(self.domains.of(sums), lo=-cell, hi=cell))
        return Stream(ops.GateSum(), (sums, self.landed(query)))
