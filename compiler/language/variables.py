"""The variables of a circuit's author: what the streams are called in the function that builds the circuit."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from compiler.language.stream import Stream

_PACKAGE = __name__.split(".")[0]
_CREATION = 3  # frames: this function, __post_init__ and __init__ of the circuit


def note_variables() -> None:
    """Note, at the streams that local variables of the function that makes a circuit hold, what these are called.

    Circuits that this package itself makes, of others, have no author's variables. A stream keeps its first.
    """
    frame = sys._getframe(_CREATION)
    if frame.f_globals.get("__name__", "").split(".")[0] == _PACKAGE:
        return
    for name, value in frame.f_locals.items():
        if isinstance(value, Stream) and value.variable is None and not name.startswith("_"):
            value.variable = name


def distinct_names(streams: Iterable[Stream], output: Stream) -> Iterator[tuple[str, ...]]:
    """All names that each stream goes by; the first is no other stream's first, as #2, #3, … tell equal ones apart.

    They are what its author called it (by `named`, then as a variable), its expression, and its line.
    """
    taken = set[str]()
    for stream in streams:
        known = (stream.name, stream.as_written.variable, stream.label, stream.origin)
        names = [name for name in dict.fromkeys(known) if name] + ["output"] * (stream is output)
        unique, again = names[0], 1
        while unique in taken:
            again += 1
            unique = f"{names[0]}#{again}"
        taken.add(unique)
        yield tuple(dict.fromkeys([unique, *names]))
