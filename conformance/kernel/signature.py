"""A function as a kernel: its operation and its arguments are read from its signature."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch

from conformance.kernel.arguments import (
    ABSENT,
    CASES_OF,
    OFFSETS,
    OPERATIONS,
    SIGNATURES,
    STATE_IN,
    STATE_OUT,
    names_of,
    needed_by,
)
from conformance.kernel.kernel import Kernel


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
    if op in CASES_OF and "state" not in accepts and not _has_room_for_a_state(parameters.values()):
        raise ValueError(
            f"{name} is no step: it has no argument for its state, which is updated in place; wrap it in a function of "
            f"step({SIGNATURES['step']})."
        )
    absent = {each.name: ABSENT[each.name] for each in parameters.values() if _is_asked_for(each)}
    if absent:
        call = with_absent(call, absent)
    op = op or _certain(name, _operation(name, [*parameters.values()]), parameters.values())
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


def _has_room_for_a_state(parameters: Iterable[inspect.Parameter]) -> bool:
    """Whether a state that is given first lands in an argument that is none of a step's other ones."""
    first = next(iter(parameters), None)
    return first is not None and (first.kind is first.VAR_POSITIONAL or first.name not in names_of("step"))


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


def _operation(name: str, parameters: Sequence[inspect.Parameter]) -> str:
    names = {each.name for each in parameters}
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
    if may_be := " or ".join(_may_be(parameters)):
        raise ValueError(
            f"{name} may be {may_be} by its arguments ({', '.join(sorted(names))}): say so by --operation {may_be}, or "
            f"wrap a kernel of another operation in a function of one of these: {known}."
        )
    raise ValueError(
        f"{name} is no kernel: its arguments ({', '.join(sorted(names)) or 'none'}) are those of no operation; wrap a "
        f"kernel in a function of one of these, of which it may leave out what it does not do: {known}."
    )


def _may_be(parameters: Sequence[inspect.Parameter]) -> list[str]:
    """The operations whose cases a function can be run on that is told which: it has what they need, and needs no more
    than they have.
    """
    own = [each for each in parameters if each.kind not in _ANY]
    names = {each.name for each in own}
    needed = {each.name for each in own if each.default is each.empty}
    return [op for op in OPERATIONS if needed_by(op) <= names and needed <= names_of(op)]
