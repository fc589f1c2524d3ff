"""`construct truths`: statements that fail as printed, run: the counterexample, and what holds instead."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from constructions.display import console, working
from constructions.options import Json
from constructions.reporting import strict_json

if TYPE_CHECKING:
    from constructions.truths.truth import Finding, Truth


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("truths")(truths_command)


def truths_command(
    name: Annotated[str, typer.Argument(help="one of them [default: run all]")] = "",
    as_json: Json = False,
) -> None:
    """What the theorems do not say: a counterexample to each statement that fails, and what does hold."""
    from constructions.truths import collection

    chosen, rows = collection.chosen(name), []
    with working("truths", quiet=as_json) as bars:
        advance = bars("statements", len(chosen))
        for truth in chosen:
            rows.append((truth, truth.measure()))
            advance(1)
    if as_json:
        typer.echo(strict_json([as_data(truth, finding) for truth, finding in rows]))
    else:
        for truth, finding in rows:
            console.print(_table(truth, finding))
    bad = [truth.name for truth, finding in rows if not finding.good]
    if bad:
        typer.echo(f"not as the page says: {', '.join(bad)}", err=True)
        raise typer.Exit(1)


def as_data(truth: Truth, finding: Finding) -> dict:
    """Plain values."""
    told = {key: getattr(truth, key) for key in ("name", "paper", "place", "says", "but", "holds")}
    measured = {"against": dict(finding.against), "instead": dict(finding.instead)}
    return told | measured | {"statement_fails": bool(finding.fails), "instead_holds": bool(finding.holds)}


def _table(truth: Truth, finding: Finding) -> Table:
    table = Table("", "measured", title=f"{truth.name}: {truth.place}", title_justify="left")
    for label, text, numbers in (
        ("printed", f"{truth.says} {truth.but}", finding.against),
        ("holds", truth.holds, finding.instead),
    ):
        table.add_row(f"[bold]{label}[/bold]  {text}", "")
        for what, value in told(numbers):
            table.add_row(what, value)
    return table


def told(numbers: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """What was measured, to three digits; roundings of float64, which differ between machines, by their size."""
    for what, value in numbers.items():
        rounding = 0 < abs(value) < 1e-9
        yield what, "below 1e-9" if rounding else str(value) if isinstance(value, int) else f"{value:.3g}"


def section(truth: Truth, finding: Finding) -> str:
    """The part of the docs page on one statement."""
    rows = "".join(
        "| {} | {} |\n".format(what.replace("|", "\\|"), value)
        for part in (finding.against, finding.instead)
        for what, value in told(part)
    )
    paragraphs = (f"**Printed** ({truth.place}): {truth.says}", f"**But** {truth.but}", f"**Holds:** {truth.holds}")
    text = "\n\n".join(textwrap.fill(p, 120, break_long_words=False, break_on_hyphens=False) for p in paragraphs)
    return f"## {truth.name}\n\n{text}\n\n    construct truths {truth.name}\n\n| measured | |\n| --- | --- |\n{rows}"
