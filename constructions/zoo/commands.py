"""`construct zoo`: named circuits with their answers, built and proved, and their data with labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from compiler.artifact.errors import CheckpointError
from compiler.language.arguments import counted
from constructions.command import display
from constructions.command.display import BOLD, console
from constructions.command.options import Json, Scheduler, Seed, Workers
from constructions.command.outputs import PARQUET, check_kind, check_outside
from constructions.command.reporting import strict_json, table_of
from constructions.command.sharding import Where

if TYPE_CHECKING:
    from constructions.zoo.entry import Entry
    from constructions.zoo.kept import Kept

Names = Annotated[
    list[str] | None, typer.Argument(metavar="NAME…", help="circuits, families, or globs such as 'mqar-*'")
]
All = Annotated[bool, typer.Option("--all", help="every circuit")]
Out = Annotated[Path, typer.Option(metavar="DIR", help="where to write, a directory for each circuit")]
_LINE = "{:<24} {:>6} {:>5} {:<7} {:>17} {:>6}"

zoo = typer.Typer(
    no_args_is_help=True,
    help="Named circuits to study: what each computes, its checkpoint and proof, its data with labels.",
)


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.add_typer(zoo, name="zoo")


@zoo.command("list")
def list_circuits(names: Names = None, as_json: Json = False) -> None:
    """Every circuit: its family, what it answers, how many blocks it takes, and what is proved of it."""
    from constructions.zoo.measured import told

    rows = told(names or [])
    if as_json:
        display.say(strict_json(rows))
        return
    for family in dict.fromkeys(row["family"] for row in rows):
        mine = [row for row in rows if row["family"] == family]
        console.print(Text.assemble((family, BOLD), f": {mine[0]['family_title']}"))
        for row in mine:
            said = f" {row['says']}; blocks: {row['blocks'] or '?'}; {row['proved']}"
            console.print(Text.assemble("  ", (row["name"], BOLD), said))
    console.print(f"{counted(len(rows), 'circuit')}; `construct zoo show NAME` shows one")


@zoo.command()
def show(name: Annotated[str, typer.Argument(help="a circuit")], as_json: Json = False) -> None:
    """One circuit: its source, its answers in plain Python, its promise, its variables, and an example."""
    from constructions.zoo.show import description, lines

    told = description(name)
    display.say(strict_json(told) if as_json else "\n".join(lines(told)))


@zoo.command()
def build(
    names: Names = None,
    everything: All = False,
    out: Out = Path("out/zoo"),
    arch: Annotated[
        Literal["mamba", "mamba2"] | None, typer.Option(help="which mixer [default: the circuit's own, mostly mamba]")
    ] = None,
    seed: Seed = 0,
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """Build, prove and ask circuits; a checkpoint in DIR is replaced where it is as a run left it, else left alone."""
    from constructions.zoo.collection import chosen
    from constructions.zoo.measured import total

    check_outside(out / "toggle-32", "--out")  # as any circuit
    entries, where, mixer = chosen(names or [], everything), Where(workers, scheduler, quiet=as_json), arch or ""
    out.mkdir(parents=True, exist_ok=True)
    with display.progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from constructions.zoo.kept import Kept
            from constructions.zoo.several import several
        kept, advance = Kept(out), bars("circuits", len(entries))
        refused, found, stood = _taken(kept, entries), {}, 0
        left = [entry for entry in entries if entry.name not in refused]
        advance(len(refused))
        for came in several(left, kept, seed, mixer, where):
            advance(1)
            if came.row is None:
                refused[came.name] = came.reason
                continue
            kept.add(came.row)
            if not as_json:
                _print_row(came.row, first=not found)
            found[came.name], stood = came.row, stood + came.stood
    rows = [found[entry.name] for entry in entries if entry.name in found]
    sums = total(rows, stood) | {"refused": refused}
    if as_json:
        display.say(strict_json({"circuits": [row.to_json() for row in rows]} | sums))
    else:
        _print_end(len(rows), sums)
    for row in rows:
        if not row.good:
            display.say(f"{row.name} failed: {row.why or 'an answer or a score is not the right one'}", err=True)
    for name, why in refused.items():
        display.say(f"{name} was not built{f' of {arch}' if arch else ''}: {why}", err=True)
    if sums["failed"] or refused:
        raise typer.Exit(1)


@zoo.command()
def data(
    names: Names = None,
    everything: All = False,
    out: Out = Path("out/zoo-data"),
    train: Annotated[int, typer.Option(min=1, max=10**6, help="sequences to learn from")] = 500,
    test: Annotated[int, typer.Option(min=1, max=10**6, help="other sequences, to test on")] = 100,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write data as Parquet: sequences, answers, and a label for every named variable at every position."""
    from constructions.zoo.collection import chosen
    from constructions.zoo.parquet import write_data

    entries, written = chosen(names or [], everything), []
    for entry in entries:
        for name in ("train.parquet", "test.parquet"):
            check_outside(out / entry.name / name, "--out")
            check_kind(out / entry.name / name, "--out", PARQUET)
    with display.progress(quiet=as_json) as bars:
        advance = bars("circuits", len(entries))
        for entry in entries:
            place = out / entry.name
            written.append({"name": entry.name, "out": str(place)} | write_data(entry, place, train, test, seed))
            advance(1)
    if as_json:
        display.say(strict_json(written))
        return
    console.print(table_of(written, ("name", "train", "test", "out")))
    console.print(f'datasets.load_dataset("{written[0]["out"]}") opens the first')


def _taken(kept: Kept, entries: Sequence[Entry]) -> dict[str, str]:
    """The circuits in whose place something else stands, and what is said of it: it is neither asked nor replaced."""
    found = {}
    for entry in entries:
        try:
            kept.check_place(entry)
        except CheckpointError as reason:
            found[entry.name] = str(reason)
    return found


def _print_row(row: Any, first: bool) -> None:
    """A line of the table of a run, and its head before the first."""
    if first:
        console.print(_LINE.format("circuit", "blocks", "exact", "proved", "answers right of", "CPU s"))
    right = f"{row.right:,} of {row.questions:,}"
    exact, proved = "yes" if row.exact else "no", row.proof or "nothing"
    console.print(_LINE.format(row.name, row.difficulty["blocks"], exact, proved, right, row.cpu_seconds))


def _print_end(count: int, found: dict[str, Any]) -> None:
    """The sums of a run."""
    proved = found["proved"]
    console.print(
        f"{counted(count, 'circuit')}, {found['kept']} the same as what stood there, the card aside; every score "
        f"exact in {found['exact']}"
    )
    console.print(
        f"weights and answers proved of {proved['answers']}, weights alone of {proved['scores']}, "
        f"neither of {proved['']}"
    )
    console.print(f"{found['right']:,} of {found['questions']:,} answers right; {found['cpu_seconds']:,} CPU s")
