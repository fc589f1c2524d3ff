"""`construct truths`: statements of the papers that do not stand as they are, each with a counterexample to run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from compiler import digits
from constructions.command.display import BOLD, console, say, working
from constructions.command.options import Json
from constructions.command.reporting import strict_json

if TYPE_CHECKING:
    from constructions.truths.truth import Finding, Truth


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("truths")(truths_command)


def truths_command(
    name: Annotated[str, typer.Argument(help="one of them [default: run all]")] = "",
    as_json: Json = False,
) -> None:
    """Statements of the papers that fail as printed, leave a condition unsaid or fail on floats, with a
    counterexample to each, and with what does hold.
    """
    from constructions.truths import collection

    chosen, rows = collection.chosen(name), []
    with working("truths", quiet=as_json) as bars:
        advance = bars("statements", len(chosen))
        for truth in chosen:
            rows.append((truth, truth.measure()))
            advance(1)
    if as_json:
        say(strict_json([as_data(truth, finding) for truth, finding in rows]))
    else:
        for truth, finding in rows:
            console.print(_table(truth, finding))
    bad = [truth.name for truth, finding in rows if not finding.good]
    if bad:
        say(f"not as the page says: {', '.join(bad)}", err=True)
        raise typer.Exit(1)


def as_data(truth: Truth, finding: Finding) -> dict:
    """Plain values."""
    told = {key: getattr(truth, key) for key in ("name", "paper", "place", "says", "but", "holds", "constants")}
    measured = {"against": dict(finding.against), "instead": dict(finding.instead)}
    judged = {"statement_fails": bool(finding.fails), "instead_holds": bool(finding.holds)}
    return {"kind": truth.kind.value} | told | measured | judged


def _table(truth: Truth, finding: Finding) -> Table:
    table = Table("", "measured", title=f"{truth.name}: {truth.place} ({truth.kind.value})", title_justify="left")
    for label, text, numbers in (
        ("printed", truth.says, {}),
        ("but", truth.but, finding.against),
        ("holds", truth.holds, finding.instead),
        ("constants", constants(truth), {}),
    ):
        table.add_row(Text.assemble((label, BOLD), f"  {text}"), "")
        for what, value in told(numbers):
            table.add_row(what, value)
    return table


def constants(truth: Truth) -> str:
    """The constants of the counterexample in one line: a = 1, b = (2, 3)."""
    return ", ".join(f"{name} = {_plain(value)}" for name, value in truth.constants.items())


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_plain, value))})"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def told(numbers: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """What was measured, to three digits; roundings of float64, which differ between machines, by their size."""
    for what, value in numbers.items():
        rounding = 0 < abs(value) < 1e-9
        yield what, "below 1e-9" if rounding else str(value) if isinstance(value, int) else digits.named(what, value)


def section(truth: Truth, finding: Finding) -> str:
    """The part of the docs page on one statement."""
    rows = "".join(
        "| {} | {} |\n".format(what.replace("|", "\\|"), value)
        for part in (finding.against, finding.instead)
        for what, value in told(part)
    )
    paragraphs = (
        f"*{truth.kind.value}* · {truth.place}",
        f"**Printed:** {truth.says}",
        f"**But** {truth.but}",
        f"**Holds:** {truth.holds}",
        f"Constants: {constants(truth)}.",
    )
    text = "\n\n".join(textwrap.fill(p, 120, break_long_words=False, break_on_hyphens=False) for p in paragraphs)
    return f"## {truth.name}\n\n{text}\n\n    construct truths {truth.name}\n\n| measured | |\n| --- | --- |\n{rows}"
