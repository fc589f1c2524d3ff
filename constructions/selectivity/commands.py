"""The commands of paper A beside the token constructions: haar, approximation-rate, plot, sensitivity."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

import torch
import typer
from rich.table import Table

from compiler.artifact import load
from constructions.display import console
from constructions.plots import draw_bases, draw_rates, draw_sensitivity, draw_state
from constructions.reporting import show
from constructions.saved import rebuild
from constructions.selectivity import approximation_rate as rate
from constructions.selectivity import haar, haar_bases
from constructions.state_history import state_history
from verify.sensitivity import stack_sensitivity

# Of the orthonormal transform, relative to Σ|x|: a few roundings of float32 per coefficient.
ROUNDING = 2.0**-20

Json = Annotated[bool, typer.Option("--json", help="print one JSON object")]
Plot = Annotated[Path | None, typer.Option("--plot", help="also draw a picture (PNG, PDF or SVG)")]
Directory = Annotated[Path, typer.Argument(help="a checkpoint directory")]
Input = Annotated[str, typer.Option("--input", help='tokens, such as "k0 v3 k0"')]


PAPER = "Understanding Input Selectivity in Mamba"


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    for name, command in {**COMMANDS, "plot": plot_command, "sensitivity": sensitivity_command}.items():
        app.command(name)(command)


def haar_command(
    levels: Annotated[int, typer.Option(min=1, max=haar.LARGEST_LEVELS, help="J: transforms of 2^J samples")] = 4,
    form: Annotated[
        Literal["steps", "bumps"], typer.Option(help="the theorem's steps, or one latch per sample")
    ] = "steps",
    samples: Annotated[int, typer.Option(min=1, help="random inputs")] = 256,
    seed: Annotated[int, typer.Option(help="seed of the inputs")] = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Theorem 1: the Haar transform on a real Mamba block, and the three bases of each wavelet."""
    result = haar.haar_report(levels, form, samples, seed)
    bases = haar_bases.theorem_report()
    if plot:
        draw_bases(plot)
    if not as_json:
        console.print(_bases_table(bases))
    bounded = all(row["error"] <= row["bound"] for row in bases["rows"])
    exact = all(row["grid_error"] == 0 for row in bases["rows"] if row["slope"] >= bases["exact_from_slope"])
    good = result["integers_exact"] and result["largest_error"] <= ROUNDING and bounded and exact
    show(result | ({"bases": bases} if as_json else {}), as_json, good)


def _bases_table(bases: dict) -> Table:
    table = Table(
        "|w|",
        "error outside",
        "bound",
        "neighbourhood",
        "error on the grid",
        title=f"ψ({bases['j']},{bases['k']}) from three bases",
    )
    for row in bases["rows"]:
        table.add_row(*(f"{row[name]:.3g}" for name in ("slope", "error", "bound", "neighbourhood", "grid_error")))
    return table


def rate_command(
    breaks: Annotated[str, typer.Option(help="where ρ jumps: numbers in (0, 1), by commas")] = "1/3",
    values: Annotated[str, typer.Option(help="its values between the jumps, one more than jumps")] = "0,1",
    bases: Annotated[int, typer.Option(min=0, help="most bases (0: as many as show the rates)")] = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Corollary 1: the error of N Mamba bases and of N Fourier bases for a piecewise-constant function."""
    result = rate.rate_report(breaks.split(","), values.split(","), bases)
    if plot:
        draw_rates(result, plot)
    told = result if as_json else {name: result[name] for name in ("theorem", "jumps", "slopes", "corollary")}
    close = result["slopes"]["mamba"] <= result["corollary"]["mamba"] * 0.9 and abs(result["slopes"]["s4d"] + 1) < 0.1
    show(told, as_json, good=close)


def plot_command(
    directory: Directory,
    text: Input,
    out: Annotated[Path, typer.Option(help="picture to write (PNG, PDF or SVG)")] = Path("state.png"),
    block: Annotated[int | None, typer.Option(min=1, help="which block [default: the last]")] = None,
) -> None:
    """Draw the hidden state of a checkpoint over time: columns named by keys, steps along time."""
    built = rebuild(directory)
    draw_state(state_history(built.compiled, load(directory), text, None if block is None else block - 1), out)
    console.print(f"wrote {out}")


def sensitivity_command(
    directory: Directory,
    text: Input,
    block: Annotated[int, typer.Option(min=1, help="which block")] = 1,
    channel: Annotated[int, typer.Option(min=0, help="which channel")] = 0,
    column: Annotated[int, typer.Option(min=0, help="which state column")] = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Lemmas 1 and 2: how much a state of a checkpoint still feels an early input, by autograd and in closed form."""
    stack = load(directory)
    names = {name: i for i, name in enumerate(stack.tokens)}
    unknown = [token for token in text.split() if token not in names]
    if unknown or not text.split():
        raise ValueError(
            f"the input {text!r} must hold tokens of the checkpoint; {unknown[0]!r} is none"
            if unknown
            else "the input holds no token"
        )
    result = stack_sensitivity(
        stack, torch.tensor([names[token] for token in text.split()]), block - 1, channel, column
    )
    if plot:
        draw_sensitivity({f"block {block}, channel {channel}": result}, plot)
    told = result.to_json()
    if as_json:
        typer.echo(json.dumps(told))
        return
    table = Table("t − j", "by autograd", "closed form")
    for k, (measured, predicted) in enumerate(zip(told["measured"], told["predicted"], strict=True)):
        table.add_row(str(k), f"{measured:.6g}", f"{predicted:.6g}")
    console.print(table)


COMMANDS = {"haar": haar_command, "approximation-rate": rate_command}
