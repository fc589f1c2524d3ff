"""Command lines: several in one new process, whatever has to happen in it before; and all that there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PROGRAM = """
import contextlib, io, json, sys
from constructions.__main__ import main

told = []
for line in json.loads(sys.argv[1]):
    sys.argv, out, err, code = ["construct", *line], io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    told.append((code, out.getvalue(), err.getvalue(), [*sys.modules]))
print(json.dumps(told))
"""
"""Of JSON lines, its one argument, it prints for each (exit code, output, errors, the modules loaded by then)."""


def commands(found: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command and group of the application, or of one of its groups, by its name."""
    yield names, found
    for name, each in getattr(found, "commands", {}).items():
        yield from commands(each, (*names, name))
