"""A kernel under test: what it computes, read from its signature, and how a case is run on it."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch
from torch import Tensor

from compiler.own_file import module_of
from conformance.arguments import (
    ABSENT,
    CASES_OF,
    OFFSETS,
    OPERATIONS,
    SIGNATURES,
    STATE_IN,
    STATE_OUT,
    TIME_AXIS,
    Lacks,
    names_of,
)
from conformance.documents import Documents, without_last_none
from conformance.interrupt import interrupted
from conformance.layouts import bits, bits_beside, is_dense, laid_out, same_bits
from conformance.loader import Case
from conformance.lots import lot
from conformance.sentences import sentence
from conformance.settings import Left, of_the_kernel


@dataclass(frozen=True)
class Layout:
    """How an operand of a call was given."""

    dense: bool
    dtype: torch.dtype


@dataclass(frozen=True)
class Given:
    """An operand that was given in a call, and a copy of it as it was."""

    operand: Tensor
    before: Tensor


class Misbehaved(Exception):
    """The kernel has written where nobody may, or handed on no state; the message says which."""


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
    def documents(self) -> Documents:
        """What its arguments tell it of documents."""
        return Documents(self.op, self.accepts, self.defaults, self.unseen)

    @torch.no_grad()
    def run(self, case: Case) -> dict[str, Tensor]:
        """Its results by name: y, and last_state where it returns one. Raises Lacks, and whatever the kernel raises."""
        self.layouts.clear()
        found = self._run(case)
        return {name: _brought_back(each) for name, each in found.items()}

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
        if self.op == "norm" and options["group_size"] == inputs["x"].shape[-1] and self._leaves_out_group_size(case):
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
        with _untouched(given, self.earlier), of_the_kernel(self.left):
            found = self.call(**given, **known, **flags)
        # What was asked for and did not come is wrong, and not left out: None is no tensor.
        return {name: _kept(name, each) for name, each in self.documents.named(found, inputs, flags).items()}

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

    def _leaves_out_group_size(self, case: Case) -> bool:
        """Always where it has no argument for it, and in half of the cases where None is what it has by default."""
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
        return {"y": _joined(torch.cat, pieces, axis), "last_state": state}

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
            state, arguments = (_scan_step if case.op == "selective_scan" else _ssd_step)(case, inputs, t, state)
            if of_heads:
                state, arguments = _in_heads(inputs, state, arguments)
            self._check_accepted(
                [name for name, value in arguments.items() if value is not None and value is not False]
            )
            known = {*self.accepts, *(["dt_softplus"] if self.keywords == "any" else [])}
            given = laid_out("step", case, {k: m for k, m in arguments.items() if k in known and m is not None})
            state = laid_out("step", case, {"state": state})["state"] if t == 0 else state
            self._see({**given, "state": state})
            by_name = {"state": state} if "state" in self.accepts else {}
            with _untouched(given, self.earlier), _in_place(state), of_the_kernel(self.left):
                y = self.call(**by_name, **given) if by_name else self.call(state, **given)
            ys.append(_kept("y", _alone(y)))
        y = _joined(torch.stack, ys, axis)
        return _in_channels(y, state) if of_heads else {"y": y, "last_state": state}


def by_head(op: str, case: Case) -> bool:
    """Whether a step gets a case of the scan as one of heads, of which each channel has a Δ and a decay of its own."""
    return case.op == "selective_scan" and (op == "head step" or case.inputs["B"].dim() == 4)


def _alone(results: Any) -> Any:
    """What a step returns, without None behind it: no state is asked of it, for that is updated in place."""
    found = without_last_none(tuple(results)) if isinstance(results, (tuple, list)) else ()
    return found[0] if len(found) == 1 else results


def _in_heads(
    inputs: Mapping[str, Tensor], state: Tensor, arguments: Mapping[str, Any]
) -> tuple[Tensor, dict[str, Any]]:
    """A step of channels as one of heads, each of as few channels of one group as it can have, but more than one."""
    channels, groups = inputs["A"].shape[0], inputs["B"].shape[1] if inputs["B"].dim() == 4 else 1
    of_group = channels // groups
    p = next((p for p in range(2, of_group + 1) if of_group % p == 0), 1)
    split: Any = lambda m, axis: m if m is None else m.unflatten(axis, (channels // p, p))
    found = {name: split(arguments[name], axis) for name, axis in (("x", 1), ("dt", 1), ("z", 1), ("A", 0), ("D", 0))}
    found["dt_bias"] = split(arguments["dt_bias"], 0)
    found |= {name: m[:, None] if m.dim() == 2 else m for name, m in arguments.items() if name in ("B", "C")}
    own = split(state, 1).clone() if state.dim() == 3 else state  # no view: what lies beside one is looked at
    return own, {**arguments, **found}


def _in_channels(y: Any, state: Tensor) -> dict[str, Any]:
    """The results of heads, y (b, h, p, …) of all positions, as those of channels."""
    if not is_dense(y):
        return {"y": y, "last_state": state}
    batch, heads, p, _ = state.shape
    if y.dim() != 4 or (y.shape[0], y.shape[1], y.shape[3]) != (batch, heads, p):
        raise Misbehaved(f"y has shape {(*y.shape[:2], *y.shape[3:])}, but must have {(batch, heads, p)}.")
    return {"y": y.movedim(2, -1).flatten(1, 2), "last_state": state.flatten(1, 2)}


def _joined(join: Callable[..., Tensor], pieces: Sequence[Any], axis: int) -> Any:
    """The pieces as one result; or the first that is no dense tensor, which is then told as what it is. Raises
    Misbehaved where their shapes do not fit together.
    """
    other = [m for m in pieces if not is_dense(m)]
    if other:
        return other[0]
    rest = lambda m: (*m.shape[:axis], *m.shape[axis + (join is torch.cat) :])
    least = axis + (join is torch.cat)  # axes that each must have
    if any(m.dim() < least or rest(m) != rest(pieces[0]) for m in pieces):
        shapes = ", ".join(map(str, dict.fromkeys(tuple(m.shape) for m in pieces)))
        raise Misbehaved(f"y of one call after the other has the shapes {shapes}, which are no parts of one y")
    return join(pieces, axis)


@contextmanager
def _untouched(given: Mapping[str, Any], earlier: dict[str, Given]) -> Iterator[None]:
    """Raises Misbehaved where a tensor, or what it is a view of, is not at the end what it was at the beginning; or one
    of the call before, in whose place those of this one are kept.
    """
    last = {**earlier}
    earlier.clear()
    tensors = {name: m for name, m in given.items() if isinstance(m, Tensor)}
    before = {name: m.clone() for name, m in tensors.items()}
    around = {id(base): bits(base).clone() for m in tensors.values() if (base := m._base) is not None}
    memory = {name: _memory(m) for name, m in tensors.items()}
    yield
    if changed := [name for name, each in last.items() if not _is_same(each.before, each.operand)]:
        raise Misbehaved(f"it writes into an operand of the call before, {', '.join(changed)}")
    earlier |= {name: Given(given[name], m) for name, m in before.items() if given[name].shape == m.shape}
    if changed := [name for name, m in before.items() if not _is_same(m, given[name])]:
        earlier.clear()
        raise Misbehaved(f"it writes into its operand {', '.join(changed)}")
    if changed := [name for name, m in tensors.items() if _memory(m) != memory[name]]:
        earlier.clear()
        raise Misbehaved(f"it puts other memory in the place of its operand {', '.join(changed)}")
    viewed = {name: m._base for name, m in tensors.items() if m._base is not None}
    if changed := [name for name, base in viewed.items() if not _holds(base, around[id(base)])]:
        raise Misbehaved(f"it writes beside its operand {', '.join(changed)}")


@contextmanager
def _in_place(state: Tensor) -> Iterator[None]:
    """Raises Misbehaved where a state has other memory at the end, or something was written beside it."""
    memory, beside_it = state.data_ptr(), bits_beside(state)
    before = None if beside_it is None else beside_it.clone()
    yield
    if state.data_ptr() != memory:
        raise Misbehaved("it puts other memory in the place of its state")
    if beside_it is not None and before is not None and not torch.equal(beside_it, before):
        raise Misbehaved("it writes beside its state")


def _holds(base: Tensor, before: Tensor) -> bool:
    """Whether memory has the bits that it had."""
    return base.shape == before.shape and torch.equal(bits(base), before)


def _is_same(before: Tensor, after: Tensor) -> bool:
    """Bit for bit, in the same dtype: NaN is the same as itself, and 0 is not −0."""
    return before.shape == after.shape and before.dtype == after.dtype and same_bits(before, after)


def _memory(m: Tensor) -> tuple[int, tuple[int, ...]]:
    """Where a tensor lies, and how: `m.data = …` may change both, and no number."""
    return m.data_ptr(), m.stride()


def _brought_back(result: Any) -> Any:
    """A result on the CPU; what is no tensor, or has no values, is told as it is."""
    return result.cpu() if isinstance(result, Tensor) and not result.is_meta else result


def _kept(name: str, result: Any) -> Any:
    """A copy, made before the kernel is called again: it may write each result into the same memory. Of a class of
    others, whose methods may do anything, the numbers alone; raises Misbehaved where they cannot be read. A coroutine
    is closed: no warning that it was never awaited comes later.
    """
    if inspect.iscoroutine(result):
        result.close()
    if type(result) in (Tensor, torch.nn.Parameter) or not isinstance(result, Tensor):
        return result.detach().clone() if is_dense(result) and not result.is_meta else result
    try:
        if not is_dense(result) or result.is_meta:
            return result
        plain = torch.empty(result.shape, dtype=result.dtype, device=result.device)
        plain.copy_(result.detach())  # gives one of the class of others back
        return plain
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) and interrupted():
            raise
        kind = type(result).__name__
        raise Misbehaved(f"{name}, a tensor of the class {kind}, cannot be read: {sentence(error)}") from error


def piece(op: str, name: str, tensor: Tensor, start: int, stop: int) -> Tensor:
    """The positions start … stop of an operand that has positions."""
    axes = {"selective_scan": {"u": 2, "delta": 2, "B": -1, "C": -1, "z": 2}, "conv": {"x": 2, "seq_idx": 1}}
    axes["ssd"] = {"x": 1, "dt": 1, "B": 1, "C": 1, "z": 1, "seq_idx": 1}
    axes["delta_rule"] = dict.fromkeys(("q", "k", "v", "g", "beta", "seq_idx"), 1)
    axis = axes[op].get(name)
    return tensor if axis is None else tensor.narrow(axis, start, stop - start).contiguous()


def _scan_step(case: Case, inputs: Mapping[str, Tensor], t: int, state: Tensor | None) -> tuple[Tensor, dict[str, Any]]:
    if state is None:
        batch, channels = inputs["u"].shape[:2]
        state = inputs.get("initial_state", inputs["A"].new_zeros(batch, channels, inputs["A"].shape[1]))
    now: dict[str, Any] = {
        name: inputs[key][..., t] for name, key in (("x", "u"), ("dt", "delta"), ("B", "B"), ("C", "C"))
    }
    z = inputs["z"][..., t] if "z" in inputs else None
    more = {"A": inputs["A"], "D": inputs.get("D"), "z": z, "dt_bias": inputs.get("delta_bias")}
    return state, now | more | {"dt_softplus": case.options["delta_softplus"]}


def _ssd_step(case: Case, inputs: Mapping[str, Tensor], t: int, state: Tensor | None) -> tuple[Tensor, dict[str, Any]]:
    x, B = inputs["x"], inputs["B"]
    (batch, _, heads, p), n = x.shape, B.shape[-1]
    if state is None:
        state = inputs.get("initial_states", inputs["A"].new_zeros(batch, heads, p, n))
    wide: Any = lambda m: None if m is None else m[..., None].expand(*m.shape, p)
    D = inputs.get("D")
    return state, {
        "x": x[:, t],
        "dt": wide(inputs["dt"][:, t]),
        "A": wide(inputs["A"])[..., None].expand(heads, p, n),
        "B": B[:, t],
        "C": inputs["C"][:, t],
        "D": D if D is not None and D.dim() == 2 else wide(D),
        "z": inputs["z"][:, t] if "z" in inputs else None,
        "dt_bias": wide(inputs.get("dt_bias")),
        "dt_softplus": case.options["dt_softplus"],
    }


def kernel(function: Callable[..., Any], name: str = "", op: str | None = None, device: str = "cpu") -> Kernel:
    """A function as a kernel; its operation is read from the names of its arguments unless it is told.

    Raises ValueError where they are those of no operation, or leave open which it is.
    """
    parameters = signature(function).parameters
    name = name or getattr(function, "__name__", "kernel")
    accepts = frozenset(parameters)
    by_place = [each for each in parameters.values() if each.kind is each.POSITIONAL_ONLY]
    call = _by_place(function, by_place) if by_place else function
    if op in CASES_OF and "state" not in accepts and (state := _state_of(parameters.values())):
        call, accepts = _with_state(call, state), accepts | {"state"}
    absent = {each.name: ABSENT[each.name] for each in parameters.values() if _is_asked_for(each)}
    if absent:
        call = with_absent(call, absent)
    op = op or _certain(name, _operation(name, accepts), parameters.values())
    if op != "delta_rule" or OFFSETS in accepts:  # without offsets it is told of documents by their numbers
        accepts -= {"seq_idx", OFFSETS} - names_of(op)
    open_ended = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    defaults = {each.name: each.default for each in parameters.values() if each.default is not each.empty}
    return Kernel(name, op, call, accepts, device, keywords="unknown" if open_ended else "none", defaults=defaults)


def signature(function: Callable[..., Any]) -> inspect.Signature:
    """That of a function; of a module, which takes any arguments and hands them on, that of its forward."""
    return inspect.signature(function.forward if isinstance(function, torch.nn.Module) else function)


_STATES = {"state", "states", "ssm_state", "conv_state", "h", "h0", "hidden", "s", "S", "cache", "prev", "out_state"}
_OF_SEQUENCES = {"chunk_size", "seq_idx", OFFSETS, *STATE_IN.values(), *STATE_OUT}
_STEP_LIKE = re.compile(r"(^|_)(step|update|decode|recurrent_step)(_|$)")


def _certain(name: str, op: str, parameters: Iterable[inspect.Parameter]) -> str:
    """The operation that is read from the names of a kernel's arguments. ValueError where it may be another one: the
    kernel needs what this one has not, or takes a state or is called as a step does.
    """
    known = names_of(op)
    others = [each for each in parameters if each.name not in known and each.kind not in _ANY]
    needed = [each.name for each in others if each.default is each.empty]
    elsewhere = _OF_SEQUENCES if op == "step" else _STATES
    doubtful = [each.name for each in others if each.name in elsewhere]
    called = name.rpartition(":")[2]
    doubt = ""
    if needed or doubtful:
        doubt = f"it takes {', '.join(needed or doubtful)}, which {op} has not"
    elif op != "step" and _STEP_LIKE.search(called):
        doubt = f"it is called {called}, as a step is"
    if doubt:
        raise ValueError(
            f"{name} looks like {op} by its arguments, but {doubt}: say by --operation which it is, one of "
            f"{', '.join(OPERATIONS)}, or wrap it in a function of {op}({SIGNATURES[op]})."
        )
    return op


def _state_of(parameters: Iterable[inspect.Parameter]) -> str:
    """What a step calls its state: the one argument that is none of a step, of those that it needs if it needs any; ""
    where there are several, or none.
    """
    known = names_of("step")
    others = [each for each in parameters if each.name not in known and each.kind not in _ANY]
    found = [each.name for each in others if each.default is each.empty] or [each.name for each in others]
    return found[0] if len(found) == 1 else ""


def _with_state(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A step that is given its state by the name that it has for it."""
    return lambda *places, state, **given: function(*places, **{name: state}, **given)


_ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
"""Of *args and **kwargs, which need nothing."""


def _is_asked_for(parameter: inspect.Parameter) -> bool:
    """Whether it has no default, and stands for what a case may lack."""
    return parameter.default is parameter.empty and parameter.name in ABSENT


def with_absent(function: Callable[..., Any], absent: Mapping[str, Any]) -> Callable[..., Any]:
    """What a case lacks is given as None or False to a function that has no default for it."""
    return lambda *places, **given: function(*places, **{**absent, **given})


def _by_place(function: Callable[..., Any], places: Sequence[inspect.Parameter]) -> Callable[..., Any]:
    """A function some of whose arguments have no names to be given by. What is not given is what it is by default."""

    def call(*first: Any, **given: Any) -> Any:
        rest = places[len(first) :]
        missing = [each.name for each in rest if each.name not in given and each.default is each.empty]
        if missing:
            raise TypeError(f"it needs {', '.join(missing)}")
        by_place = [*first, *(given.pop(each.name, each.default) for each in rest)]
        return function(*by_place, **given)

    return call


def _operation(name: str, names: frozenset[str]) -> str:
    marks = {"step": {"state", "dt"}, "selective_scan": {"u", "delta"}, "ssd": {"x", "dt", "B"}}
    marks |= {
        "delta_rule": {"q", "k", "v", "beta"},
        "conv": {"x", "weight", "activation"},
        "norm": {"x", "weight", "eps"},
    }
    for op, needed in marks.items():
        if needed <= names:
            return op
    known = "; ".join(f"{op}({arguments})" for op, arguments in SIGNATURES.items())
    raise ValueError(
        f"{name} is no kernel: its arguments ({', '.join(sorted(names)) or 'none'}) are those of no operation; wrap a "
        f"kernel in a function of one of these, of which it may leave out what it does not do: {known}."
    )


def kernel_named(path: str, op: str | None = None, device: str = "cpu") -> Kernel:
    """The kernel at "module:function" or "FILE.py:function", of an operation if it is told.

    Modules are looked for in the current folder, and a file's own imports beside it, after all that is installed.
    Raises ValueError where there is no such function.
    """
    if op is not None:
        check_operation(op)
    place, colon, name = path.rpartition(":")
    if not colon or not place or not name:
        raise ValueError(
            f"--kernel {path!r} must be module:function or FILE.py:function, such as mypackage.scan:selective_scan."
        )
    left = Left()
    try:
        with of_the_kernel(left):
            module = _file(Path(place)) if place.endswith(".py") else _module(place)
            function = getattr(module, name)
    except (Exception, SystemExit) as error:  # a module of others may raise anything
        why = str(getattr(error, "strerror", None) or error).splitlines()
        raise ValueError(f"--kernel {path!r} cannot be imported: {why[0] if why else type(error).__name__}.") from error
    try:
        signature(function)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"--kernel {path!r} is of type {type(function).__name__}, and a function whose arguments have names is "
            "needed."
        ) from error
    return replace(kernel(function, path, op, device), left=left)


def check_operation(op: str) -> None:
    """ValueError for a name of no operation."""
    if op not in OPERATIONS:
        raise ValueError(f"--operation {op!r} is not known: expected one of {', '.join(OPERATIONS)}.")


def _module(name: str) -> ModuleType:
    """Raises ImportError where another module of this name stands before that of the current folder."""
    _look_in(Path.cwd())
    module = importlib.import_module(name)
    first, found = Path.cwd() / name.partition(".")[0], getattr(module, "__file__", None)
    here = first.with_suffix(".py").is_file() or (first / "__init__.py").is_file()
    if here and found and not Path(found).resolve().is_relative_to(Path.cwd().resolve()):
        raise ImportError(f"its name is taken by {found}; name the file, as in FILE.py:function")
    return module


def _file(path: Path) -> ModuleType:
    """A module from a file, whatever its name."""
    _look_in(path.resolve().parent)
    return module_of(path)


def _look_in(folder: Path) -> None:
    """Last: a file there may have the name of a package of ours, or of one that we import later."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
