"""`construct reproduce`: the papers' experiments with built weights, all or some, and results that are kept."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from constructions.command import display, grafting
from constructions.command.options import LARGEST_SEED, Json
from constructions.command.outputs import LATEX, MARKDOWN, check_apart, check_csv, path_of_kind, picture_path
from constructions.command.reporting import strict_json
from constructions.experiments.names import ONE_RUN, WHAT, Item
from constructions.experiments.table_files import TableFiles
from constructions.token_selection import lemma_commands

if TYPE_CHECKING:
    from constructions.experiments.kept_rows import KeptRows
    from constructions.experiments.run import Row


PAGES = ("lemmas", "token-selection", "languages")  # which write a page of their own
INSIDE = ("statements", "token-selection")  # whose table is put into a page, which stays as it is beside
STATEMENTS, LANGUAGES = "statements", "languages"  # whose rows are kept in a form of their own


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("reproduce")(reproduce)


def _list(as_json: bool) -> None:
    if as_json:
        display.say(strict_json([{"item": name, "what": what} for name, what in WHAT.items()]))
        return
    table = Table("item", "what it is", box=None)
    for name, what in WHAT.items():
        table.add_row(name, what)
    display.console.print(table)


def reproduce(
    experiment: Annotated[
        Item | None,
        typer.Argument(help="a figure or table of paper A or C, or an item of ours (see --list)", metavar="ITEM"),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, max=10**9, help="random sequences per task")] = 100,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="seed of the sequences")] = 0,
    only: Annotated[
        list[str] | None, typer.Option(help='only these models, such as "edit-distance mamba2"; may be given again')
    ] = None,
    train: Annotated[
        bool, typer.Option("--train", help="also train the controls that have no result yet (about a minute each)")
    ] = False,
    keep: Annotated[
        Path | None, typer.Option(help="a file of results: what stands there is not run again, the rest is added")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="also write all that --keep holds as a Markdown page")] = None,
    minutes: Annotated[
        float, typer.Option(min=0, help="of languages: for so many CPU minutes random automata read long texts")
    ] = 0,
    plot: Annotated[Path | None, typer.Option("--plot", help="also draw the figure (PNG, PDF or SVG)")] = None,
    csv: Annotated[Path | None, typer.Option(help="also write the table as CSV")] = None,
    latex: Annotated[Path | None, typer.Option(help="also write the table as LaTeX (booktabs)")] = None,
    force: Annotated[bool, typer.Option("--force", help="replace an earlier CSV, which may be anybody's")] = False,
    as_json: Json = False,
    listed: Annotated[bool, typer.Option("--list", help="name every item and end")] = False,
) -> None:
    """An experiment with built weights: the paper's number, or what we expect of a figure; what is built."""
    if listed:
        _list(as_json)
        return
    if experiment is None:
        raise ValueError("ITEM is missing: name what to reproduce; `construct reproduce --list` shows what there is.")
    if page and not keep and experiment not in PAGES:
        raise ValueError(f"--page {page}: it is written from a file of results; give one by --keep")
    if plot is not None and ("chain" in experiment or experiment in ("training", STATEMENTS)):
        raise ValueError(f"--plot {plot}: {experiment} has no figure; leave out --plot.")
    if plot is not None:
        picture_path(plot, "--plot")
    whole = None if experiment in INSIDE else MARKDOWN
    for path, option, kind in (
        (keep, "--keep", None),
        (page, "--page", whole),
        (latex, "--latex", LATEX),
    ):
        if path is not None:
            path_of_kind(path, option, kind)
    if csv is not None:
        check_csv(csv, "--csv", force)
    check_apart({"--keep": keep, "--page": page, "--plot": plot, "--csv": csv, "--latex": latex})
    if minutes and (experiment != LANGUAGES or not keep or only):
        raise ValueError(
            f"--minutes {minutes:g}: it is for random automata; `construct reproduce languages --keep FILE --minutes "
            f"{minutes:g}`, without --only, is how they go on"
        )
    files = TableFiles(csv, latex)
    if experiment == STATEMENTS:
        if train:
            raise ValueError("statements trains nothing; leave out --train")
        from constructions.token_selection import statements_page

        statements_page.reproduce(only or [], samples, seed, keep, page, files, as_json)
        return
    if experiment == LANGUAGES:
        if plot:
            raise ValueError("languages has no figure; leave out --plot")
        from constructions.automata import page as automata_page

        automata_page.reproduce(only or [], seed, keep, page, files, as_json, minutes, train)
        return
    if experiment in ONE_RUN:
        kept = experiment == "lemmas"
        if only or train or (keep and not kept) or (page and experiment not in PAGES):
            raise ValueError(
                f"{experiment} is one run without parts; leave out --only{', --keep' * (not kept)}, --train"
                f"{' and --page' * (experiment not in PAGES)}"
            )
        if kept:
            lemma_commands.reproduce_lemmas(samples, seed, plot, keep, page, files, as_json)
        else:
            _one_run(experiment, seed, page, plot, files, as_json)
        return
    with display.progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from constructions.experiments.catalogue import EXPERIMENTS
            from constructions.experiments.kept_rows import KeptRows
        kept = KeptRows(keep) if keep else None
        rows, trained = _run(experiment, only or [], samples, seed, train, kept, bars)
    if kept and page:
        from constructions.experiments.page import page as page_of

        page.write_text(page_of(kept), "utf-8")
    if plot is not None:
        from constructions.experiments.plots import draw_experiment

        draw_experiment(experiment, rows, trained, plot)
    if csv is not None or latex is not None:
        from constructions.experiments.tables import columns, notes

        heads, cells = columns(rows, trained)
        files.write(EXPERIMENTS[experiment].title, heads, cells, notes(EXPERIMENTS[experiment], rows, heads))
    if as_json:
        told = [asdict(row) | {"trained": [trained[c] for c in row.controls if c in trained]} for row in rows]
        display.say(strict_json(told))
    else:
        from constructions.experiments.tables import show

        show(experiment, EXPERIMENTS[experiment], rows, trained)
    if not all(row.good for row in rows):
        raise typer.Exit(1)


def _one_run(
    experiment: str, seed: int, page: Path | None, plot: Path | None, files: TableFiles, as_json: bool
) -> None:
    """The other items that are no list of rows."""
    if experiment == "graft":
        grafting.reproduce(seed, plot, files, as_json)
    elif experiment == "training":
        _training(seed, files, as_json)
    elif experiment == "token-selection":
        from constructions.token_selection import page as selection_page

        selection_page.reproduce(page, plot, files, as_json)
    else:
        lemma_commands.reproduce_rates(seed, plot, files, as_json)


def _run(
    experiment: str, only: list[str], samples: int, seed: int, train: bool, kept: KeptRows | None, bars: display.Bars
) -> tuple[list[Row], dict[str, dict]]:
    """The rows, and what is known of their controls: kept, or trained now."""
    from constructions.experiments import run as experiments

    entries = experiments.chosen(experiment, only)
    advance, rows = bars(experiment, len(entries)), []
    for entry in entries:
        row = kept.find(experiment, entry, samples, seed) if kept else None
        if row is None:
            row = experiments.run(experiment, entry, samples, seed)
            if kept:
                kept.add(experiment, row)
        rows.append(row)
        advance(1)
    trained = dict(kept.trained) if kept else {}
    wanted = {control.describe(): control for entry in entries for control in entry.controls}
    for name, control in wanted.items() if train else ():
        if name in trained:
            continue
        from constructions.experiments.controls import train as train_control

        trained[name] = train_control(control, bars(f"train {name}", control.steps))
        if kept:
            kept.add_trained(trained[name])
    return rows, {name: trained[name] for name in wanted if name in trained}


def _training(seed: int, files: TableFiles, as_json: bool) -> None:
    """Exit code 1 where the circuit forgets its own task."""
    with display.progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from constructions.experiments import training
        display.quiet()
        advance = bars("training", len(training.ROWS) * training.SEEDS * training.SHOWN[-1])
        found = list(training.points(seed, advance))
    points = [asdict(point) for point in found]
    files.write_records(WHAT["training"], points)
    display.say(strict_json(points) if as_json else training.text(found))
    if not training.kept(found):
        display.say("relative steps made the circuit forget its own task", err=True)
        raise typer.Exit(1)
