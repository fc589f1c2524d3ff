"""The table of an experiment as a file for other programs: CSV, or LaTeX (booktabs)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.artifact.files import GENERATOR

_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    "·": r"$\cdot$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "−": "$-$",
    "×": r"$\times$",
    "…": r"\dots{}",
    "ᵀ": r"$^\top$",
    "²": "$^2$",
    "Δ": r"$\Delta$",
    "α": r"$\alpha$",
    "é": r"\'e",
    "δ": r"$\delta$",
    "π": r"$\pi$",
    "χ": r"$\chi$",
    "ε": r"$\varepsilon$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "σ": r"$\sigma$",
    "Ā": r"$\bar{A}$",
    "⌈": r"$\lceil$",
    "⌉": r"$\rceil$",
}


@dataclass(frozen=True)
class TableFiles:
    """Where a table is written to, None for nowhere."""

    csv: Path | None = None
    latex: Path | None = None

    def write(
        self, title: str, heads: Sequence[str], cells: Sequence[Sequence[str]], notes: Sequence[str] = ()
    ) -> None:
        """Write heads and rows to the files that were asked for; notes are comments of the LaTeX."""
        if self.csv is not None:
            self.csv.write_text(csv_text(heads, cells), "utf-8")
        if self.latex is not None:
            self.latex.write_text(latex_text(title, heads, cells, notes), "utf-8")

    def write_records(self, title: str, records: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> None:
        """Write what --json prints: a column for each key, `outer.inner` where an entry is a record itself. An empty
        cell stands for null and for a key that a record lacks.
        """
        rows = [dict(_flat(record)) for record in records]
        heads = list(dict.fromkeys(head for row in rows for head in row))
        self.write(title, heads, [[row.get(head, "") for head in heads] for row in rows], notes)


def _flat(record: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", _cell(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return " ".join(f"{key}={_cell(entry)}" for key, entry in value.items())
    return "; ".join(map(_cell, value)) if isinstance(value, (list, tuple)) else str(value)


def csv_text(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A line for the heads and one for each row, quoted where a cell holds a comma."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([heads, *cells])
    return out.getvalue()


def latex_text(title: str, heads: Sequence[str], cells: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A table environment for a document that loads booktabs; the notes stand above it as comments."""
    rows = [" & ".join(map(escaped, row)) + r" \\" for row in (heads, *cells)]
    lines = [
        f"% {GENERATOR}",
        *(f"% {note}" for note in notes),
        r"\begin{table}",
        rf"  \caption{{{escaped(title)}}}",
        rf"  \begin{{tabular}}{{{'l' * len(heads)}}}",
        r"    \toprule",
        f"    {rows[0]}",
        r"    \midrule",
        *(f"    {row}" for row in rows[1:]),
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """The text with every sign that LaTeX would read as something else written out."""
    return "".join(_LATEX.get(sign, sign) for sign in text)
