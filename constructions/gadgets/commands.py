"""The commands of paper B beside its chains: copy-decay (Theorem 1), gadgets (Lemmas 1–5), costs (Table 1)."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from constructions.command.display import console, working
from constructions.command.numbers import Force, Out
from constructions.command.options import Json, Plot, Seed
from constructions.command.outputs import picture_path
from constructions.command.reporting import show, table_of, verdict
from constructions.selectivity.commands import run_over_numbers

_COPY = {name: name for name in ("decay", "instances", "violations", "largest_error", "largest_bound")}
_COPY |= {"largest_share": "tightness", "rounding": "module_off", "its_bound": "module_bound"}
"""What a column shows of a row, by its head."""
_LONGEST = "the largest T of the 2-local chain, of computed sizes and of key-value caches, which come in powers of ten"


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    for name, command in COMMANDS.items():
        app.command(name)(command)


def copy_decay_command(
    length: Annotated[int, typer.Option(min=1, max=256, help="T: positions of an instance")] = 16,
    window: Annotated[int, typer.Option(min=1, help="L: how far back the position to copy may lie")] = 4,
    delta: Annotated[float, typer.Option(min=2.0**-12, max=0.25, help="δ: below it a score is a mismatch")] = 1 / 64,
    samples: Annotated[int, typer.Option(min=2, max=10**6, help="random instances for each decay")] = 10_000,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Paper B, Theorem 1: COPY by a state that fades, its error on built weights beside the corrected bound."""
    if plot:
        picture_path(plot, "--plot")
    if window > length:
        raise ValueError(f"--window {window}: it lies within --length {length}; use at most {length}.")
    with working("copy-decay", quiet=as_json):
        from constructions.gadgets import copy_decay

        result = copy_decay.report(samples, length, window, delta, seed)
        if plot:
            copy_decay.draw_tightness(result, plot)
    for row in result["rows"]:
        del row["ratios"]  # ten thousand numbers, for the picture
    if as_json:
        show(result, as_json, result["good"])
        return
    console.print(
        f"T = {length}, L = {window}, δ = {delta:g}, M‖Δ‖ = 1, and 3 where it is a power of Δ; errors of the module"
    )
    rows = [{head: row[name] for head, name in _COPY.items()} for row in result["rows"]]
    console.print(table_of(rows, tuple(_COPY), tight=True))
    console.print("largest share: of the bound, reached by an error; rounding: of the module, beside its own bound")
    console.print(table_of([result["formula"]], ("instances", "violations", "tightness", "median_ratio")))
    console.print(table_of(result["broken"], ("assumption", "named", "bound_fails")))
    verdict(result["good"])


def gadgets_command(
    largest: Annotated[int, typer.Option(min=1, max=256, help="integers up to this are tried exhaustively")] = 64,
    samples: Annotated[int, typer.Option(min=1, max=10**6, help="random real inputs for each word")] = 10_000,
    seed: Seed = 0,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Paper B, Lemmas 1–5 (product, network, linear map, select, indicators): exact of integers, near of reals."""
    if plot:
        picture_path(plot, "--plot")
    with working("gadgets", quiet=as_json):
        from constructions.gadgets import lemmas

        result = lemmas.report(largest, samples, seed)
        if plot:
            lemmas.draw_products(result, plot)
    if as_json:
        show(result, as_json, result["good"])
        return
    console.print(f"all integers up to {largest}, in a real module")
    console.print(table_of(result["integers"], ("lemma", "word", "blocks", "channels", "cases", "wrong")))
    console.print(f"real numbers of at most 1; comparisons with a gap of {result['gap']}")
    console.print(table_of(result["reals"], ("lemma", "word", "blocks", "channels", "error", "bound")))
    console.print("Lemma 1's four values of silu, λ a power of two; of epsilon: the paper's λ, rounded up to one")
    console.print(table_of(result["silu_products"], ("scale", "of_epsilon", "error", "within", "curvature", "bound")))
    verdict(result["good"])


def costs_command(
    longest: Annotated[int, typer.Option(min=100, max=100_000, help=_LONGEST)] = 100_000,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Paper B, Table 1: state, parameters and time per token of built models and a key-value cache, as answers grow."""
    if plot:
        picture_path(plot, "--plot")
    with working("costs", quiet=as_json):
        from constructions.gadgets import costs

        lengths = tuple(length for length in costs.LOCAL_LENGTHS if length <= longest)
        cached = tuple(length for length in costs.ATTENTION_LENGTHS if length <= longest)
        rows = list(costs.rows(local=lengths, attention=cached, longest=longest))
        if plot:
            costs.draw_costs(rows, plot)
    local = {row["state"] for row in rows if "Theorem 4" in row["model"]}
    result = {"theorem": "paper B, Table 1", "rows": rows, "growth": costs.growth(rows), "good": len(local) == 1}
    if as_json:
        show(result, as_json, result["good"])
        return
    console.print(table_of(rows, ("model", "length", "how", "state", "parameters", "nonzero", "seconds")))
    console.print("state ~ T^g: " + ", ".join(f"{name}: {g:.2f}" for name, g in result["growth"].items()))
    verdict(result["good"])


def copy_vectors_command(
    n: Annotated[int, typer.Option(min=1, help="N: vectors of a sequence")] = 16,
    width: Annotated[int, typer.Option(min=1, help="d: numbers of a vector")] = 4,
    largest: Annotated[float, typer.Option(help="M: the largest number in size")] = 1.0,
    integers: Annotated[bool, typer.Option(help="whole numbers, copied bit for bit")] = False,
    arch: Annotated[Literal["mamba", "mamba2"], typer.Option(help="which mixer")] = "mamba",
    out: Out = None,
    samples: Annotated[int, typer.Option(min=1, help="random sequences for each task")] = 32,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """After paper B, Theorem 2: COPY of vectors from any earlier place, in one block; exact of integers.

    place and asked are one-hot or all 0; answers are right where each place is written once, and pos(i) ≤ i.
    """
    from constructions.copy_dp.copy_vectors import CopyVectors

    run_over_numbers(CopyVectors(n, width, largest, integers, arch), out, force, samples, True, as_json)


COMMANDS = {
    "copy-decay": copy_decay_command,
    "copy-vectors": copy_vectors_command,
    "costs": costs_command,
    "gadgets": gadgets_command,
}
