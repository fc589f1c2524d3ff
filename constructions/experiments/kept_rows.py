"""Rows of experiments in a file: what stands there is not run again, and a Markdown page is written from it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from compiler.artifact.json_files import shown, text_of
from constructions.construction import Construction
from constructions.experiments.run import Row, chosen, row_key

_HEAD = """# Every program of paper B: what was run

Written by `construct reproduce` from `{source}`; it is not edited by hand. `--keep {source}` runs only what is not
there yet, `--only "edit-distance mamba2"` only some models, `--page` writes this page. Without the file all runs again.

Each model is compiled and run on prompts with their chains, forced token by token (*queries*: answers that were asked
for, each the strict argmax over the whole vocabulary, all scores equal to the interpreter's). Then its saved
checkpoint writes by itself, against an independent solver: the tokens of `step`, of transformers' `generate()` with
its cache and without it, and of the longest chain in one pass. [dp.md](dp.md) tells why that is a proof of
generation. *CPU s* are seconds of the processor from the circuit to the last token; in brackets, seconds of a clock
on a busy machine.
"""
_TITLES = {
    "chains": "Full size: random prompts",
    "every-chain": "Small sizes: every prompt",
}


class KeptRows:
    """The rows of a file by experiment; ValueError, in one sentence, for a file that is none of these."""

    def __init__(self, path: Path):
        self.path = path
        self._rows: dict[str, list[Row]] = {}
        if path.exists():
            try:
                content = json.loads(text_of(path))
                self._rows = {name: [_row(record) for record in records] for name, records in content.items()}
            except (ValueError, TypeError, AttributeError, RecursionError) as reason:
                raise ValueError(f"--keep {path}: it holds no rows of experiments ({shown(str(reason))})") from None

    def of(self, experiment: str) -> list[Row]:
        return self._rows.get(experiment, [])

    def find(self, experiment: str, construction: Construction, samples: int, seed: int) -> Row | None:
        """The row of this model, where it was run as it is asked for now and was right."""
        key = row_key(construction)
        for row in self.of(experiment):
            if (row.arch, row.parameters, row.dtype) == key and (row.samples, row.seed) == (samples, seed) and row.good:
                return row
        return None

    def add(self, experiment: str, row: Row) -> None:
        """Put the row in the place of an earlier one of its model, and write the file."""
        told = (row.arch, row.parameters, row.dtype)
        others = [r for r in self.of(experiment) if (r.arch, r.parameters, r.dtype) != told]
        self._rows[experiment] = [*others, row]
        content = {name: [asdict(r) for r in sorted(rows, key=_order)] for name, rows in sorted(self._rows.items())}
        waiting = self.path.with_name(self.path.name + ".part")
        waiting.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
        waiting.replace(self.path)

    def page(self) -> str:
        """Markdown: a table for each experiment."""
        parts = [_HEAD.format(source=self.path.name)]
        for name, title in _TITLES.items():
            rows = sorted(self.of(name), key=_order)
            if rows:
                parts.append(f"## {title}\n\n`construct reproduce {name}`\n\n{_table(rows, _missing(name, rows))}")
        return "\n".join(parts)


def _row(record: dict) -> Row:
    known = {field.name for field in fields(Row)}
    if set(record) - known:
        raise ValueError(f"a row has {', '.join(sorted(set(record) - known))}")
    return Row(**record | {"written": tuple(record["written"])})


def _order(row: Row) -> tuple[str, str, str]:
    return row.parameters, row.arch, {"float32": ""}.get(row.dtype, row.dtype)


def _missing(experiment: str, rows: Sequence[Row]) -> list[str]:
    """The models of an experiment that have no row."""
    run = {(row.arch, row.parameters, row.dtype) for row in rows}
    return [f"{c.name} {c.target} {c.dtype}" for c in chosen(experiment) if row_key(c) not in run]


def _table(rows: Sequence[Row], missing: Sequence[str]) -> str:
    right, refused = sum(row.good and not row.refused for row in rows), sum(bool(row.refused) for row in rows)
    lines = [
        f"{len(rows)} of {len(rows) + len(missing)} models were run: {right} right, {refused} refused, "
        f"{len(rows) - right - refused} wrong.\n",
        *([f"Not run: {'; '.join(missing)}.\n"] if missing else []),
        "| model | mixer | dtype | right of queries | bits | channels · columns | tokens written | CPU s |",
        "| --- | --- | --- | ---: | --- | ---: | ---: | ---: |",
        *map(_line, rows),
        "",
    ]
    reasons = [f"- {row.parameters}, {row.arch}, {row.dtype}: {row.refused}." for row in rows if row.refused]
    return "\n".join([*lines, *(["Refused:\n", *reasons, ""] if reasons else [])])


def _line(row: Row) -> str:
    told = f"| {row.parameters} | {row.arch} | {row.dtype} |"
    if row.refused:
        return f"{told} refused | | | | {_took(row)} |"
    right = f"{round(row.accuracy * row.queries):,} of {row.queries:,}"
    wrong = [f"WRONG ({run['runtime']}) after {run['wrong']}" for run in row.written if run["wrong"]]
    wrote = ", ".join(wrong or (f"{run['tokens']:,}" for run in row.written))
    bits = "equal" if row.bit_exact else "DIFFER"
    return f"{told} {right} | {bits} | {row.used['d_inner']} · {row.used['d_state']} | {wrote} | {_took(row)} |"


def _took(row: Row) -> str:
    """Seconds of the processor, or in brackets those of a clock where these alone were taken."""
    return f"{row.cpu_seconds:,.0f}" if row.cpu_seconds else f"({row.seconds:,.0f})"
