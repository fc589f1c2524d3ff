"""Draw the figures and print the tables of docs/polynomials.md from real runs: python examples/polynomial_figures.py
[folder].
"""

from __future__ import annotations

import sys
from math import floor, log10
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from compiler.digits import at_most
from constructions.polynomials.degree_gap import attention_degree, s6_degree
from constructions.polynomials.polynomial import build, build_monomial
from constructions.polynomials.polynomial_expression import parse_polynomial
from constructions.polynomials.polynomial_mamba import build_on_mamba
from constructions.polynomials.polynomial_mamba_report import measured

FIGURES = Path(__file__).parent.parent / "docs" / "figures"
SAMPLES = 100
DEGREES = (1, 2, 5, 10, 20, 60, 200, 1000)
TABLE = (("5*x1**2*x3**3 - x2 + 7", 3), ("x1*x2*x3*x4", 4), ("x1**9*x2**9*x3**9", 3), ("x1**2 - 2*x1*x2 + x2**2", 2))


def degrees(path: Path) -> None:
    """Of ours: the measured degree of one S6 channel over lengths, and of N attention layers, which is 3^N."""
    lengths = list(range(1, 26))
    layers = [1, 2, 3]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(lengths, [s6_degree(n) for n in lengths], "o-", ms=4, label="one S6 channel (measured; L + 2)")
    for n in layers:
        degree = attention_degree(n)
        text = f"{n} linear-attention layer{'s' if n > 1 else ''} (measured: {degree})"
        x, side = (1, "left") if n == 3 else (25, "right")
        axes.axhline(degree, ls="--", color="gray", lw=1)
        axes.annotate(text, (x, degree), xytext=(0, 3), textcoords="offset points", ha=side)
    axes.set(
        xlabel="length L",
        ylabel="total degree of the last output",
        title="Degree against layers (Lemma 1)",
        ylim=(0, 30),
    )
    axes.legend(loc="center left")
    figure.savefig(path, dpi=110)


def stages(path: Path) -> None:
    """Of ours: what the three blocks of Lemma 3 hold for x2**3 at x = (2, 3, 1), read at position 6."""
    model = build_monomial(2, 3, 1, 3, 6)
    tokens = model.tokens(np.array([[2, 3, 1]], dtype=object))
    inside = model.network.trace(tokens)
    names = ("1: select x2", "2: copy into windows", "3: telescope")
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    for k, (parts, block, name) in enumerate(zip(inside, model.network.blocks, names, strict=True)):
        shown = [i for i, c in enumerate(block.channels) if not c.startswith("p[")]
        for row, (what, values) in enumerate((("state", parts["state"][..., 0]), ("gated output", parts["gated"]))):
            _grid(
                figure.add_subplot(2, 3, 1 + k + 3 * row),
                values[0][:, shown].T,
                [block.channels[i].split("[0]")[0] for i in shown],
                f"block {name}: {what}",
            )
    figure.savefig(path, dpi=110)


def _grid(axes, values: np.ndarray, names: list[str], title: str) -> None:
    """Integers as a table of shades: rows are channels, columns positions."""
    axes.imshow(np.log1p(np.abs(values.astype(float))), cmap="Blues", aspect="auto", vmin=0, vmax=5)
    for (i, t), value in np.ndenumerate(values):
        axes.text(t, i, str(value), ha="center", va="center", fontsize=8)
    axes.set_xticks(range(values.shape[1]), range(1, values.shape[1] + 1), fontsize=7)
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_title(title, fontsize=9)


def sizes_table() -> str:
    """Sizes on the polynomial S6, and blocks and errors on real Mamba, as a Markdown table."""
    lines = [
        (
            "| polynomial | T (four blocks) | widths (four blocks) | three blocks | Mamba blocks | error | "
            "Mamba blocks (three factors) | error |"
        ),
        "|---|---|---|---|---|---|---|---|",
    ]
    for text, length in TABLE:
        p = parse_polynomial(text, length)
        four, three = build(p), build(p, "three-block")
        cells = [f"`{text}`", str(four.padded), str(four.circuit.widths()), str(three.circuit.widths())]
        for form in ("binary", "ternary"):
            model = build_on_mamba(p, form)
            error = measured(model, SAMPLES, 0)["largest_relative_error"]
            cells += [str(len(model.compiled.blocks)), "below 1e-6" if error < 1e-6 else "lost near 0"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def degrees_table() -> str:
    """Errors of x1**n on real Mamba over |x1|^n, and what is proved of them, as a Markdown table."""
    lines = ["| n | blocks | error | bound | underflow |", "|---|---|---|---|---|"]
    for n in DEGREES:
        model = build_on_mamba(parse_polynomial(f"x1**{n}"))
        row = measured(model, SAMPLES, 0)
        bound = float(at_most(model.forward_error(np.ones(1), lost=0.0), 2))
        cells = [str(n), str(len(model.compiled.blocks)), _below(row["largest_relative_error"]), f"{bound:.1e}"]
        lines.append("| " + " | ".join([*cells, f"{row['inputs_that_underflow']} of {SAMPLES}"]) + " |")
    return "\n".join(lines)


def _below(error: float) -> str:
    """The power of ten above: the digits of an error may be those of one processor."""
    return f"below {10.0 ** (floor(log10(error)) + 1):.0e}" if error else "0"


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    degrees(folder / "polynomial-degrees.png")
    stages(folder / "monomial-stages.png")
    print(sizes_table(), degrees_table(), sep="\n\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURES)
