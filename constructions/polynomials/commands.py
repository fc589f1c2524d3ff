"""The commands of paper C whose inputs are numbers: polynomial, monomial, degree-gap, linear-attention,
generalization.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer
from rich.table import Table

from constructions.command.display import console, working
from constructions.command.numbers import Force, Out, check_out, checkpoint
from constructions.command.options import Json, Seed
from constructions.command.reporting import show, verdict
from verify.arrays import read_arrays

if TYPE_CHECKING:
    from constructions.polynomials import linear_attention

Samples = Annotated[int, typer.Option(min=1, help="random inputs to measure on")]
Length = Annotated[int, typer.Option(min=0, help="number of inputs x1 … xL (0: as many as occur)")]
_MATRICES = ("W_Q", "W_K", "W_V")
S6_FORMS = Literal["paper", "cancellation-free", "three-block"]
Transition = Annotated[
    Literal["linear", "squashed", "taylor", "taylor-3", "exponential"],
    typer.Option(
        help="Ā of the S6: linear as in the proofs; squashed as we restore Eq 6; Taylor polynomials of degree 2 (as in "
        "Section 4.1) or 3 (as in Tables 3 and 4); the true S6"
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    for name, command in COMMANDS.items():
        app.command(name)(command)


def polynomial_command(
    expression: Annotated[str, typer.Argument(help='such as "5*x1**2*x3**3 - x2 + 7"')],
    length: Length = 0,
    form: Annotated[S6_FORMS, typer.Option(help="circuit on the polynomial S6")] = "paper",
    arch: Annotated[Literal["s6", "mamba"], typer.Option(help="polynomial S6 (Theorem 2) or real Mamba blocks")] = "s6",
    factors: Annotated[
        Literal["2", "3"], typer.Option(help="mamba: factors per product; 3 needs fewer blocks and is fragile near 0")
    ] = "2",
    transition: Transition = "linear",
    samples: Samples = 50,
    seed: Seed = 0,
    out: Out = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """After paper C, Theorem 2: any multivariate polynomial of the inputs, at the last position."""
    if out is not None and arch == "s6":
        raise ValueError(f"--out {out}: no library ships the polynomial S6 of the proofs; save it with --arch mamba.")
    if transition != "linear" and arch == "mamba":
        raise ValueError(f"--transition {transition} is of the polynomial S6; real Mamba has its own: leave it out.")
    if form != "paper" and arch == "mamba":
        raise ValueError(f"--form {form} is a circuit on the polynomial S6, and --arch is mamba: leave it out.")
    if factors != "2" and arch == "s6":
        raise ValueError(f"--factors {factors} is of products on real Mamba: give --arch mamba, or leave it out.")
    with working("polynomial", quiet=as_json) as bars:
        check_out(out, force)
        from constructions.polynomials import polynomial, polynomial_mamba, polynomial_mamba_report
        from constructions.polynomials.polynomial_expression import parse_polynomial

        p = parse_polynomial(expression, length)
        if arch == "s6":
            built = polynomial.build(p, form, transition=transition)
            result = polynomial.report(built, samples, seed) | {"formula": polynomial.formula(p, form)}
        else:
            on_mamba = polynomial_mamba.build_on_mamba(p, "binary" if factors == "2" else "ternary")
            result = polynomial_mamba_report.report(on_mamba, samples, seed)
        made = polynomial_mamba.PolynomialCircuit(expression, length, factors, seed=seed)
        saved = checkpoint(made, out, force, bars)
    show(result | saved.told, as_json, good=saved.good and _good(result))


def monomial_command(
    variable: Annotated[int, typer.Option(min=1, help="i of x_i")] = 1,
    power: Annotated[int, typer.Option(min=1, max=1000, help="exponent")] = 3,
    coefficient: Annotated[str, typer.Option(help="a rational number")] = "1",
    length: Length = 0,
    position: Annotated[
        int, typer.Option(min=0, help="where the answer stands (0: the first place that can hold it)")
    ] = 0,
    transition: Transition = "linear",
    samples: Samples = 50,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """After paper C, Lemma 3: c·x_i^P at one position and 0 elsewhere, in three blocks of the polynomial S6."""
    with working("monomial", quiet=as_json):
        from constructions.polynomials import polynomial
        from constructions.polynomials.polynomial_expression import parse_polynomial

        c = parse_polynomial(coefficient)
        if c.degree:
            raise ValueError(f"--coefficient {coefficient}: it must be a number, such as -3 or 1/2")
        built = polynomial.build_monomial(variable, power, c.constant, length, position, transition)
        result = polynomial.report(built, samples, seed)
    show(result, as_json, good=_good(result))


def degree_gap_command(
    length: Annotated[int, typer.Option(min=1, max=64, help="longest sequence")] = 32,
    layers: Annotated[int, typer.Option(min=1, max=4, help="deepest attention stack to measure")] = 3,
    as_json: Json = False,
) -> None:
    """Paper C, Lemma 1: the degree of one S6 channel against that of stacked linear attention, measured."""
    with working("degree-gap", quiet=as_json):
        from constructions.polynomials import degree_gap

        result = degree_gap.report(length, layers)
    if as_json:
        show(result, as_json, good=result["agrees"])
        return
    console.print(result["theorem"])
    console.print(
        _table(
            "L",
            "degree of S6",
            "layers ⌈log3(L+2)⌉",
            "with gates ⌈log4(L+2)⌉",
            "on bits",
            "layers ⌈log3 L⌉",
            rows=result["s6"],
            keys=(
                "length",
                "s6_degree",
                "attention_layers",
                "gated_attention_layers",
                "binary_degree",
                "binary_attention_layers",
            ),
        )
    )
    console.print(
        _table(
            "attention layers", "3^N", "measured degree", rows=result["attention"], keys=("layers", "bound", "degree")
        )
    )
    verdict(result["agrees"])


def linear_attention_command(
    d: Annotated[int, typer.Option(min=1, help="width of the tokens")] = 4,
    d_k: Annotated[int, typer.Option(min=1, help="width of keys and queries")] = 4,
    d_v: Annotated[int, typer.Option(min=1, help="width of the values")] = 4,
    weights: Annotated[Path | None, typer.Option(help="an .npz file with W_Q, W_K (d_k × d) and W_V (d_v × d)")] = None,
    length: Annotated[int, typer.Option(min=1, help="positions")] = 32,
    seed: Seed = 0,
    out: Out = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """After paper C, Lemma 2: a causal linear-attention head as one S6 layer of d channels; weights given or random."""
    with working("linear-attention", quiet=as_json) as bars:
        check_out(out, force)
        from constructions.polynomials import linear_attention

        if weights is None:
            made = linear_attention.LinearAttention(d, d_k, d_v, length=length, seed=seed)
            made.check_sizes()  # before anything is drawn
            head = made.head
        else:
            head = _loaded(weights)
            made = linear_attention.LinearAttention.of(head, length)
            made.check_sizes()
        result = linear_attention.report(head, length, seed)
        saved = checkpoint(made, out, force, bars)
    targets = [result["polynomial_s6"], result["mamba"], result["mamba"]["given_weights"]]
    good = all(target["within_bound"] and target.get("exact_on_integers") is not False for target in targets)
    show(result | saved.told, as_json, good and saved.good)


def generalization_command(
    rho: Annotated[float, typer.Option(help="product of the norms of S_A, S_B, S_C and the classifier")] = 1.0,
    contraction: Annotated[float, typer.Option(help="K < 1 with |Ā| ≤ K")] = 0.9,
    margin: Annotated[float, typer.Option(help="margin of the empirical error")] = 1.0,
    samples: Annotated[int, typer.Option(help="training samples")] = 10_000,
    delta: Annotated[float, typer.Option(help="probability of failure")] = 0.05,
    channels: int = 64,
    states: int = 16,
    classes: int = 10,
    as_json: Json = False,
) -> None:
    """Paper C, Theorems 3 and 5: the generalisation bound, all of it reconstructed from the words of the paper."""
    from verify.generalization import generalization, measured_magnitude

    bound = generalization(rho, contraction, margin, samples, delta, channels, states, classes)
    outputs = measured_magnitude(rho, contraction, channels, states)
    told = asdict(bound) | {"total": bound.total, "reconstructed": list(bound.reconstructed), "magnitude": outputs}
    show(told, as_json, good=outputs["within_bound"])


def _good(result: dict[str, Any]) -> bool:
    """Proved (where that is claimed), sizes equal to the formulas, exact on integers, errors within their bound."""
    whole = result["exact_on_integers"]
    floats = [row for row in result.get("float", result).values() if isinstance(row, dict) and "within_bound" in row]
    formula = result.get("formula", {})
    same = all(result[name] == value for name, value in formula.items())
    return (
        result.get("proved", True)
        and same
        and whole["right"] == whole["inputs"]
        and all(row["within_bound"] for row in floats)
        and (len(floats) > 0 or result.get("proved", False))
    )


def _loaded(path: Path) -> linear_attention.Head:
    from constructions.polynomials import linear_attention

    arrays = read_arrays(path, _MATRICES, f"--weights {path}")
    wide = next((size for array in arrays for size in array.shape if size > linear_attention.MOST_WIDTH), None)
    if wide is not None:  # before anything is copied
        raise ValueError(
            f"--weights {path}: a matrix has {wide:,} rows or columns, and {linear_attention.MOST_WIDTH} are the most."
        )
    head = linear_attention.Head(*(np.asarray(array, dtype=float) for array in arrays))
    if not head.query.size or not head.value.size:
        raise ValueError(f"--weights {path}: a matrix is empty, and each of d, d_k and d_v must be 1 or more.")
    for name, matrix in zip(_MATRICES, (head.query, head.key, head.value), strict=True):
        wrong = np.argwhere(~(np.abs(matrix) <= linear_attention.LARGEST_WEIGHT))  # true of NaN too
        if len(wrong):
            i, j = wrong[0]
            raise ValueError(
                f"--weights {path}: {name}[{i}, {j}] is {matrix[i, j]:g}, and numbers from "
                f"{-linear_attention.LARGEST_WEIGHT:g} to {linear_attention.LARGEST_WEIGHT:g} are needed."
            )
    return head


def _table(*headers: str, rows: list[dict], keys: tuple[str, ...]) -> Table:
    table = Table(*headers)
    for row in rows:
        table.add_row(*(str(row[key]) for key in keys))
    return table


COMMANDS = {
    "polynomial": polynomial_command,
    "monomial": monomial_command,
    "degree-gap": degree_gap_command,
    "linear-attention": linear_attention_command,
    "generalization": generalization_command,
}
