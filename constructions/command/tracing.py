"""`construct trace`: the patches that it takes as text, and what it shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from compiler.artifact.load import load_over_tokens
from compiler.disguise.traced import load_disguised
from compiler.tracing.trace import Trace

_PATCH = re.compile(r"(?P<name>.+)@(?P<position>-?\d+)=(?P<value>.*)")
_WORDS = {"none": None, "true": True, "false": False}


def traced(directory: Path, text: str, patches: list[str], key: Path | None = None) -> Trace:
    """The trace of an input under patches "NAME@POSITION=VALUE"; ValueError for one that is none. key: of a
    disguise."""
    model = load_over_tokens(directory) if key is None else load_disguised(directory, key)
    found: dict[str, dict[int, Any]] = {}
    for patch in patches:
        parts = _PATCH.fullmatch(patch)
        if parts is None:
            raise ValueError(f'--patch is {patch!r}, and "NAME@POSITION=VALUE" is needed, such as "stack@3=("')
        found.setdefault(parts["name"], {})[int(parts["position"])] = _value(parts["value"])
    try:
        return model.patch(found).trace(text) if found else model.trace(text)
    except LookupError as reason:  # a name or a position that is not there
        raise ValueError(str(reason)) from reason


def _value(text: str) -> Any:
    """A number, a list of numbers with commas between, none, true, false, or a letter."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    numbers = text.split(",")
    try:
        plain = [float(number) for number in numbers]
    except ValueError:
        return text
    whole = [int(number) if number.is_integer() else number for number in plain]
    return whole[0] if len(whole) == 1 else whole


def shown(trace: Trace) -> str:
    """The table, and in what the run is outside the promise or differs from the circuit."""
    lines = [trace.table()]
    lines += [f"outside the promise: {sentence}" for sentence in trace.outside]
    if trace.agrees:
        lines.append("every variable and every score is the circuit's")
    lines += [f"not the circuit's: {sentence}" for sentence in trace.differences]
    return "\n".join(lines)
