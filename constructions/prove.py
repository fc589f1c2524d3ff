"""`construct prove DIR`: run the checker on a checkpoint and write its verdict beside the weights.

The checker is a program of its own (`python -m verify.checker`); this command only keeps what it says. proof.json names
the files it speaks of by their hashes. It is a record, not evidence: who wants to know runs the checker.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated

import typer

from constructions.display import working
from constructions.numbers import need_tokens
from constructions.options import Json

PROOF = "proof.json"
SPOKEN_OF = ("model.safetensors", "config.json", "circuit.json", "construction.json")


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("prove")(prove)


def prove(
    directory: Annotated[Path, typer.Argument(help="a checkpoint directory")],
    as_json: Json = False,
) -> None:
    """Prove a checkpoint from its files alone, for every input of its language, and write proof.json into it."""
    need_tokens(directory, "the checker reads models over tokens; construct verify compiles it again and compares it.")
    with working("prove", quiet=as_json):
        from verify.checker.check import check

        verdict = check(directory)
    record = verdict.to_json() | {"files": {name: _sha256(directory / name) for name in SPOKEN_OF}}
    if as_json:
        typer.echo(json.dumps(record))
    else:
        typer.echo("\n".join(verdict.lines()))
    try:
        _write(directory / PROOF, json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    except OSError as reason:  # the verdict stands, whoever owns the directory
        typer.echo(f"{directory / PROOF} is not written: {(reason.strerror or str(reason)).lower()}", err=True)
    if not verdict.accepted:
        raise typer.Exit(1)


def _sha256(path: Path) -> str | None:
    """The hash of a file; None if there is none."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, text: str) -> None:
    """All of the file or nothing."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, "utf-8", newline="\n")
    os.replace(partial, path)
