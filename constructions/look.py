"""Commands that look into a checkpoint: plot (its state over time), graph (its circuit), sensitivity (of a state to
inputs), adopt (one that another library wrote again).

Blocks, channels and columns are counted as `construct inspect` lists them: blocks from 1, channels and columns from 0;
a channel also goes by its name.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from constructions.display import console, working
from constructions.numbers import read_numbers
from constructions.options import Json, Plot
from constructions.requests import picture_path

Directory = Annotated[Path, typer.Argument(help="a checkpoint directory")]
Input = Annotated[
    str,
    typer.Option(
        "--input", help='tokens, such as "k0 v3 k0"; of a model over numbers "1 -2", or "x = 1,2 3,4; n = 0 1"'
    ),
]
Block = Annotated[
    int | None,
    typer.Option(min=1, help="which block, from 1 on [default: the last (plot: the last that keeps a state)]"),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    app.command("plot")(plot)
    app.command("graph")(graph)
    app.command("sensitivity")(sensitivity)
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
    """Draw the hidden state of a checkpoint over time: entries named by tokens, steps along time."""
    picture_path(out, "--out")
    with working("plot", quiet=False):
        from compiler.artifact.load import load
        from constructions.plots import draw_state
        from constructions.state_history import state_history

        built = _rebuilt(directory)
        history = state_history(built.compiled, load(directory), text, block)
        draw_state(history, out, f"{built.construction.title()}: state of block {history.block}")
    console.print(f"wrote {out}")


def graph(
    directory: Directory,
    out: Annotated[Path, typer.Option(help="picture to write (SVG, PDF or PNG)")] = Path("circuit.svg"),
) -> None:
    """Draw the circuit of a checkpoint as it was written: streams, their operations and widths."""
    picture_path(out, "--out")
    with working("graph", quiet=False):
        from constructions.graph import draw_circuit

        draw_circuit(_rebuilt(directory).compiled.source, out)
    console.print(f"wrote {out}")


def sensitivity(
    directory: Directory,
    text: Input,
    block: Block = None,
    channel: Annotated[str, typer.Option(help="which channel: its number from 0 on, or its name")] = "0",
    column: Annotated[int, typer.Option(min=0, help="which state column, from 0 on")] = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Lemmas 1 and 2: how much a state of a checkpoint still feels an early input, by autograd and in closed form."""
    if plot:
        picture_path(plot, "--plot")
    with working("sensitivity", quiet=as_json):
        from constructions.plots import draw_sensitivity
        from verify.sensitivity import stream_sensitivity

        stack, first = _read(directory, text)
        block = len(stack.blocks) if block is None else block
        if block > len(stack.blocks):
            raise ValueError(f"--block {block}: the model has {len(stack.blocks)} blocks, counted from 1.")
        number, name = _channel(directory, block, channel)
        result = stream_sensitivity(stack, first, block - 1, number, column)
        if plot:
            draw_sensitivity({f"block {block}, channel {name}": result}, plot)
    _show_sensitivity(result.to_json(), as_json, f"block {block}, channel {name}, column {column}")


def _show_sensitivity(told: dict, as_json: bool, title: str) -> None:
    if as_json:
        typer.echo(json.dumps(told))
        return
    console.print(title, markup=False)
    table = Table("t − j", "by autograd", "closed form")
    for k, (measured, predicted) in enumerate(zip(told["measured"], told["predicted"], strict=True)):
        table.add_row(str(k), f"{measured:.6g}", f"{predicted:.6g}")
    console.print(table)


def _rebuilt(directory: Path):
    """The checkpoint compiled again."""
    from constructions.saved import rebuild

    return rebuild(directory)


def _read(directory: Path, text: str):
    """(the stack of a checkpoint, the stream before its first block (1, T, d_model)) for an input in words."""
    import torch

    from compiler.artifact.load import load
    from compiler.artifact.numeric import NumericStack

    loaded = load(directory)
    if isinstance(loaded, NumericStack):
        return loaded.stack, loaded.pack(read_numbers(text, loaded.inputs))
    return loaded, loaded.hidden(torch.tensor([_ids(text, list(loaded.tokens))]), 0)


def _ids(text: str, tokens: list[str]) -> list[int]:
    """The ids of white-space separated tokens; ValueError for none, and for one that the checkpoint does not have."""
    number = {name: i for i, name in enumerate(tokens)}
    words = text.split()
    if not words:
        raise ValueError("--input holds no token.")
    unknown = next((word for word in words if word not in number), None)
    if unknown is not None:
        raise ValueError(f"--input {text!r} must hold tokens of the checkpoint, and {unknown!r} is none.")
    return [number[word] for word in words]


def _channel(directory: Path, block: int, channel: str) -> tuple[int, str]:
    """(number, name) of a channel that is given as either; ValueError where the block has no channel of that name."""
    names = json.loads((directory / "construction.json").read_text())["blocks"][block - 1]["channels"]
    if channel.isdecimal():
        number = int(channel)
        return number, names[number] if number < len(names) else channel
    if channel not in names:
        some = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise ValueError(f"--channel {channel!r}: block {block} has no channel of this name; its channels are {some}.")
    return names.index(channel), channel
