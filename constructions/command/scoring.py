"""`construct twin DIR` and `construct score DIR`: trained models of known structure, and whether methods find it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compiler.artifact.json_files import strict_value
from compiler.artifact.plain_files import text_of, write_whole
from constructions.command import requests
from constructions.command.disguising import Force
from constructions.command.display import console, progress, quiet, say, working
from constructions.command.options import LARGEST_SEED, Json
from constructions.command.outputs import check_apart, check_outside, check_spared, file_path
from constructions.command.reporting import strict_json, table_of
from constructions.command.stdout import stdout_lent, told

if TYPE_CHECKING:
    from constructions.scoring.problem import Problem

MOST_STEPS = 5000
Seed = Annotated[
    int, typer.Option(min=0, max=LARGEST_SEED, help="seed of everything that is drawn, torch's own among it")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    app.command("twin")(twin)
    app.command("score")(score)
    app.command("score-table")(score_table)


def twin(
    directory: Annotated[Path, typer.Argument(help="a checkpoint directory")],
    out: Annotated[Path, typer.Option(parser=requests.directory, metavar="PATH", help="directory of the twin")],
    seed: Seed = 0,
    steps: Annotated[int | None, typer.Option(min=1, max=MOST_STEPS, help="training steps [default: 120]")] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Train a model of ordinary initialisation whose lanes hold the circuit's variables at known places."""
    with progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from constructions.checkpoints.saved import same
            from constructions.scoring.asked import inputs_of
            from constructions.scoring.truth import Truth
            from constructions.scoring.twin import STEPS, trained
            from constructions.scoring.twins_saved import check_out, write_twin
        quiet()
        check_out(out, force)
        check_spared(out, {"DIRECTORY": directory})
        built, _ = same(directory)  # whose files the twin keeps
        if built.over_numbers or built.model is None:
            raise ValueError(f"{directory} is no language model, and a twin is one.")
        count = STEPS if steps is None else steps
        found = trained(Truth(built.compiled, inputs_of(built)), seed, count, bars("train", count))
        write_twin(found, directory, out)
    measured = found.record()["measured"]
    if as_json:
        say(strict_json(found.record() | {"directory": str(out)}))
        return
    console.print(f"on {measured['sequences']} sequences that were not trained on ({measured['positions']} answers):")
    console.print(f"answers right: {100 * measured['accuracy']:.1f} %")
    for name, share in measured["interchange"].items():
        console.print(f"as the circuit where {name!r} is exchanged: {100 * share:.1f} %")
    console.print(f"right where the free lanes are exchanged: {100 * measured['strict']:.1f} %")
    console.print(f"twin: {out}")


def score(
    directory: Annotated[Path, typer.Argument(help="a checkpoint, a disguised one, or a twin")],
    method: Annotated[list[str], typer.Option(help="a name, or FILE.py:function; may be given again")],
    key: Annotated[Path | None, typer.Option(help="key of a disguise: the scorer reads it, no method does")] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Hold methods of interpretability to what a model is known to compute: its components and its variables."""
    with working("score", quiet=as_json, lends=False), stdout_lent(aside=as_json, for_good=True):
        from compiler.disguise.key import read_key
        from constructions.scoring.build import problem_of
        from constructions.scoring.methods.named import Named
        from constructions.scoring.table import COLUMNS

        quiet()
        methods = [Named.of(name) for name in method]  # a wrong name is told at once
        problem = problem_of(directory, None if key is None else read_key(key), seed)
        rows = [{"method": one.name} | asdict(one.score(problem)) for one in methods]
    if as_json:
        held = {"scored": problem.asked, "variables": dict(problem.equal), "left_out": dict(problem.left_out)}
        report = {"directory": str(directory), "kind": problem.kind, "seed": seed, **held, "scores": rows}
        told(strict_json(report))
        return
    shown = [{COLUMNS.get(key, key): value for key, value in row.items()} for row in rows]
    console.print(table_of(shown, ("method", *COLUMNS.values(), "answers"), tight=True))
    for line in _said(problem):
        console.print(line, markup=False)


def _said(problem: Problem) -> Iterator[str]:
    """What stands below the scores: where answers count, which streams are one variable, and which are none."""
    yield f"scored: {problem.asked}; answers: how many interchange counts"
    for equal in problem.equal.values():
        if len(equal) > 1:
            yield f"one variable, for they are equal and share their lanes: {', '.join(map(repr, equal))}"
    for name, reason in problem.left_out.items():
        yield f"left out: {name!r}; {reason}"


def _kept(keep: Path) -> list[dict[str, Any]]:
    """The rows of a file, [] where there is none yet; ValueError for one that holds something else."""
    if not keep.exists():
        return []
    from constructions.scoring.table import check_row

    try:
        rows = strict_value(text_of(keep))["rows"]
        for row in rows if isinstance(rows, list) else [None]:
            check_row(row)
    except (ValueError, TypeError, KeyError, RecursionError) as reason:
        why = f" ({reason})" if isinstance(reason, ValueError) else ""
        raise ValueError(f"--keep {keep}: it holds no rows of scores{why}; give another file.") from None
    return rows


def score_table(
    place: Annotated[Path, typer.Argument(help="directory for the models; those that are there are used again")],
    keep: Annotated[Path, typer.Option(help="JSON file of results; those that are there are not run again")],
    page: Annotated[Path | None, typer.Option(help="also put the table into this Markdown page")] = None,
    seed: Seed = 0,
) -> None:
    """Regenerate the table of docs/scores.md: every method on circuits, disguises and twins."""
    check_outside(place / "last-name-twin", "PLACE")  # as any model
    file_path(keep, "--keep")  # both refused now, not behind the runs
    if page is not None:
        file_path(page, "--page")
        text_of(page)
        check_apart({"--keep": keep, "--page": page})
    with progress(quiet=False) as bars:
        with bars.stage("start PyTorch"):
            from constructions.scoring import table
            from constructions.scoring.methods.named import METHODS
            from constructions.scoring.twin import STEPS
        known = _kept(keep)
        if page is not None:
            table.check_page(text_of(page))
        place.mkdir(parents=True, exist_ok=True)
        advance = bars("score", len(table.CIRCUITS) * len(table.KINDS) * (1 + len(METHODS)))
        found: dict[str, Any] = {"rows": [], "twins": []}
        for row in table.rows(place, seed, STEPS, known, advance):
            found["rows"].append(row)
            later = [one for one in known if all(map(one.__ne__, found["rows"]))]  # a run that is stopped loses none
            write_whole(keep, json.dumps({"rows": found["rows"] + later, "twins": []}, indent=1, sort_keys=True) + "\n")
        found["twins"] = table.twin_rows(place, seed, STEPS)
        write_whole(keep, json.dumps(found, indent=1, sort_keys=True) + "\n")
    if page is not None:
        write_whole(page, table.on_page(text_of(page), found))
    console.print(f"{len(found['rows'])} rows: {keep}")
