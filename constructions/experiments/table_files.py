"""The table of an experiment as a file for other programs: CSV, or LaTeX (booktabs)."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

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
    "ε": r"$\varepsilon$",
    "κ": r"$\kappa$",
    "λ": r"$\lambda$",
    "σ": r"$\sigma$",
    "Ā": r"$\bar{A}$",
    "⌈": r"$\lceil$",
    "⌉": r"$\rceil$",
}


def csv_text(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """A line for the heads and one for each row, quoted where a cell holds a comma."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([heads, *cells])
    return out.getvalue()


def latex_text(title: str, heads: Sequence[str], cells: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A table environment for a document that loads booktabs; the notes stand above it as comments."""
    rows = [" & ".join(map(escaped, row)) + r" \\" for row in (heads, *cells)]
    lines = [
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
