"""The variables of a circuit's author: what the streams are called in the function that builds the circuit."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Iterable, Iterator

from compiler.language.arguments import shown
from compiler.language.stream import Stream

_PACKAGE = __name__.split(".")[0]
INPUT, OUTPUT = "input", "output"  # what every trace calls the input and what the circuit gives
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


def check_variable(name: str) -> None:
    """ValueError for a name that no variable of a Python function can have, or that `note_variables` passes over."""
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ValueError(f"a variable is called {shown(name)}, and a name in Python that begins with no _ is needed")


def distinct_names(streams: Iterable[Stream], output: Stream) -> Iterator[tuple[str, ...]]:
    """All names that each stream goes by; the first is no other stream's first, as #2, #3, … tell equal ones apart.

    They are what its author called it (by `named`, then as a variable), its expression, and its line. `output` is what
    the circuit gives, and `input` the token that a trace shows beside the variables: another stream that its author
    called so is output#2 or input#2.
    """
    taken: set[str] = set()
    for stream in streams:
        others = {INPUT} if stream is output else {INPUT, OUTPUT}
        known = (stream.name, stream.as_written.variable, stream.label, stream.origin)
        names = [name for name in dict.fromkeys(known) if name] + [OUTPUT] * (stream is output)
        unique, again = names[0], 1
        while unique in taken or unique in others:
            again += 1
            unique = f"{names[0]}#{again}"
        taken.add(unique)
        yield tuple(name for name in dict.fromkeys([unique, *names]) if name not in others)
