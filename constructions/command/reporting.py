"""Reports of commands whose answers are numbers: a table of two columns for people, one object for machines."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

import typer
from rich.table import Column, Table

from compiler import digits
from constructions.command.display import console, say


def show(result: dict[str, Any], as_json: bool, good: bool) -> None:
    """The report, flat, as a table of two columns or as JSON; exit code 1 where a check failed."""
    if as_json:
        say(strict_json(result))
    else:
        table = Table("", "", show_header=False)
        for name, value in _flat(result):
            table.add_row(name, value)
        console.print(table)
    verdict(good)


def strict_json(result: Any) -> str:
    """JSON that every parser takes: what is infinite or no number stands as null."""
    return json.dumps(_finite(result), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def verdict(good: bool) -> None:
    """Exit code 1 where a check failed."""
    if not good:
        say("a check failed: the values above do not agree with the statement", err=True)
        raise typer.Exit(1)


def table_of(rows: list[dict[str, Any]], keys: tuple[str, ...], tight: bool = False) -> Table:
    """A table of some columns of the rows; None shows as nothing. tight: without lines, one space between columns."""
    names = [key.replace("_", " ") for key in keys]
    heads = [Column(name, min_width=max(map(len, name.split()))) for name in names]  # no word of a head is cut off
    table = Table(*heads, box=None, padding=(0, 1, 0, 0)) if tight else Table(*heads)
    for row in rows:
        table.add_row(*(_cell(key, row[key]) for key in keys))
    return table


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    return digits.named(key, value) if isinstance(value, float) else str(value)


def _flat(result: dict[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows = []
    for key, value in result.items():
        name = f"{prefix}{key.replace('_', ' ')}"
        if isinstance(value, dict):
            rows += _flat(value, f"{name}: ")
        else:
            rows.append((name, _told(key, value)))
    return rows


def _told(key: str, value: Any) -> str:
    """A value for people; a measure that is None is one of no sample."""
    if value is None:
        return "not saved" if key == "out" else "nothing was measured"
    return digits.named(key, value, 4) if isinstance(value, float) else str(value)
