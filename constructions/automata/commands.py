"""`construct automaton`: what a regular language is, where it can live, and its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from compiler.language.input_language import LARGEST_LENGTH
from constructions.command import requests
from constructions.command.building import run
from constructions.command.display import console, say, working
from constructions.command.options import LARGEST_SEED, Certify, Json, Samples
from constructions.command.reporting import strict_json

_MOST_BYTES = 1 << 24  # of a table's file
Out = Annotated[
    Path | None,
    typer.Option(parser=requests.directory, metavar="PATH", help="checkpoint directory [default: out/automaton]"),
]


def automaton_command(
    regex: Annotated[str | None, typer.Option(help="a regular expression; its letters are single characters")] = None,
    table: Annotated[
        Path | None, typer.Option(help='a JSON file: {"start": S, "accept": [S], "transitions": {S: {LETTER: S}}}')
    ] = None,
    name: Annotated[str | None, typer.Option(help="a language of the literature, such as tomita-4")] = None,
    letters: Annotated[str, typer.Option(help="of --regex: all letters [default: those that it names]")] = "",
    arch: Annotated[Literal["mamba", "mamba2", "gated-deltanet"], typer.Option(help="which mixer")] = "mamba",
    length: Annotated[str, typer.Option(help="longest sequence that the promise covers, or forever")] = "forever",
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"], typer.Option(help="arithmetic that the promise is made for")
    ] = "float32",
    explain: Annotated[bool, typer.Option("--explain", help="say what the language is, and build nothing")] = False,
    out: Out = None,
    verify: Annotated[
        Literal["auto", "exhaustive", "random", "none"], typer.Option(help="auto: every sequence if few, else random")
    ] = "auto",
    samples: Samples = 1000,
    certify: Certify = True,
    force: Annotated[bool, typer.Option(help="replace an earlier checkpoint")] = False,
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="seed of everything that is drawn")] = 0,
    as_json: Json = False,
) -> None:
    """A finite automaton: decided by its algebra, compiled to resets, counts and swaps, or refused with the reason."""
    most = _length(length)
    given = _given(regex, table, name, letters)
    with working("decide", quiet=as_json):
        from constructions.automata.automaton import Automaton, table_json
        from constructions.automata.explain import FOREVER_ELSEWHERE, decide, with_swaps

        construction = Automaton(table=table_json(given), arch=arch, dtype=dtype, max_length=most, seed=seed)
        construction.check_names()  # before a promise is told that no checkpoint could keep
        decision = with_swaps(decide(given), given) if explain or arch == "gated-deltanet" else decide(given)
    if explain:
        say(strict_json(decision.to_json()) if as_json else "\n".join(decision.says))
        return
    if decision.swaps is None and decision.levels is None and decision.bounded is None:
        other = f"; {FOREVER_ELSEWHERE}" if with_swaps(decision, given).swaps is not None else ""
        raise ValueError(" ".join(decision.says).removesuffix("." * bool(other)) + other)
    if not as_json:
        console.print(*decision.says, sep="\n")
    run(construction, out, verify, samples, certify, as_json, force, _keys(decision, construction))


def _keys(decision: Any, construction: Any) -> dict[str, Any]:
    """What the report of a built automaton has beside that of other constructions."""
    from constructions.automata.explain import FOREVER

    told = decision.to_json()
    longest = construction.max_length
    forever = FOREVER if construction.reflects else told["promise"]
    promise = forever if longest is None else f"sequences of at most {longest:,} tokens"
    return {key: told[key] for key in ("states", "monoid", "star_free", "groups", "levels")} | {"promise": promise}


def _length(given: str) -> int | None:
    """How many tokens the promise covers; None for "forever"."""
    if given == "forever":
        return None
    if not given.isascii() or not given.isdigit() or not 1 <= int(given[:20]) <= LARGEST_LENGTH:
        raise ValueError(
            f"--length {given}: it must be a number of tokens from 1 to {LARGEST_LENGTH}, or forever for every length"
        )
    return int(given)


def _given(regex: str | None, table: Path | None, name: str | None, letters: str) -> Any:
    """The table that one of the three options gives."""
    from compiler.artifact.plain_files import text_of
    from compiler.automata.regex import regex_table
    from constructions.automata.automaton import read_table
    from constructions.automata.languages import named_table

    if sum(option is not None for option in (regex, table, name)) != 1:
        raise ValueError(
            "an automaton is given by one of --regex '(ab|ba)*', --table FILE and --name tomita-4; give exactly one"
        )
    if letters and regex is None:
        raise ValueError(f"--letters {letters} belongs to --regex; a table has letters of its own")
    if regex is not None:
        return regex_table(regex, letters)
    if name is not None:
        return named_table(name)
    assert table is not None
    try:
        return read_table(text_of(table, _MOST_BYTES))
    except OSError as error:
        raise ValueError(f"--table {table} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:
        raise ValueError(f"--table {table}: {error}") from error


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    for name, command in COMMANDS.items():
        app.command(name)(command)


COMMANDS = {"automaton": automaton_command}
