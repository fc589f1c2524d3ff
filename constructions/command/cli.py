"""The `construct` command: build, verify, inspect.

Exit codes: 0 done and verified, 1 verification failed (also where a file is damaged), 2 bad usage. What needs torch is
imported by the command that needs it: `construct list` and `--help` import none of it.
"""

from __future__ import annotations

import inspect as inspection
from collections.abc import Mapping
from dataclasses import MISSING, asdict, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperGroup

from compiler.artifact.errors import CheckpointError
from compiler.artifact.manifest import check_files, inputs_of, manifest_content, read_manifest
from compiler.artifact.records import answers_word, without_bound
from constructions.automata import commands as commands_automata
from constructions.command import (
    conformance,
    disguising,
    display,
    exporting,
    generation,
    grafting,
    look,
    panels,
    prove,
    requests,
    scoring,
    sensitivity,
    sharding,
)
from constructions.command.building import Mode, fail, run, runtime_name
from constructions.command.damaged import of_files
from constructions.command.help_texts import as_written
from constructions.command.options import Certify, Json, Samples, Scheduler, Shards, Workers
from constructions.command.reporting import strict_json
from constructions.construction import Construction
from constructions.experiments import command as commands_experiments
from constructions.gadgets import commands as commands_gadgets
from constructions.papers import EXPRESSIVITY, FREE_LUNCH, KROHN_RHODES, SELECTIVITY, TOKEN_SELECTION, is_told_no_more
from constructions.polynomials import commands as commands_polynomial
from constructions.registry import CONSTRUCTIONS
from constructions.selectivity import commands as commands_selectivity
from constructions.token_selection import lemma_commands
from constructions.truths import commands as commands_truths
from constructions.zoo import commands as commands_zoo

__all__ = ["app", "command_line"]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Compile the constructions of papers to exact weights of real Mamba modules.",
)

_MOST_COMPLAINTS = 20
_SAMPLES = 1000
Runtime = Literal["mamba-ssm", "transformers"]
Out = Annotated[
    Path | None,
    typer.Option(parser=requests.directory, metavar="PATH", help="checkpoint directory [default: out/NAME]"),
]
Verify = Annotated[Mode, typer.Option(help="auto: every sequence if few, else random ones (fewer if huge)")]
Force = Annotated[bool, typer.Option(help="replace an earlier checkpoint")]
Directory = Annotated[Path, typer.Argument(help="a checkpoint directory")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        try:
            version = metadata.version("mamba-constructions")
        except metadata.PackageNotFoundError:
            version = "(not installed: run from a checkout)"
        display.say(f"mamba-constructions {version}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="print the version")
    ] = False,
) -> None:
    pass


@app.command("list")
def list_constructions(as_json: Json = False) -> None:
    """The constructions, and what each builds where no option is given."""
    rows = [
        {"construction": f"{c.group} {name}".strip(), "theorem": c().statement(), "summary": _summary(c)}
        for name, c in CONSTRUCTIONS.items()
    ]
    for paper, family in (
        (SELECTIVITY, commands_selectivity),
        (EXPRESSIVITY, commands_polynomial),
        (FREE_LUNCH, commands_gadgets),
        (TOKEN_SELECTION, lemma_commands),
        (KROHN_RHODES, commands_automata),
    ):
        rows += [
            {"construction": name, "theorem": paper, "summary": _first_sentences(command.__doc__)}
            for name, command in family.COMMANDS.items()
        ]
    if as_json:
        display.say(strict_json(rows))
    else:
        display.show_list(rows)


@app.command()
def verify(
    directory: Directory,
    mode: Annotated[
        Mode, typer.Option("--verify", help="auto: every sequence if few, else random ones (fewer if huge)")
    ] = "auto",
    samples: Samples = _SAMPLES,
    runtime: Annotated[
        Runtime | None,
        typer.Option(
            help=(
                "mamba_ssm's modules or Hugging Face's own PyTorch code [default: "
                "mamba-ssm, or ours where that is missing]"
            )
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="run other sequences instead: an .npz file with inputs and labels, ids of tokens (-100: none), or "
            "zoology: the public benchmark's at the sizes of an mqar checkpoint"
        ),
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="run one sequence of --length in constant memory")] = False,
    length: Annotated[int | None, typer.Option(min=1, help="tokens of the sequence of --stream")] = None,
    key: disguising.KeyFile = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    table: Shards = None,
    as_json: Json = False,
) -> None:
    """Verify a saved checkpoint, or an export with gated MLPs (mamba-ssm-mlp), again, from its files alone."""
    if runtime == "mamba-ssm":
        _need_mamba_ssm()
    if stream or length is not None:
        asked = [None if mode == "auto" else mode, None if samples == _SAMPLES else samples]
        _stream(directory, stream, length, [runtime, data, key, workers, scheduler, table, *asked], as_json)
        return
    where = sharding.Where(workers, scheduler, table, quiet=as_json)
    if where.asked and any(other is not None for other in (runtime, data, key)):
        raise ValueError(
            "--workers and --scheduler run a checkpoint's own tasks: leave out --runtime, --data and --key."
        )
    with display.progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from constructions.checkpoints import artifact, guarantee, judged, saved, saved_export
            from verify.check import Verification
        if where.asked:
            sharding.check_shared(directory)
        form = bars.form(runtime or "checkpoint")
        verified = saved_export.verify_export if saved_export.is_export(directory) else saved.verify_checkpoint
        verified = disguising.verifier_of(directory, key) or verified
        with of_files(directory, exports=True):
            found = verified(directory, "none" if where.asked else mode, samples, runtime == "transformers", form, data)
        kept = None
        if where.asked:
            found, kept = sharding.verify_shared(directory, found, mode, samples, where, bars)
    for sentence in found.complaints[:_MOST_COMPLAINTS]:
        display.say(sentence, err=True)
    if len(found.complaints) > _MOST_COMPLAINTS:
        display.say(f"… and {len(found.complaints) - _MOST_COMPLAINTS:,} more differences", err=True)
    if found.stack is None:
        if as_json:
            error = " ".join(found.complaints[:1]) or f"{directory} holds no model that can be run."
            told = {"error": error, "complaints": found.complaints, "damage": found.damage, "exit_code": 1}
            display.say(strict_json(told | {"guarantee": None, "out": str(directory)}))
        raise typer.Exit(1)
    report = artifact.report(found.built, found.results, str(directory), None, found.proof, not found.disguised)
    report["runtime"] = "transformers" if runtime == "transformers" else runtime_name(found.built.compiled)
    if found.export:
        report |= {"export": found.export, "runtime": f"{runtime_name(found.built.compiled)}, MambaLMHeadModel"}
        report["sizes"] |= {"parameters": found.export["parameters"]}
        report["sizes"]["packaged"] |= {"layers": found.export["layers"]}
        report["state"]["language model"] = artifact.state_held(report["sizes"]["packaged"])
    if found.complaints:  # what is proved is so of the construction built again
        report |= {"complaints": found.complaints, "guarantee": None}
    if found.noise:
        report["noise"] = found.noise
    wrong = judged.judged(found.built, sum(found.results.values(), start=Verification()), found.proof)[1]
    if wrong:
        report["wrong"] = wrong
    if kept is not None:
        report["shards"] = kept.to_json()
    if as_json:
        display.say(strict_json(report | {"damage": found.damage}))
    else:
        display.show_report(report)
        if kept is not None and kept.sentence():
            display.console.print(kept.sentence(), soft_wrap=True, markup=False, highlight=False)
    if wrong:
        display.say(wrong, err=True)
    if no_task := guarantee.refused(found.proof):
        display.say(f"the task that construction.json states is refused: {no_task}", err=True)
    if not artifact.passed(found.built, found.results, found.proof):
        fail(found.built, found.stack, found.results, data is not None, not found.disguised)
    if not found.good:
        raise typer.Exit(1)


def _stream(directory: Path, stream: bool, length: int | None, others: list, as_json: bool) -> None:
    """`verify --stream`: chunks, steps and the whole sequence beside each other; exit code 1 where they differ."""
    if not stream or length is None:
        raise ValueError("--stream runs one sequence of --length tokens; give both.")
    if any(other is not None for other in others):
        raise ValueError(
            "--stream draws its own sequence for mamba_ssm's modules; leave out --runtime, --data, --key, --workers, "
            "--verify and --samples."
        )
    with display.progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from compiler.artifact.load import load
            from constructions.checkpoints import saved, saved_export, streamed
        if saved_export.is_export(directory):
            raise ValueError(f"{directory} is an export, which --stream does not run; leave out --stream and --length.")
        with bars.stage("compile"), of_files(directory):
            stack, (built, _) = load(directory), saved.same(directory)  # behind the beginning no circuit is run
        found = streamed.verify_streamed(built, stack, length, progress=bars(f"verify {length:,} tokens", length))
    if as_json:
        display.say(strict_json(asdict(found) | {"equal": found.failure is None}))
    else:
        display.say(found.sentence(), err=found.failure is not None)
    if found.failure is not None:
        raise typer.Exit(1)


@app.command()
def inspect(directory: Directory, as_json: Json = False) -> None:
    """Sizes, promise, and the names of lanes, channels and state columns, as they were recorded when it was saved.

    Exit code 1 where a file is another than the one that the record is of; --json has why as "damage". Other files in
    the directory, and whether the record is true, are looked at by construct verify.
    """
    with of_files(directory):
        manifest, damage = _as_said_now(manifest_content(directory)), None
    try:
        check_files(directory, read_manifest(directory), opens=False)
        manifest |= inputs_of(directory, manifest)
    except CheckpointError as reason:
        damage = str(reason)
    if as_json:
        display.say(strict_json(manifest | {"damage": damage}))
    else:
        display.show_manifest(manifest, damage)
    if damage is not None:
        display.say(f"{damage} What is recorded of promise and proof is of other files.", err=True)
        raise typer.Exit(1)


def _as_said_now(manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest whose `guarantee.answers` is what is said for people, and without what only earlier versions said: the
    bounds that no paper states."""
    if is_told_no_more(manifest.get("bound_source")):
        manifest = manifest | {"bound": {}, "bound_source": ""}
    if manifest.get("needed"):
        manifest = manifest | {"needed": without_bound(manifest["needed"])}
    guarantee = manifest.get("guarantee")
    if guarantee is None:
        return manifest
    return manifest | {"guarantee": guarantee | {"answers": answers_word(guarantee, manifest.get("verification"))}}


@app.command()
def show(
    what: Annotated[str, typer.Argument(help="a checkpoint directory, a construction's name, or FILE.py:NAME")],
    stage: Annotated[
        Literal["source", "core", "schedule", "blocks"] | None,
        typer.Option(help="which stage of the compiler [default: blocks]"),
    ] = None,
    weight: Annotated[str | None, typer.Option(help="explain one weight instead: TENSOR[i, j]")] = None,
    passes: Annotated[bool, typer.Option("--passes", help="what each pass changed, and what was tried")] = False,
    target: Annotated[str | None, typer.Option(help="what to compile FILE.py:NAME for [default: mamba]")] = None,
    dtype: Annotated[str | None, typer.Option(help="in which arithmetic to compile it [default: float32]")] = None,
) -> None:
    """What the compiler makes of a circuit, stage by stage, or what one weight means.

    Of a checkpoint circuit.json is compiled; the weights beside it are looked at with --weight alone.
    """
    with display.working("compile", quiet=False):
        from compiler.ir import printer
        from constructions.command.show import check_asked, compiled_of, explained, passes_of

        check_asked(what, {"--stage": stage, "--weight": weight, "--passes": passes}, target, dtype)
        goal = (target or "mamba", dtype or "float32")
        if passes:
            said, refused = passes_of(what, *goal)
        else:
            compiled, refused = compiled_of(what, *goal, compared=weight is not None), False
            said = printer.show(compiled, stage or "blocks") if weight is None else explained(compiled, weight)
    display.say(display.wrapped(said))
    if refused:
        raise typer.Exit(2)


def _need_mamba_ssm() -> None:
    """ImportError, with the command that installs it, where the real classes are asked for and missing."""
    from compiler.runtime import mamba_classes

    mamba_classes()


@app.command("install-mamba")
def install_mamba() -> None:
    """Install mamba-ssm without CUDA kernels beside the PyTorch that is there (on a GPU: see the README)."""
    from constructions.command.install_mamba import install

    install(say=display.say)


def _summary(construction: type[Construction]) -> str:
    """The first line of its module, or of itself where it shares a module with others."""
    told = construction if construction.group else inspection.getmodule(construction)
    return (told.__doc__ or "").strip().splitlines()[0]


def _first_sentences(doc: str | None) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join((doc or "").split("\n\n")[0].split())


def _option(metadata: Mapping[str, Any]) -> Any:
    """A parameter's option: its help text and, where it is not its own, its name."""
    name = metadata.get("option")
    return typer.Option(*([name] if name else []), help=metadata.get("help", ""))


def _command(construction: type[Construction], **given: Any):
    """A typer command whose options are the construction's fields, but those that are given, and the common ones."""

    def command(**values: Any) -> None:
        common = {name: values.pop(name) for name in ("out", "verify", "samples", "certify", "as_json", "force")}
        run(
            construction(**given, **values),
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
            annotation=Annotated[hints[field.name], _option(field.metadata)],
        )
        for field in sorted(fields(construction), key=lambda field: field.kw_only)
        if field.name not in given
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


class _Problems(TyperGroup):
    """The dynamic programs by name, and any DPProblem or LocalProblem of one's own as FILE.py:NAME."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if ".py:" not in cmd_name and not cmd_name.endswith(".py") and not cmd_name.startswith(":"):
            return super().get_command(ctx, cmd_name)
        from constructions.copy_dp.own_problem import own_of

        construction, problem = own_of(cmd_name)
        own = typer.Typer(add_completion=False)
        own.command(cmd_name)(_command(construction, given=problem))
        return as_written(typer.main.get_command(own))


dynamic_programs = typer.Typer(
    cls=_Problems,
    no_args_is_help=True,
    help="Dynamic programs whose table the model writes; FILE.py:NAME is a DPProblem or LocalProblem of your own.",
)
app.add_typer(dynamic_programs, name="dp")
_groups = {"": app, "dp": dynamic_programs}
for _name, _construction in CONSTRUCTIONS.items():
    _groups[_construction.group].command(_name)(_command(_construction))
commands_selectivity.register(app)
commands_polynomial.register(app)
commands_gadgets.register(app)
lemma_commands.register(app)
commands_truths.register(app)
commands_automata.register(app)
look.register(app)
sensitivity.register(app)
prove.register(app)
commands_experiments.register(app)
generation.register(app)
exporting.register(app)
grafting.register(app)
disguising.register(app)
scoring.register(app)
conformance.register(app)
commands_zoo.register(app)
panels.group(app)


@cache
def command_line() -> Any:
    """All of `app` with its options read: that takes a tenth of a second, and a process may run many commands."""
    return as_written(typer.main.get_command(app))
