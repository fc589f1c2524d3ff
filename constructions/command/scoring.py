"""`construct twin DIR` and `construct score DIR`: trained models of known structure, and whether methods find it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from constructions.command import requests
from constructions.command.disguising import Force
from constructions.command.display import console, progress
from constructions.command.options import Json, Seed
from constructions.command.reporting import strict_json

MOST_STEPS = 5000


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    app.command("twin")(twin)


def twin(
    directory: Annotated[Path, typer.Argument(help="a checkpoint directory")],
    out: Annotated[Path, typer.Option(parser=requests.directory, metavar="PATH", help="directory of the twin")],
    seed: Seed = 0,
    steps: Annotated[int | None, typer.Option(min=1, max=MOST_STEPS, help="training steps [default: 250]")] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Train a model of ordinary initialisation whose lanes hold the circuit's variables at known places."""
    with progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from constructions.checkpoints.saved import rebuild
            from constructions.scoring.truth import Truth
            from constructions.scoring.twin import STEPS, trained
            from constructions.scoring.twins_saved import check_out, write_twin
        check_out(out, force)
        built = rebuild(directory)
        if built.over_numbers or built.model is None:
            raise ValueError(f"{directory} is no language model, and a twin is one.")
        count = STEPS if steps is None else steps
        found = trained(Truth(built.compiled), seed, count, bars("train", count))
        write_twin(found, directory, out)
    measured = found.record()["measured"]
    if as_json:
        typer.echo(strict_json(found.record() | {"directory": str(out)}))
        return
    console.print(f"on {measured['sequences']} sequences that were not trained on ({measured['positions']} answers):")
    console.print(f"answers right: {100 * measured['accuracy']:.1f} %")
    for name, share in measured["interchange"].items():
        console.print(f"as the circuit where {name!r} is exchanged: {100 * share:.1f} %")
    console.print(f"right where the free lanes are exchanged: {100 * measured['strict']:.1f} %")
    console.print(f"twin: {out}")
