"""The `construct` command: build, verify, inspect.

Exit codes: 0 done and verified, 1 verification failed, 2 bad usage.
"""

from __future__ import annotations

import inspect as inspection
import json
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from compiler.artifact import CheckpointError, check_target
from compiler.artifact.manifest import manifest_content
from compiler.errors import CompileError
from constructions import artifact, display, saved
from constructions import reproduce as experiments
from constructions.construction import Construction
from constructions.polynomials import commands as commands_polynomial
from constructions.registry import CONSTRUCTIONS
from constructions.selectivity import commands as commands_selectivity
from verify.certificates import Violated

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Compile the constructions of papers to exact weights of real Mamba modules.",
)

Mode = Literal["auto", "exhaustive", "random", "none"]
Runtime = Literal["mamba-ssm", "transformers"]
Out = Annotated[Path | None, typer.Option(help="checkpoint directory [default: out/NAME]")]
Verify = Annotated[Mode, typer.Option(help="auto: every sequence if few, else random ones (fewer if huge)")]
Samples = Annotated[int, typer.Option(min=1, help="random sequences per task")]
Certify = Annotated[bool, typer.Option(help="prove the answers for every input, where there is a certificate")]
Json = Annotated[bool, typer.Option("--json", help="print one JSON object")]
Force = Annotated[bool, typer.Option(help="replace an earlier checkpoint at --out")]
Directory = Annotated[Path, typer.Argument(help="a checkpoint directory")]


def run(
    construction: Construction, out: Path | None, mode: Mode, samples: int, certify: bool, as_json: bool, force: bool
) -> None:
    """Build, verify, save and report one construction; raises typer.Exit(1) when the verification fails."""
    directory = out or Path("out") / construction.name
    check_target(directory, overwrite=force or out is None)
    built = artifact.build(construction)
    bare, stack = built.bare_stack(), built.stack()
    with display.progress(quiet=as_json) as bars:
        bare_results = artifact.verify(built, bare, mode, samples, construction.seed, bars, bare=True)
        results = artifact.verify(built, stack, mode, samples, construction.seed, bars) if stack else bare_results
    proof = artifact.certificate(built, bare) if certify else (None, "not asked for")
    good = artifact.passed(built, results) and artifact.passed(built, bare_results)
    saved = good and stack is not None
    if saved:
        artifact.save(built, results, directory, bare_results, proof, overwrite=force or out is None)
    report = artifact.report(built, results, str(directory) if saved else None, bare_results, proof)
    report["contrasts"] = artifact.exact_rate_of_contrasts(built, min(samples, 1000), construction.seed)
    if as_json:
        typer.echo(json.dumps(report))
    else:
        display.show_report(report)
    if not artifact.passed(built, results):
        _fail(built, stack or bare, results)
    if not good:
        _fail(built, bare, bare_results)


def _fail(built: artifact.Built, stack, results) -> None:
    for name, result in results.items():
        if not result.passed:
            typer.echo(display.failure_sentence(built, name, result), err=True)
            where = artifact.divergence(built, stack, result)
            typer.echo(
                where or "the model follows the circuit to the end: the circuit itself gives the wrong answer there",
                err=True,
            )
    raise typer.Exit(1)


@app.command("list")
def list_constructions(as_json: Json = False) -> None:
    """The constructions, and the theorem of each."""
    rows = [{"construction": name, "theorem": c.theorem, "summary": _summary(c)} for name, c in CONSTRUCTIONS.items()]
    for family in (commands_selectivity, commands_polynomial):
        rows += [
            {"construction": name, "theorem": family.PAPER, "summary": command.__doc__}
            for name, command in family.COMMANDS.items()
        ]
    if as_json:
        typer.echo(json.dumps(rows))
    else:
        display.show_list(rows)


@app.command()
def verify(
    directory: Directory,
    mode: Annotated[Mode, typer.Option("--verify", help="as for the constructions")] = "auto",
    samples: Samples = 1000,
    runtime: Annotated[
        Runtime, typer.Option(help="run mamba_ssm's modules or Hugging Face's own PyTorch code")
    ] = "mamba-ssm",
    as_json: Json = False,
) -> None:
    """Verify a saved checkpoint again, from its files alone."""
    with display.progress(quiet=as_json) as bars:
        found = saved.verify_checkpoint(directory, mode, samples, runtime == "transformers", bars)
    for sentence in found.complaints:
        typer.echo(sentence, err=True)
    if found.stack is None:
        raise typer.Exit(1)
    report = artifact.report(found.built, found.results, str(directory))
    if as_json:
        typer.echo(json.dumps(report | {"damage": found.damage}))
    else:
        display.show_report(report)
    if not artifact.passed(found.built, found.results):
        _fail(found.built, found.stack, found.results)
    if not found.good:
        raise typer.Exit(1)


@app.command()
def inspect(directory: Directory, as_json: Json = False) -> None:
    """Sizes, promise, and the names of lanes, channels and state columns of a checkpoint."""
    manifest = manifest_content(directory)
    if as_json:
        typer.echo(json.dumps(manifest))
    else:
        display.show_manifest(manifest)


@app.command()
def reproduce(
    experiment: Annotated[Literal["figure-2", "table-1", "figure-3"], typer.Argument(help="of paper A")],
    samples: Samples = 100,
    seed: Annotated[int, typer.Option(help="seed of the sequences")] = 0,
    as_json: Json = False,
) -> None:
    """An experiment of paper A with built weights: accuracy, paper's bound, built size, information bound."""
    rows = list(experiments.rows(experiment, samples, seed))
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows]))
    else:
        display.show_experiment(experiment, rows)
    if any(row.accuracy < 1 or not row.bit_exact for row in rows):
        raise typer.Exit(1)


def _summary(construction: type[Construction]) -> str:
    module = inspection.getmodule(construction)
    return (module.__doc__ or "").strip().splitlines()[0]


def _command(construction: type[Construction]):
    """A typer command whose options are the construction's fields and the common ones."""

    def command(**values: Any) -> None:
        common = {name: values.pop(name) for name in ("out", "verify", "samples", "certify", "as_json", "force")}
        run(
            construction(**values),
            common["out"],
            common["verify"],
            common["samples"],
            common["certify"],
            common["as_json"],
            common["force"],
        )

    hints = get_type_hints(construction)
    parameters = [
        inspection.Parameter(
            field.name,
            inspection.Parameter.KEYWORD_ONLY,
            default=inspection.Parameter.empty if field.default is MISSING else field.default,
            annotation=Annotated[hints[field.name], typer.Option(help=field.metadata.get("help", ""))],
        )
        for field in sorted(fields(construction), key=lambda field: field.kw_only)
    ]
    common = (
        ("out", Out, None),
        ("verify", Verify, "auto"),
        ("samples", Samples, 10_000),
        ("certify", Certify, True),
        ("as_json", Json, False),
        ("force", Force, False),
    )
    parameters += [
        inspection.Parameter(n, inspection.Parameter.KEYWORD_ONLY, default=d, annotation=a) for n, a, d in common
    ]
    command.__signature__ = inspection.Signature(parameters)
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__doc__ = f"{_summary(construction)}"
    return command


for _name, _construction in CONSTRUCTIONS.items():
    app.command(_name)(_command(_construction))
commands_selectivity.register(app)
commands_polynomial.register(app)


def main() -> None:
    """The entry point: refusals become one sentence per reason and exit code 2."""
    try:
        app()
    except Violated as error:
        typer.echo(f"the certificate fails: {error}", err=True)
        raise SystemExit(1) from None
    except (CompileError, CheckpointError, ValueError) as error:
        typer.echo(str(error), err=True)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
