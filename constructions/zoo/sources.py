"""The code behind a circuit of the zoo: the function that makes it, and the plain Python that answers beside it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from functools import partial
from textwrap import dedent
from typing import Any

from constructions.zoo.entry import Entry, FromPaper, Own
from constructions.zoo.machine import Machine


def source(entry: Entry) -> str:
    """The code that makes the circuit: functions of the zoo, or a construction and its parameters."""
    if isinstance(entry, FromPaper):
        construction = entry.construction
        given = ", ".join(f"{name}={value!r}" for name, value in construction.params().items())
        return f"{type(construction).__module__}.{type(construction).__qualname__}({given})"
    assert isinstance(entry, Own)
    made = entry.make
    if isinstance(made, partial):
        return _joined([*_with_helpers([made.func]), f"{made.func.__name__}({', '.join(map(repr, made.args))})\n"])
    return _joined(_with_helpers([made]))


def oracle_source(entry: Entry) -> str:
    """The code that gives the right answers and shares none with the circuit: functions of the zoo, with the values
    that they close over, or the tasks of a construction.
    """
    if isinstance(entry, FromPaper):
        return _joined(_code(type(task)) for task in entry.construction.tasks())
    assert isinstance(entry, Own)
    oracle = entry.oracle
    if isinstance(oracle, Machine):
        functions = [oracle.step, oracle.answer]
    elif inspect.isfunction(oracle):
        functions = [oracle]
    else:  # an object that is called
        return _joined([_code(type(oracle).__call__, whole=False), f"{oracle!r}\n"])
    return _joined([*_with_helpers(functions), *map(_closed_over, functions)])


def _with_helpers(functions: Iterable[Callable[..., Any]]) -> list[str]:
    """The code of functions, and of those of the same file that they call."""
    front, found = list(functions), []
    while front:
        function = front.pop(0)
        if function in found:
            continue
        found.append(function)
        if inspect.isfunction(function):
            named = inspect.getclosurevars(function).globals.values()
            front += [f for f in named if inspect.isfunction(f) and f.__module__ == function.__module__]
    return [_code(function) for function in found]


def _code(one: Any, whole: bool = True) -> str:
    """Its source. whole: of a function within another that of the outer one, whose arguments it uses."""
    outer = getattr(one, "__qualname__", "").split(".<locals>")[0]
    around = getattr(sys.modules.get(getattr(one, "__module__", "") or ""), outer, one)
    try:
        return dedent(inspect.getsource(around if whole else one))
    except (TypeError, OSError):  # a function of Python's own
        return f"{getattr(one, '__name__', one)}\n"


def _closed_over(function: Callable[..., Any]) -> str:
    """A line for each plain value that a function has from the one around it."""
    if not inspect.isfunction(function):
        return ""
    values = inspect.getclosurevars(function).nonlocals
    return "".join(f"# {name} = {value!r}\n" for name, value in sorted(values.items()) if not callable(value))


def _joined(parts: Iterable[str]) -> str:
    """Each part once."""
    return "\n".join(dict.fromkeys(part for part in parts if part))
