"""Commands that look into a checkpoint: plot (its state over time), graph (its circuit), adopt (one that another
library wrote again).

Blocks, channels and columns are counted as `construct inspect` lists them: blocks from 1, channels and columns from 0;
a channel also goes by its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compiler.artifact.plain_files import write_whole
from constructions.command.disguising import KeyFile
from constructions.command.display import console, say, working
from constructions.command.options import Json
from constructions.command.outputs import HTML, path_of_kind, picture_path
from constructions.command.reporting import strict_json

Directory = Annotated[Path, typer.Argument(help="a checkpoint directory")]
Input = Annotated[
    str,
    typer.Option(
        "--input", help='tokens, such as "k0 v3 k0"; of a model over numbers "1 -2", or "x = 1,2 3,4; n = 0 1"'
    ),
]
Block = Annotated[int | None, typer.Option(min=1, help="only this block, from 1 on [default: every block]")]


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    app.command("plot")(plot)
    app.command("graph")(graph)
    app.command("trace")(trace)
    app.command("report")(report)
    app.command("adopt")(adopt)


def adopt(
    directory: Annotated[Path, typer.Argument(help="what save_pretrained wrote")],
    original: Annotated[Path, typer.Option(help="the checkpoint that was loaded")],
) -> None:
    """Give back what save_pretrained loses (promise, circuit, names), where the weights are still the original's."""
    with working("adopt", quiet=False):
        from compiler.artifact.adopt import adopt as bring_back

        bring_back(directory, original)
    console.print(f"{directory} is a checkpoint again; construct verify looks at it like at any other")


def plot(
    directory: Directory,
    text: Input,
    out: Annotated[Path, typer.Option(help="picture to write (PNG, PDF or SVG)")] = Path("state.png"),
    block: Block = None,
) -> None:
    """Draw a checkpoint over time: its lanes, the state of every block, and its answers, with what each row means."""
    picture_path(out, "--out")
    with working("plot", quiet=False):
        from compiler.artifact.load import load
        from compiler.tracing.truth import beyond
        from constructions.pictures.model_history import model_history
        from constructions.pictures.state_picture import draw_state

        built = _compared(directory)
        history = model_history(built.compiled, load(directory), text, block)
        draw_state(history, out, built.construction.title())
        source = built.compiled.source
        outside = [] if built.over_numbers else beyond(source.token_language, source.token_alphabet.encode(text))
    for sentence in outside:
        console.print(f"outside the promise: {sentence}")
    console.print(f"wrote {out}")


def report(
    directory: Annotated[Path | None, typer.Argument(help="a checkpoint directory")] = None,
    zoo: Annotated[bool, typer.Option("--zoo", help="the index of the zoo instead, of all its circuits")] = False,
    out: Annotated[
        Path, typer.Option(help="page to write (HTML); the index links each NAME.html that stands beside it")
    ] = Path("report.html"),
) -> None:
    """Write a page to look at, which needs no network: what is promised, and the circuit, to step through an input."""
    if zoo == (directory is not None):
        raise ValueError("report makes the page of one checkpoint, DIRECTORY, or with --zoo the index of the zoo.")
    path_of_kind(out, "--out", HTML)
    with working("report", quiet=False):
        from constructions.report.page import page_of
        from constructions.report.zoo import zoo_page

        text = zoo_page(out.absolute().parent) if directory is None else page_of(directory)
    write_whole(out, text)
    console.print(f"wrote {out}")


def trace(
    directory: Directory,
    text: Annotated[str, typer.Option("--input", help='tokens, such as "k0 v3 k0"')],
    patch: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                'set a variable: "NAME@POSITION=VALUE", such as "stack@3=(" or, at the last, "stack@-1=("; may be '
                "repeated. VALUE is a letter as it stands, or none (absent), true, false, 3, or 0,1; of a letter that "
                'is called none: "letter none", and "no letter" is absent'
            )
        ),
    ] = None,
    key: KeyFile = None,
    as_json: Json = False,
) -> None:
    """What a checkpoint computes on an input, by the names of its circuit, and whether it is what the circuit gives."""
    with working("trace", quiet=as_json):
        from constructions.command.tracing import shown, traced

        found = traced(directory, text, patch or [], key)
    say(strict_json(found.as_dict()) if as_json else shown(found))
    if not found.agrees:
        raise typer.Exit(1)


def graph(
    directory: Directory,
    out: Annotated[Path, typer.Option(help="picture to write (SVG, PDF or PNG)")] = Path("circuit.svg"),
    as_json: Annotated[
        bool, typer.Option("--json", help="print the causal graph instead, in the node-link form of networkx")
    ] = False,
) -> None:
    """Draw the circuit of a checkpoint as written: a box for each source line, with constants and thresholds."""
    picture_path(out, "--out")
    if as_json:
        from compiler.tracing.causal_graph import causal_graph

        say(strict_json(causal_graph(_compared(directory).compiled)))
        return
    with working("graph", quiet=False):
        from constructions.pictures.graph import draw_circuit

        draw_circuit(_compared(directory).compiled.source, out)
    console.print(f"wrote {out}")


def _compared(directory: Path):
    """What the checkpoint compiles to; CheckpointError where it is anything else, whose lanes have no such names."""
    from constructions.checkpoints.saved import same

    return same(directory)[0]
