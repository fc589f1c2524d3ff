"""`construct export DIR`: a checkpoint for another runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from compiler.artifact.formats import HUGGING_FACE, format_names, writer_of
from constructions.command.display import console, say, working
from constructions.command.options import Json
from constructions.command.reporting import strict_json
from constructions.command.requests import directory as directory_of
from constructions.command.show import run_file
from verify.arguments import run_own

_FILES = {"gguf": ".gguf", "safetensors-bare": ".safetensors"}  # formats that are one file, and how it ends
_NAMES = ", ".join(name for name in format_names() if name != HUGGING_FACE)


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("export")(export)


def export(
    directory: Annotated[Path, typer.Argument(help="a checkpoint directory")],
    format: Annotated[str, typer.Option(help=f"{_NAMES}; FILE.py:NAME for one that your file registers")],
    out: Annotated[
        Path | None,
        typer.Option(
            parser=directory_of, metavar="PATH", help="file or directory to write [default: beside DIR, by its name]"
        ),
    ] = None,
    as_json: Json = False,
    force: Annotated[bool, typer.Option(help="replace an earlier export")] = False,
) -> None:
    """Write a checkpoint for llama.cpp, ONNX, MLX or mamba_ssm, or refuse what would not be exact there."""
    own, _, name = format.rpartition(":")
    if name == HUGGING_FACE:
        raise ValueError(f"--format {format}: {directory} is that already; choose one of {_NAMES}.")
    with working("export", quiet=as_json):
        if own:
            run_file(Path(own))
        write = writer_of(name, without=HUGGING_FACE)
        from compiler.export.checkpoint import read
        from constructions.checkpoints.saved import same

        checkpoint = read(directory)
        same(directory)
        target = default_path(directory, name) if out is None else out
        if own:
            run_own(format, write, checkpoint, target, force, file=own)
        else:
            write(checkpoint, target, force)
    if as_json:
        say(strict_json({"format": name, "path": str(target)}))
    else:
        console.print(f"{target} holds the checkpoint for {name}")


def default_path(directory: Path, format: str) -> Path:
    """DIR.gguf, DIR.safetensors or DIR-FORMAT."""
    named = directory if directory.name.strip(".") else directory.resolve()
    return named.with_name(named.name + _FILES.get(format, f"-{format}"))
