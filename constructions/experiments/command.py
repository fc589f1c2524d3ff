"""`construct reproduce`: the papers' experiments with built weights, all or some, and results that are kept."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer

from constructions import display, grafting, requests
from constructions.token_selection import lemma_commands


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("reproduce")(reproduce)


def reproduce(
    experiment: Annotated[
        Literal["figure-2", "table-1", "figure-3", "chains", "every-chain", "graft", "training", "lemmas", "rates"],
        typer.Argument(
            help="three of paper A; of paper B all programs at full size, or every prompt of small ones; a circuit "
            "in a language model of real text; what training makes of a compiled checkpoint; of paper D the lemmas "
            "and the rate of estimation"
        ),
    ],
    samples: Annotated[int, typer.Option(min=1, max=10**9, help="random sequences per task")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="seed of the sequences")] = 0,
    only: Annotated[
        list[str] | None, typer.Option(help='only these models, such as "edit-distance mamba2"; may be given again')
    ] = None,
    keep: Annotated[
        Path | None, typer.Option(help="a file of results: what stands there is not run again, the rest is added")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="also write all that --keep holds as a Markdown page")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="also draw the figure (PNG, PDF or SVG)")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print one JSON object")] = False,
) -> None:
    """An experiment with built weights: accuracy, paper's bound, built size, information bound."""
    if page and not keep and experiment != "lemmas":
        raise ValueError(f"--page {page}: it is written from a file of results; give one by --keep")
    if plot is not None and ("chain" in experiment or experiment == "training"):
        raise ValueError(f"--plot {plot}: {experiment} has no figure; leave out --plot.")
    if plot is not None:
        requests.picture_path(plot, "--plot")
    for path, option in ((keep, "--keep"), (page, "--page")):
        if path is not None:
            requests.file_path(path, option)
    if experiment in ("lemmas", "rates"):
        if only or keep or (page and experiment == "rates"):
            raise ValueError(f"{experiment} is one run without parts; leave out --only, --keep and --page")
        if experiment == "lemmas":
            lemma_commands.reproduce_lemmas(samples, seed, plot, page, as_json)
        else:
            lemma_commands.reproduce_rates(seed, plot, as_json)
        return
    if experiment in ("graft", "training"):
        if only or keep:
            raise ValueError(f"{experiment} is one run without parts; leave out --only, --keep and --page")
        if experiment == "graft":
            grafting.reproduce(seed, plot, as_json)
        else:
            _training(seed, as_json)
        return
    with display.progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from constructions.experiments import run as experiments
            from constructions.experiments.kept_rows import KeptRows
        models, kept = experiments.chosen(experiment, only or ()), KeptRows(keep) if keep else None
        advance, rows = bars(experiment, len(models)), []
        for model in models:
            row = kept.find(experiment, model, samples, seed) if kept else None
            if row is None:
                row = experiments.run(experiment, model, samples, seed)
                if kept:
                    kept.add(experiment, row)
            rows.append(row)
            advance(1)
    if kept and page:
        page.write_text(kept.page(), "utf-8")
    if plot is not None:
        from constructions.experiments.plots import draw_experiment

        draw_experiment(experiment, rows, plot)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows]))
    else:
        display.show_experiment(experiment, rows)
    if not all(row.good for row in rows):
        raise typer.Exit(1)


def _training(seed: int, as_json: bool) -> None:
    """Exit code 1 where the circuit forgets its own task."""
    with display.progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from constructions.experiments import training
        grafting.quiet()
        advance = bars("training", len(training.ROWS) * training.SEEDS * training.SHOWN[-1])
        found = list(training.points(seed, advance))
    typer.echo(json.dumps([asdict(point) for point in found]) if as_json else training.text(found))
    if not training.kept(found):
        typer.echo("relative steps made the circuit forget its own task", err=True)
        raise typer.Exit(1)
