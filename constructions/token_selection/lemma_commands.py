"""The commands of paper D's lemmas and rates: soft-selection (Lemma 3.3) and estimation (Theorems 4.5, 4.6, J.3).

`construct reproduce lemmas` and `construct reproduce rates` run the whole tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from constructions.command.display import console, working
from constructions.command.options import Json, Plot, Seed
from constructions.command.outputs import picture_path
from constructions.command.reporting import show, table_of, verdict
from constructions.experiments.names import WHAT
from constructions.experiments.table_files import TableFiles

LEMMA_COLUMNS = ("lemma", "what", "L", "W", "S", "D", "bound", "error")
SELECTION_COLUMNS = ("what", "points", "asked", "bound", "error", "soft_bound", "soft_error")
SIZE_COLUMNS = ("L", "W", "S", "B", "D")


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    for name, command in COMMANDS.items():
        app.command(name)(command)


def soft_selection_command(
    keys: Annotated[int, typer.Option(min=2, max=64, help="n_K: keys at equal distances on a circle")] = 8,
    tokens: Annotated[int, typer.Option(min=2, max=4096, help="n: tokens of a sequence")] = 8,
    values: Annotated[int, typer.Option(min=1, max=16, help="d_v: numbers of a value")] = 2,
    error: Annotated[
        float, typer.Option(help="ε: how far the output may be from the value of the chosen token")
    ] = 0.01,
    samples: Annotated[int, typer.Option(min=1, max=10**7, help="random sequences")] = 1000,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """After paper D, Lemma 3.3: network, constant filter with a skip, network: the token whose key meets the query."""
    if plot:
        picture_path(plot, "--plot")
    with working("soft-selection", quiet=as_json) as bars:
        import numpy as np

        from constructions.token_selection import soft_selection, soft_selection_plot

        setting = soft_selection.angles(keys, tokens, values, error)
        row = soft_selection.angle_row(setting, keys, samples, np.random.default_rng(seed), bars)
        one = soft_selection.one_selection(setting, keys, seed)
        if plot:
            soft_selection_plot.draw(one, plot)
    result = row | {"theorem": "after paper D, Lemma 3.3", "frequencies": setting.made.top, "example": one}
    if as_json:
        show(result, as_json, result["good"])
        return
    console.print(f"χ = {setting.made.chi:.4g}, A = {setting.made.top}, D = {setting.made.channels} channels")
    console.print(table_of([row["sizes"]], SIZE_COLUMNS, tight=True))
    console.print(table_of([row], SELECTION_COLUMNS, tight=True))
    console.print("one sequence")
    names = ("keys", "scores", "softmax", "networks")
    places = [dict(zip(names, each, strict=True)) for each in zip(*(one[name] for name in names), strict=True)]
    console.print(table_of(places, names))
    verdict(result["good"])


def estimation_command(
    smoothness: Annotated[str, typer.Option(help="a: of each coordinate, such as 1,2,3")] = "1,2,3",
    kind: Annotated[Literal["mixed", "anisotropic"], typer.Option(help="how the coordinates join")] = "mixed",
    alpha: Annotated[float, typer.Option(min=0.1, max=10, help="α: the j-th smoothness is at least j^α")] = 1.0,
    samples: Annotated[int, typer.Option(min=2, max=10**18, help="n: samples of the estimate")] = 10**6,
    plot: Plot = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """After paper D, Theorems 4.5, 4.6 and J.3, formulas reconstructed: sizes, covering, rate; --plot measures it."""
    if plot:
        picture_path(plot, "--plot")
    try:
        numbers = [float(part) for part in smoothness.split(",")]
    except ValueError:
        raise ValueError(f"--smoothness {smoothness}: give numbers with commas between them, such as 1,2,3.") from None
    with working("estimation", quiet=as_json):
        from constructions.token_selection import rates

        result: dict[str, Any] = {"theorem": "after paper D, Theorems 4.5, 4.6 and J.3"}
        result |= {"reconstructed": list(rates.estimation.RECONSTRUCTED)}
        result |= rates.model_sizes(samples, numbers, kind, alpha)
        if plot:
            rates.draw(rates.report(seed), plot)
    show(result, as_json, True)


def reproduce_lemmas(
    samples: int,
    seed: int,
    plot: Path | None,
    keep: Path | None,
    page: Path | None,
    files: TableFiles,
    as_json: bool,
) -> None:
    """Paper D, Lemmas F.1–F.6, H.1, H.3, 3.3 and random features: all rows; the picture is that of a selection.

    keep: a file of these rows; they are run where it does not hold them for as many samples and this seed.
    """
    with working("lemmas", quiet=as_json):
        from constructions.token_selection import lemma_page, soft_selection, soft_selection_plot

        rows = lemma_page.kept_rows(keep, samples, seed) if keep else lemma_page.rows(samples, seed)
        if plot:
            soft_selection_plot.draw(soft_selection.one_selection(soft_selection.angles(), 8, seed), plot)
        if page:
            page.write_text(lemma_page.page(rows), "utf-8")
    files.write_records(WHAT["lemmas"], rows)
    good = all(row["good"] for row in rows)
    if as_json:
        show(
            {
                "theorem": "after paper D, Lemmas F.1–F.6, H.1, H.3 and 3.3; the bounds are ours",
                "rows": rows,
                "good": good,
            },
            as_json,
            good,
        )
        return
    empty = dict.fromkeys(LEMMA_COLUMNS)
    shown = [empty | {"D": row.get("terms")} | row | row["sizes"] for row in rows]
    console.print(table_of(shown, LEMMA_COLUMNS, tight=True))
    fewest = min(row["points"] for row in rows)
    console.print(f"D: channels, or terms of a kernel; {fewest:,} points of each at least, corners among them")
    verdict(good)


def reproduce_rates(seed: int, plot: Path | None, files: TableFiles, as_json: bool) -> None:
    """The rate of Theorem 4.6, as we read it, measured with a series estimator."""
    with working("rates", quiet=as_json):
        from constructions.token_selection import rates

        result = rates.report(seed)
        if plot:
            rates.draw(result, plot)
    slopes = [f"a_plus {s['a_plus']}: exponent {s['exponent']}, slope {s['slope']}" for s in result["slopes"]]
    files.write_records(WHAT["rates"], result["rows"], slopes)
    if as_json:
        show(result, as_json, True)
        return
    console.print(table_of(result["rows"], ("a_plus", "samples", "terms", "waves", "error", "rate")))
    console.print(table_of(result["slopes"], ("a_plus", "weak_norm", "exponent", "slope")))
    console.print("Theorem 4.6, as reconstructed, promises the exponent where the weak norm is at most 1")


COMMANDS = {"soft-selection": soft_selection_command, "estimation": estimation_command}
