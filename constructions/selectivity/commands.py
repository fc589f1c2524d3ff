"""The commands of paper A beside the token constructions: over numbers, and approximation-rate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from compiler import digits
from constructions.command.display import console, say, show_report, working
from constructions.command.numbers import Force, Out, check_out, checkpoint
from constructions.command.options import LARGEST_SEED, Certify, Json, Plot, Samples
from constructions.command.outputs import check_apart, picture_path
from constructions.command.reporting import show, strict_json, verdict

if TYPE_CHECKING:
    from constructions.construction import NumericConstruction

Arch = Annotated[
    Literal["mamba", "mamba2"], typer.Option(help="which mixer (on Mamba-2 a latch that compares takes a block more)")
]

# Of the orthonormal transform, relative to Σ|x|: a few roundings of float32 per coefficient.
ROUNDING = 2.0**-20


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    for name, command in COMMANDS.items():
        app.command(name)(command)


def haar_command(
    levels: Annotated[int, typer.Option(min=1, help="J: transforms of 2^J samples")] = 4,
    form: Annotated[
        Literal["steps", "bumps"], typer.Option(help="the steps of Theorem 1, by running sums, or one latch per sample")
    ] = "steps",
    arch: Annotated[Literal["mamba", "mamba2"], typer.Option(help="which mixer (Remark 1: both)")] = "mamba",
    samples: Annotated[int, typer.Option(min=1, help="random inputs")] = 256,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="seed of the inputs")] = 0,
    integers: Annotated[bool, typer.Option("--integers", help="save the ±1 transform of integers instead")] = False,
    out: Out = None,
    force: Force = False,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """After paper A, Theorem 1: the Haar transform on a real Mamba block, and the three bases of each wavelet."""
    if plot:
        picture_path(plot, "--plot")
        check_apart({"--out": out, "--plot": plot})
    if integers and out is None:
        raise ValueError("--integers says what is saved, and there is no --out; both transforms are run in any case.")
    with working("haar", quiet=as_json) as bars:
        check_out(out, force)
        from constructions.pictures.plots import draw_bases
        from constructions.selectivity import haar, haar_bases

        result = haar.haar_report(levels, form, samples, seed, arch)
        bases = haar_bases.theorem_report()
        saved = checkpoint(haar.Haar(levels, form, not integers, arch=arch, seed=seed), out, force, bars)
        if plot:
            draw_bases(plot)
    if not as_json:
        console.print(_bases_table(bases))
    bounded = all(row["error"] <= row["bound"] for row in bases["rows"])
    exact = all(row["grid_error"] == 0 for row in bases["rows"] if row["slope"] >= bases["exact_from_slope"])
    good = saved.good and result["integers_exact"] and result["largest_error"] <= ROUNDING and bounded and exact
    show(result | ({"bases": bases} if as_json else {}) | saved.told, as_json, good)


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
        names = ("slope", "error", "bound", "neighbourhood", "grid_error")
        table.add_row(*(digits.named(name, row[name]) for name in names))
    return table


def rate_command(
    breaks: Annotated[str, typer.Option(help="where ρ jumps: numbers in (0, 1), by commas")] = "1/3",
    values: Annotated[str, typer.Option(help="its values between the jumps, one more than jumps")] = "0,1",
    bases: Annotated[int, typer.Option(min=0, help="most bases (0: as many as show the rates)")] = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Paper A, Corollary 1: the squared error of N Mamba and N Fourier bases for a piecewise-constant function."""
    if plot:
        picture_path(plot, "--plot")
    with working("approximation-rate", quiet=as_json):
        from constructions.pictures.plots import draw_rates
        from constructions.selectivity.approximation_rate import rate_report

        result = rate_report(breaks.split(","), values.split(","), bases)
        if plot:
            draw_rates(result, plot)
    told = result if as_json else {name: result[name] for name in ("theorem", "jumps")} | _rates(result)
    close = result["slopes"]["mamba"] <= result["corollary"]["mamba"] * 0.9 and abs(result["slopes"]["s4d"] + 1) < 0.1
    show(told, as_json, good=True)
    if not close:  # of the fit: the corollary is about many bases, and a fit may swing before
        taken, most = len(result["bases"]), result["most_bases"]
        more = f"--bases takes up to {most:,}" if most > taken else "no more are computed"
        say(
            f"the rates of the squared error, fitted from {taken:,} bases, are not yet those that the corollary states"
            f"; {more}",
            err=True,
        )
        raise typer.Exit(1)


def _rates(result: dict) -> dict[str, dict]:
    """What was fitted is of the square; the corollary speaks of the norm."""
    return {
        "slopes of the squared error": result["slopes"],
        "rates of Corollary 1 (it states them of the error itself)": result["corollary"],
    }


def keep_command(
    n: Annotated[int, typer.Option(min=1, help="which token to keep (1: the first)")] = 5,
    vocab: Annotated[int, typer.Option(min=1, help="number of tokens")] = 128,
    arch: Arch = "mamba",
    out: Out = None,
    samples: Samples = 16,
    certify: Certify = True,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """After paper A, Corollary 2, with the position as an input: KEEP n-th in one block, on Mamba-2 in two.

    token is one-hot or all 0; answers are right from position n on, where the positions are 1, 2, 3, … with a token at
    each.
    """
    with working("start PyTorch", quiet=as_json):
        from constructions.selectivity.with_position import KeepNthPosition

    run_over_numbers(KeepNthPosition(n, vocab, arch=arch), out, force, samples, certify, as_json)


def time_command(
    horizon: Annotated[int, typer.Option(min=1, help="positions told apart")] = 64,
    arch: Arch = "mamba",
    out: Out = None,
    samples: Samples = 16,
    certify: Certify = True,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Absolute time where the position is an input, which paper A's Proposition 1 does without: one block."""
    with working("start PyTorch", quiet=as_json):
        from constructions.selectivity.with_position import AbsoluteTimePosition

    run_over_numbers(AbsoluteTimePosition(horizon, arch=arch), out, force, samples, certify, as_json)


def run_over_numbers(
    construction: NumericConstruction, out: Path | None, force: bool, samples: int, certify: bool, as_json: bool
) -> None:
    """Build a construction over numbers, verify it, save it where `out` says, and report."""
    check_out(out, force)
    with working(construction.name, quiet=as_json) as bars:
        from compiler.artifact.package import bare_sizes, size_fields
        from constructions.checkpoints import artifact, guarantee
        from constructions.checkpoints.built import build

        built = build(construction)
        stack = built.stack()
        results = artifact.verify(built, stack, "random", samples, construction.seed, bars.form("model over numbers"))
        with bars.stage("proof"):
            proof = guarantee.proof_of(built) if certify else guarantee.NOT_ASKED
        good = artifact.passed(built, results)
        if good and out is not None:
            artifact.save(built, results, out, None, proof, overwrite=force)
        report = artifact.report(built, results, str(out) if good and out is not None else None, None, proof)
    if as_json:
        (*_, size) = bare_sizes(built.compiled)
        told = {name: report[name] for name in ("theorem", "arch", "bound", "bound_source", "guarantee", "out")}
        told |= {"sizes": size_fields(size), "layers": len(built.compiled.blocks)}
        told |= {"positions": built.compiled.source.max_length, "level": report["guarantee"]["level"]}
        say(strict_json(told | {"tasks": report["verification"]["tasks"]}))
    else:
        show_report(report)
    verdict(good)


COMMANDS = {
    "keep-nth-position": keep_command,
    "absolute-time-position": time_command,
    "haar": haar_command,
    "approximation-rate": rate_command,
}
