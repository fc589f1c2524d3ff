"""`construct generate DIR`: what a checkpoint writes after a prompt, token by token as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from compiler.artifact.files import MANIFEST
from constructions.command.display import say, working
from constructions.command.numbers import need_tokens
from constructions.command.options import Json
from constructions.command.reporting import strict_json

if TYPE_CHECKING:
    from compiler.artifact.generate import Written

_RECORDED = f"as {MANIFEST} records it; construct verify compares the weights with it"
_RECORD = f" (the promise {_RECORDED})"
_NO_PROMPT = 'there is no prompt; give one by --prompt "a b ;", or a file with one in each line by --file'


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("generate")(generate)


def generate(
    directory: Annotated[Path, typer.Argument(help="a checkpoint directory")],
    prompt: Annotated[list[str] | None, typer.Option(help='tokens, such as "a b | b ;"; may be given again')] = None,
    file: Annotated[Path | None, typer.Option(help="a file, a batch: a prompt in each line that is not empty")] = None,
    runtime: Annotated[
        Literal["mamba-ssm", "transformers"], typer.Option(help="step mamba_ssm's modules, or transformers' generate()")
    ] = "mamba-ssm",
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="stop after this many [default: as far as the promise reaches, at most 10000]"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write what comes after a prompt, up to the letter that ends it or as far as the promise reaches.

    The promise is the one that the checkpoint records: construct verify compares the weights with it. Without
    --max-tokens at most 10,000 tokens are written after each prompt; a sentence says where more would come.

    Exit code 1 where a score is no number, where a text goes on beyond the promise, or where it leaves its language
    before the end that its circuit has.
    """
    need_tokens(directory, "only one over tokens writes text; compiler.load(DIR).run({...}) gives its outputs.")
    prompts = [*(prompt or []), *_lines(file)]
    if not prompts:
        raise ValueError(_NO_PROMPT)
    streamed = len(prompts) == 1 and not as_json
    with working("load the model", quiet=as_json):
        from compiler.artifact.generate import Writer  # imports torch

        writer = Writer(directory, runtime)
        writer.load()
        written = [] if streamed else writer.write(prompts, max_tokens)
    if streamed:  # without a bar, which would stand between the tokens
        written = writer.write(prompts, max_tokens, _printer())
    if as_json:
        rows = [asdict(row) | {"text": row.text} for row in written]
        say(strict_json({"runtime": runtime, "promise": _RECORDED, "generations": rows}))
    elif streamed:
        say()
    else:
        for row in written:
            say(row.text)
    _complain(written, max_tokens, writer.manifest.promise.stop is not None)


def _printer() -> Callable[[int, str], None]:
    """Prints each token as it comes, with spaces between."""
    first = True

    def told(row: int, token: str) -> None:
        nonlocal first
        say(token if first else f" {token}", nl=False)
        first = False

    return told


def _lines(file: Path | None) -> list[str]:
    """The prompts of a file; lines without a token count for nothing."""
    from compiler.artifact.plain_files import text_of

    return [line.removesuffix("\r") for line in text_of(file).split("\n") if line.split()] if file else []


def _complain(written: Sequence[Written], max_tokens: int | None, ends: bool) -> None:
    """A sentence for each continuation that the promise does not cover to its end. Exit code 1 where one goes on
    nevertheless, or should have ended: of a circuit that ends no text (ends: False) no end is expected.
    """
    for row in written:
        if row.left and (not row.inside or max_tokens is None):
            said = "the first token is" if row.promised == 1 else f"the first {row.promised} tokens are"
            left = f"{said} promised, then the text leaves the promise's language"
            say(f"after {row.prompt!r}: {left}{_RECORD}", err=True)
        elif row.limited:
            first = f"the first {len(row.tokens):,} tokens are written, and the promise reaches further"
            say(f"after {row.prompt!r}: {first}; --max-tokens N writes N{_RECORD}", err=True)
        if row.cut:
            asked = "" if max_tokens is None else f"{len(row.tokens):,} of the {max_tokens:,} tokens are written: "
            say(f"after {row.prompt!r}: {asked}the promise ends before the model does{_RECORD}", err=True)
    if any(not row.inside or (ends and row.left and max_tokens is None) for row in written):
        raise typer.Exit(1)
