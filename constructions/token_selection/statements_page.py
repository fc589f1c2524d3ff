"""`construct reproduce statements`: rows that are kept in a file, and their table on a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from compiler.artifact.json_files import shown
from compiler.artifact.plain_files import text_of, write_whole
from constructions.command.reporting import strict_json
from constructions.copy_dp.places import Arch
from constructions.experiments.names import WHAT
from constructions.experiments.table_files import TableFiles
from constructions.token_selection.page import with_table_at
from constructions.token_selection.statements import ARCHS, STATEMENTS, Row, Run, Statement, measure

HEAD = "| statement | on |"
_COLUMNS = (
    "statement",
    "on",
    "every input of",
    "right",
    "long",
    "tokens",
    "right",
    "bits",
    "sizes",
    "damage seen",
    "CPU s",
)


def chosen(only: Sequence[str] = ()) -> list[tuple[Statement, Arch]]:
    """Statements on mixers; only: those that one of these texts names, by statement, command and mixer."""
    rows = [(statement, arch) for statement in STATEMENTS for arch in ARCHS]
    wanted = [[row for row in rows if set(text.split()) <= _words(*row)] for text in only]
    for text, found in zip(only, wanted, strict=True):
        if not found:
            names = ", ".join(dict.fromkeys(statement.small.name for statement in STATEMENTS))
            raise ValueError(f"--only {text!r}: no such row; name a command ({names}), a statement or a mixer")
    return [row for row in rows if not only or any(row in found for found in wanted)]


def _words(statement: Statement, arch: str) -> set[str]:
    return {*statement.name.replace(",", "").split(), statement.small.name, arch}


def kept_rows(path: Path | None) -> list[Row]:
    """The rows of a file, [] where there is none yet; ValueError for one that holds something else."""
    if path is None or not path.exists():
        return []
    try:
        return [Row.of(record) for record in json.loads(text_of(path))]
    except (ValueError, TypeError, KeyError, RecursionError) as reason:
        raise ValueError(f"--keep {path}: it holds no rows of statements ({shown(str(reason))})") from None


def run(only: Sequence[str], samples: int, seed: int, keep: Path | None, advance: Callable[[int], None]) -> list[Row]:
    """Measure what the file does not hold as it is asked for now, and write each row as it is done."""
    kept = {row.key: row for row in kept_rows(keep)}
    rows = []
    for statement, arch in chosen(only):
        row = kept.get((statement.name, arch))
        if row is None or (row.samples, row.seed) != (samples, seed) or not row.good:
            row = measure(statement, arch, samples, seed)
            kept[row.key] = row
            if keep is not None:
                write(keep, list(kept.values()))
        rows.append(row)
        advance(1)
    return rows


def write(path: Path, rows: Sequence[Row]) -> None:
    """The rows in the order of the table."""
    order = [(statement.name, arch) for statement, arch in chosen()]
    content = [asdict(row) for row in sorted(rows, key=lambda row: order.index(row.key))]
    write_whole(path, json.dumps(content, indent=1) + "\n")


def table(rows: Sequence[Row]) -> str:
    """Markdown: a line for each row, and a sentence for each that is refused."""
    lines = [_COLUMNS, ["---"] * len(_COLUMNS), *map(_cells, rows)]
    told = [f"- {row.statement} on {row.arch} is refused: {row.refused}." for row in rows if row.refused]
    return "\n".join([*(f"| {' | '.join(cells)} |" for cells in lines), *(["", *told] if told else [])])


def _cells(row: Row) -> list[str]:
    if row.refused:
        return [row.statement, row.arch, "refused", *[""] * (len(_COLUMNS) - 4), f"{row.cpu_seconds:,.0f}"]
    first, long = row.every[0], row.random[0]
    equal = all(run.exact for run in (*row.every, *row.random))
    seen = f"{row.plants.seen} of {row.plants.count}" if row.plants else ""
    told = [row.statement, row.arch, f"`{first.model}`", _right(row.every), f"`{long.model}`", f"{long.tokens:,}"]
    return [*told, _right(row.random), "equal" if equal else "DIFFER", row.sizes, seen, f"{row.cpu_seconds:,.0f}"]


def _right(runs: Sequence[Run]) -> str:
    """Of the worst of the runs, which are of the same sequences."""
    worst = min(runs, key=lambda run: run.right)
    return f"{worst.right:,} of {worst.queries:,}"


def reproduce(
    only: Sequence[str],
    samples: int,
    seed: int,
    keep: Path | None,
    page: Path | None,
    files: TableFiles,
    as_json: bool,
) -> None:
    """Run what is not kept, show all of it; page: one whose table is written anew from all that --keep holds."""
    import typer

    from constructions.command import display

    if page is not None:
        text_of(page)  # refused now, not behind the runs
    with display.progress(quiet=as_json) as bars:
        rows = run(only, samples, seed, keep, bars("statements", len(chosen(only))))
    if page is not None:
        write_whole(page, with_table_at(HEAD, text_of(page), table(kept_rows(keep))))
    told: list[dict[str, Any]] = [asdict(row) for row in rows]
    files.write_records(WHAT["statements"], told)
    display.say(strict_json(told) if as_json else table(rows))
    if not all(row.good for row in rows):
        raise typer.Exit(1)
