"""A kernel under test: what it computes, and how a case is run on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from conformance.kernel.arguments import CASES_OF, OFFSETS, STATE_IN, TIME_AXIS, Lacks
from conformance.kernel.documents import Documents
from conformance.kernel.layouts import laid_out
from conformance.kernel.misbehaved import Misbehaved
from conformance.kernel.results import brought_back, joined, kept
from conformance.kernel.settings import Left, of_the_kernel
from conformance.kernel.stepping import alone, at_position, by_head, in_channels, in_heads
from conformance.kernel.untouched import Given, in_place, untouched
from conformance.loader import Case
from conformance.lots import lot


@dataclass(frozen=True)
class Layout:
    """How an operand of a call was given."""

    dense: bool
    dtype: torch.dtype


@dataclass(frozen=True)
class Kernel:
    """A function under test.

    op: one of `OPERATIONS`; a step takes one position and is run on the cases of the scans: "channel step" has a state
        (b, d, n), "head step" (b, h, p, n), "step" takes either. Where B and C have groups, or a step takes heads
        alone, a case of the scan is one of heads whose channels have steps and decays of their own.
    accepts: the names of its arguments, those of `SIGNATURES`; what else a case has is not tried.
    device: where the operands are put; results are brought back.
    gate_after: whether its gate is behind the norm, where it has no argument for that: `conformance.judge.sided` asks;
        None: nothing with a gate was taken, and so nothing with a gate is judged.
    keywords: what its ** takes beside those: nothing; it is unknown, until `conformance.keywords` asks; or any name.
    defaults: what its signature has for arguments that are left out.
    unseen: arguments behind its ** that it may be called without: what they are then is not known.
    earlier: the operands of the call before, which a later call may not write to either.
    layouts: of each operand by its name, how it was given in the calls of the case that was run last.
    left: the settings of the process that it left behind, which are put back for it alone.
    states: which initial states it takes beside offsets alone: "one", that of the first document, or "each", one for
        each document. `conformance.judge.told` tries both.
    """

    name: str
    op: str
    call: Callable[..., Any]
    accepts: frozenset[str]
    device: str = "cpu"
    states: Literal["one", "each"] = "one"
    gate_after: bool | None = False
    keywords: Literal["none", "unknown", "any"] = "none"
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False)
    unseen: frozenset[str] = frozenset()
    earlier: dict[str, Given] = field(default_factory=dict, compare=False, repr=False)
    layouts: dict[str, set[Layout]] = field(default_factory=dict, compare=False, repr=False)
    left: Left = field(default_factory=Left, compare=False, repr=False)

    def operations(self) -> tuple[str, ...]:
        """The operations whose cases it is run on."""
        return CASES_OF.get(self.op, (self.op,))

    @property
    def is_step(self) -> bool:
        """Whether it takes one position at a time."""
        return self.op in CASES_OF

    @property
    def told_of_chunks(self) -> bool:
        """Whether it has an argument for how many positions a chunk has, which a step is not given."""
        return "chunk_size" in self.accepts and not self.is_step

    @property
    def documents(self) -> Documents:
        """What its arguments tell it of documents."""
        return Documents(self.op, self.accepts, self.defaults, self.unseen)

    @torch.no_grad()
    def run(self, case: Case) -> dict[str, Tensor]:
        """Its results by name: y, and last_state where it returns one. Raises Lacks, and whatever the kernel raises."""
        self.layouts.clear()
        found = self._run(case)
        return {name: brought_back(each) for name, each in found.items()}

    def _run(self, case: Case) -> dict[str, Tensor]:
        inputs = {name: tensor.clone().to(self.device) for name, tensor in case.inputs.items()}
        if self.is_step:
            return self._stepped(case, inputs)
        if OFFSETS in self.accepts and "seq_idx" in inputs:
            inputs = self.documents.with_offsets(inputs, self.documents.told(case))
        if cuts := case.options.get("cuts"):
            return self._in_pieces(case, inputs, cuts)
        return self._called(inputs, case, asked=self.documents.asked_of(case).states)

    def _called(self, inputs: Mapping[str, Tensor], case: Case, asked: Collection[str]) -> dict[str, Tensor]:
        """asked: the states that are asked for, which may be another path through a kernel."""
        options = case.arguments
        if self.op == "norm" and self.leaves_out_group_size(case):
            del options["group_size"]  # one group, as where none is named
        if self.op == "norm" and "norm_before_gate" not in self.accepts:
            self._check_side(inputs, options)
        # A limit, a document or a size is not to be left out in silence; a default may be.
        self._check_accepted({*inputs, *(key for key, value in options.items() if value not in (None, False))})
        known = {name: value for name, value in options.items() if name in self.accepts or self.keywords == "any"}
        if "dt_limit" in known:
            known["dt_limit"] = tuple(known["dt_limit"])
        flags = self.documents.flags(inputs, asked)
        given = laid_out(self.op, case, inputs)
        self._see(given)
        with untouched(given, self.earlier), of_the_kernel(self.left):
            found = self.call(**given, **known, **flags)
        # What was asked for and did not come is wrong, and not left out: None is no tensor.
        return {name: kept(name, each) for name, each in self.documents.named(found, inputs, flags).items()}

    def _see(self, given: Mapping[str, Any]) -> None:
        for name, m in given.items():
            if isinstance(m, Tensor):
                self.layouts.setdefault(name, set()).add(Layout(m.is_contiguous(), m.dtype))

    def _check_side(self, inputs: Mapping[str, Tensor], options: dict[str, Any]) -> None:
        """A norm that is not told on which side of it the gate stands: it is run on the cases of the one that it
        computes, and on all without a gate.
        """
        if "z" in inputs and "z" not in self.accepts:  # it is not run for that, whatever its side
            del options["norm_before_gate"]
            return
        if self.gate_after is None and "z" in inputs:
            raise Lacks("it takes no norm_before_gate, and took no case that tells on which side its gate is")
        if self.keywords == "any" and not self.gate_after:
            return
        if "z" in inputs and options["norm_before_gate"] != self.gate_after:
            side = "behind" if self.gate_after else "before"
            raise Lacks(f"it takes no norm_before_gate, and its gate is judged as one {side} the norm")
        del options["norm_before_gate"]

    def leaves_out_group_size(self, case: Case) -> bool:
        """Of one group, always where it has no argument for it, and in half of the cases where None is what it has by
        default.
        """
        if case.options["group_size"] != case.inputs["x"].shape[-1]:
            return False
        by_default = "group_size" in self.defaults and self.defaults["group_size"] is None
        return "group_size" not in self.accepts or (by_default and lot(f"{case.name} group_size", 2) == 0)

    def _check_accepted(self, names: Collection[str]) -> None:
        """Raises Lacks with all that it lacks; the size of a chunk changes no result."""
        if lacking := sorted({*names} - self.accepts - {"chunk_size"}):
            if self.keywords != "none":
                names_no = ", ".join(f"no {name}" for name in lacking)
                raise Lacks(f"it names {names_no}, and what its ** takes is not looked into")
            raise Lacks("it takes " + ", ".join(f"no {name}" for name in lacking))

    def _in_pieces(self, case: Case, inputs: Mapping[str, Tensor], cuts: Sequence[int]) -> dict[str, Tensor]:
        state_in, axis = STATE_IN[self.op], TIME_AXIS[self.op]
        if state_in not in self.accepts:
            raise Lacks(f"it takes no {state_in}")
        length = case.expected["y"].shape[axis]
        pieces: list[Tensor] = []
        state: Tensor | None = None
        for start, stop in zip([0, *cuts], [*cuts, length], strict=True):
            part = {key: piece(self.op, key, m, start, stop) for key, m in inputs.items()}
            if state is not None:
                part[state_in] = state
            found = self._called(part, case, asked=("last_state",))
            if not isinstance(found["y"], Tensor):
                raise Misbehaved(f"y is of type {type(found['y']).__name__}, but must be a tensor.")
            if "last_state" not in found:
                raise Lacks("it returns no last state")
            state = found["last_state"]  # None where it was asked for and did not come
            if not isinstance(state, Tensor):
                raise Misbehaved(f"last_state is of type {type(state).__name__}, but must be a tensor.")
            pieces.append(found["y"])
        return {"y": joined(torch.cat, pieces, axis), "last_state": state}

    def _stepped(self, case: Case, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The sequence one position at a time; the state is updated in place."""
        axis = TIME_AXIS[case.op]
        length = case.expected["y"].shape[axis]
        if "seq_idx" in inputs or case.options.get("dt_limit"):
            raise Lacks(f"a step takes no {'seq_idx' if 'seq_idx' in inputs else 'dt_limit'}")
        state: Any = None
        ys = []
        of_heads = by_head(self.op, case)
        if of_heads and self.op == "channel step":
            raise Lacks("it takes no groups without heads")
        for t in range(length):
            state, arguments = at_position(case, inputs, t, state)
            if of_heads:
                state, arguments = in_heads(inputs, state, arguments)
            self._check_accepted(
                [name for name, value in arguments.items() if value is not None and value is not False]
            )
            known = {*self.accepts, *(["dt_softplus"] if self.keywords == "any" else [])}
            given = laid_out("step", case, {k: m for k, m in arguments.items() if k in known and m is not None})
            state = laid_out("step", case, {"state": state})["state"] if t == 0 else state
            self._see({**given, "state": state})
            by_name = {"state": state} if "state" in self.accepts else {}
            with untouched(given, self.earlier), in_place(state), of_the_kernel(self.left):
                y = self.call(**by_name, **given) if by_name else self.call(state, **given)
            ys.append(kept("y", alone(y)))
        y = joined(torch.stack, ys, axis)
        return in_channels(y, state) if of_heads else {"y": y, "last_state": state}


def piece(op: str, name: str, tensor: Tensor, start: int, stop: int) -> Tensor:
    """The positions start … stop of an operand that has positions."""
    axes = {"selective_scan": {"u": 2, "delta": 2, "B": -1, "C": -1, "z": 2}, "conv": {"x": 2, "seq_idx": 1}}
    axes["ssd"] = {"x": 1, "dt": 1, "B": 1, "C": 1, "z": 1, "seq_idx": 1}
    axes["delta_rule"] = dict.fromkeys(("q", "k", "v", "g", "beta", "seq_idx"), 1)
    axis = axes[op].get(name)
    return tensor if axis is None else tensor.narrow(axis, start, stop - start).contiguous()
