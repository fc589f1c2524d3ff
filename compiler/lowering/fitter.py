"""Operands in the shape that a port takes: rows that one channel computes, maps of present lanes."""

from __future__ import annotations

from collections.abc import Callable

from compiler.analysis.affine_form import AffineForm
from compiler.analysis.one_channel import is_rectified, one_channel
from compiler.analysis.scale import half_scale
from compiler.errors import CompileError
from compiler.language import operations as ops
from compiler.language.circuit import Circuit
from compiler.language.graph import rebuilt
from compiler.language.stream import Stream, constant, standing_for
from compiler.lattice.domain import with_zero
from compiler.lowering.conditions import need_level, need_non_negative
from compiler.lowering.facts import Facts
from compiler.lowering.ports import Port

MOST_CARRIED = 512  # blocks that only carry a value along


class Fitter:
    """Fits one stream after the other; gadgets and targets ask it for operands in the shape of a port."""

    def __init__(self, facts: Facts, lowering: Callable[[Stream, tuple[Stream, ...], Fitter], Stream]):
        """lowering: an operation over fitted inputs, as a block of the target takes it."""
        self.facts = facts
        self.domains = facts.domains.draft()
        self.target = facts.target
        self._lowering = lowering
        self.fitted: dict[Stream, Stream] = {}
        self._carried: dict[tuple[Stream, int], Stream] = {}
        self._landed: dict[Stream, Stream] = {}
        self._before: dict[Stream, Stream] = {}

    def fit(self, stream: Stream) -> None:
        with standing_for(stream):
            result = self._lowering(stream, tuple(self.fitted[s] for s in stream.inputs), self)
        if result is not stream:
            result.name = result.name or stream.name or stream.label
            self.domains.replaced(stream, result)
        self.fitted[stream] = result

    def form(self, stream: Stream) -> AffineForm:
        return self.facts.form(stream)

    def landed(self, stream: Stream) -> Stream:
        """An equal stream that reads present lanes only; what lay k positions back is carried to lanes first."""
        if stream not in self._landed:
            self._landed[stream] = self._land(stream)
        return self._landed[stream]

    def _land(self, stream: Stream) -> Stream:
        form = self.form(stream)
        if all(lag == 0 for _, lag in form):
            return stream
        seen = [(atom, lag, m) for (atom, lag), m in form.items() if lag < self.domains.max_length]
        if not seen:
            return constant(0, stream.width)
        self._need_reach(*max(((atom, lag) for atom, lag, _ in seen), key=lambda read: read[1]))
        parts = [(self._carry(atom, lag), matrix) for atom, lag, matrix in seen]
        result = Stream(ops.Linear(tuple(m for _, m in parts), stream.type), [s for s, _ in parts], stream.name)
        self.domains.meet(result, self.domains.of(stream))
        return result

    def _need_reach(self, atom: Stream, lag: int) -> None:
        """CompileError where too many blocks would have to carry what was so far back."""
        most = MOST_CARRIED * self.target.max_lag
        if lag > most:
            reason = (
                f"it is read {lag} positions later, which takes a block for each "
                f"{self.target.max_lag}; {most} are the most"
            )
            raise CompileError([(atom, reason)])

    def _carry(self, atom: Stream, lag: int) -> Stream:
        """atom(t − lag) on lanes, a block for each max_lag positions."""
        carried, reached = atom, 0
        while reached < lag:
            step = min(self.target.max_lag, lag - reached)
            reached += step
            if (atom, reached) not in self._carried:
                self._carried[(atom, reached)] = self._passed_on(carried, step, f"{atom.label}.shift{reached}", atom)
            carried = self._carried[(atom, reached)]
        return carried

    def _passed_on(self, stream: Stream, step: int, name: str, atom: Stream) -> Stream:
        """What an atom held, `step` positions after `stream`: relu passes non-negative lanes, a pair of relus signed
        ones.
        """
        with standing_for(atom):
            past = stream.shift(step)
            if not self.domains.of(atom).step:
                half = ops.Half(half_scale(self.domains.of(atom)))
                carried = Stream(half, (past,)) - Stream(half, (-1 * past,))
            else:
                carried = past.relu() - (-1 * past).relu() if self.domains.of(atom).lo < 0 else past.relu()
        carried.name = name
        self.domains.meet(carried, with_zero(self.domains.of(atom)))
        return carried

    def within_reach(self, stream: Stream) -> Stream:
        return self.landed(stream) if any(lag > self.target.max_lag for _, lag in self.form(stream)) else stream

    # Ports ------------------------------------------------------------------------------------

    def written(self, value: Stream) -> Stream:
        """A value at the x̂ port: each number one rectified row."""
        form = self.form(value)
        if is_rectified(form):
            return value
        need_non_negative(self.domains, value)
        fits = one_channel(form, value.width, self.target.d_conv, False, self.target.row_bias)
        return value if fits else self.landed(value)

    def threshold(self, flag: Stream) -> Stream:
        """A condition at the Δ port: softplus rectifies, so the pre-activation of a rectified flag will do."""
        need_level(self.domains, flag)
        return self.at_port(self._before_rectifier(flag), self.target.step or "lanes")

    def at_port(self, stream: Stream, port: Port) -> Stream:
        """An equal stream in the shape that a port takes."""
        return {"written": self.written, "linear": self.within_reach, "lanes": self.landed}[port](stream)

    def _before_rectifier(self, flag: Stream) -> Stream:
        """An integer that is 1 where the flag holds and at most 0 elsewhere, one rectifier earlier if there is one."""
        relu = self._before.get(flag)
        if relu is None:
            return flag
        domain = self.domains.of(relu)
        return relu if domain.hi <= 1 and domain.step >= 1 else flag

    def equals_rectified(self, result: Stream, rectified: Stream) -> None:
        """Note that a new stream equals a rectified one, if that is known as one."""
        if rectified in self._before:
            self._before[result] = self._before[rectified]

    def remember_before_rectifier(self, rectified: Stream, pre: Stream) -> None:
        """Note what a rectifier, or a flag that is one, was before it."""
        self._before[rectified] = pre

    # Operations -------------------------------------------------------------------------------

    @staticmethod
    def rebuilt(stream: Stream, operation: ops.Operation, inputs: tuple[Stream, ...]) -> Stream:
        """The stream itself where nothing changed, else a new one."""
        return rebuilt(stream, inputs, operation)

    def fitted_new(self, stream: Stream) -> Stream:
        """A new stream over fitted inputs, itself fitted."""
        return self._lowering(stream, stream.inputs, self)

    def fitted_parts(self, rewritten: Stream) -> Stream:
        """A stream made of new streams over fitted ones, itself fitted."""
        for new in Circuit("", rewritten).streams:
            if new not in self.fitted:
                self.fit(new)
        return self.fitted[rewritten]
