"""`construct conformance`: kernels and runtimes of others against vectors and models that are known exactly."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compiler.artifact.plain_files import write_whole
from constructions.command.conformance_shown import show
from constructions.command.display import console, say, working
from constructions.command.ending import no_silent_end
from constructions.command.options import Json, Scheduler, Workers
from constructions.command.outputs import JUNIT, VECTORS, check_apart, check_kind, check_outside
from constructions.command.reporting import strict_json
from constructions.command.sharding import Where
from constructions.command.stdout import leave_stdout, stdout_lent, told

if TYPE_CHECKING:
    from conformance.models.case import ModelCase
    from conformance.report import Tested

_REASONS = 3  # why no case of a kernel was run


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("conformance")(conformance)


def conformance(
    kernel: Annotated[
        str | None, typer.Option(metavar="MODULE:FUNCTION", help="a kernel of yours; FILE.py:function")
    ] = None,
    operation: Annotated[str | None, typer.Option(help="what the kernel computes [default: by its arguments]")] = None,
    runtime: Annotated[str | None, typer.Option(help="ours, transformers, mamba-ssm, mamba-ssm-cuda, …")] = None,
    checkpoint_dir: Annotated[
        Path | None, typer.Option(help="a checkpoint of ours, or models that --out has written [default: made now]")
    ] = None,
    model: Annotated[list[str] | None, typer.Option(help="run the runtime on this model only, by its name")] = None,
    out: Annotated[Path | None, typer.Option(help="write vectors and models there for a test suite")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="write JUnit XML there, for a CI service")] = None,
    faults: Annotated[bool, typer.Option("--faults", help="try the suite on kernels with injected bugs")] = False,
    device: Annotated[str, typer.Option(help="where the kernel's operands are put")] = "cpu",
    full: Annotated[bool, typer.Option("--full", help="long sequences and wide layers as well")] = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
) -> None:
    """Test a kernel, or a runtime, against results that are known bit for bit."""
    if junit is not None:
        _check_junit(junit, faults or not (kernel or runtime or checkpoint_dir))
        check_apart({"--out": out, "--junit": junit})
        junit = junit.absolute()  # a kernel may go to another folder
    with _error_reported(junit):
        if out is not None:
            check_outside(out / "models", "--out")
            _check_vectors(out / "vectors")
            _check_models(out / "models", full)
        if operation and not kernel:
            raise ValueError(f"--operation {operation} says what a kernel computes: pass --kernel as well.")
        if device != "cpu" and not kernel:
            raise ValueError(f"--device {device} says where the operands of a kernel are put: pass --kernel as well.")
        if model and not (runtime or checkpoint_dir):
            raise ValueError(f"--model {model[0]} is a model to run: pass --runtime or --checkpoint-dir as well.")
        if not (kernel or runtime or checkpoint_dir or out or faults):
            raise ValueError(
                "conformance was given nothing to do: pass --kernel, --runtime, --checkpoint-dir or --out."
            )
        if kernel and (faults or (checkpoint_dir and not runtime)):
            other = "--faults" if faults else f"--checkpoint-dir {checkpoint_dir}"
            raise ValueError(f"--kernel {kernel} and {other} are two runs: leave one of them out.")
        _check_names(operation, runtime)
        if model and not checkpoint_dir:
            _check_asked(model, full)
        where = Where(workers, scheduler, quiet=as_json)
        if where.asked and (checkpoint_dir or not (faults or runtime)):
            raise ValueError(
                "--workers shares out the bugs of --faults, or the models made for --runtime: pass one of them."
            )
        if kernel:
            _check_device(device)
        if faults:
            _faults(where, as_json)
            return
        if kernel and checkpoint_dir:
            checkpoint_dir = checkpoint_dir.absolute()
        with (
            working("conformance", quiet=as_json, lends=False),
            stdout_lent(aside=as_json, for_good=True),
            no_silent_end(partial(_no_verdict, junit)),
            ExitStack() as noted,
        ):
            from conformance.interrupt import watched
            from conformance.report import try_kernel, try_runtime, write

            noted.enter_context(watched())
            if out is not None:
                vectors, models = write(out, full)
            tested: list[Tested] = []
            version = None
            if kernel:
                from conformance.kernel.named import kernel_named

                tested += try_kernel(kernel_named(kernel, operation, device), full)
                _check_run(kernel, tested[0])
            if runtime or (checkpoint_dir and not kernel):
                from conformance.runtimes import known

                found = known(runtime or "ours")
                version = found.version
                made = None
                if found.models is not None and not where.asked:
                    made = _models(checkpoint_dir, full, model or ())
                for each in found.kernels if runtime and not model else ():
                    tested += try_kernel(each, full)
                if found.models is not None and made is not None:
                    tested.append(try_runtime(found.models, made))
                elif found.models is not None:
                    tested.append(_shared(found.models.name, runtime or "", full, model or (), where))
    report = {"runtime": runtime, "version": version, "good": all(t.good for t in tested)}
    if out is not None:
        report |= {"out": str(out), "vectors": vectors, "models": models}
    with _said_of("the report cannot be printed") as printed:
        _check_readable()
        if as_json:
            told(strict_json(report | {"tested": [each.to_json() for each in tested]}))
        else:
            if out is not None:
                where_they_are = f"{vectors} cases in {out / 'vectors'}, {models} models in {out / 'models'}"
                console.print(where_they_are, soft_wrap=True)
            show(tested, version)
        sys.stdout.flush()
    with _said_of(f"--junit {junit} cannot be written") as written:
        if junit is not None:
            from conformance.junit import junit as document

            write_whole(junit, document(tested))
    if not report["good"]:
        raise typer.Exit(1)
    if printed or written:
        raise typer.Exit(2)


@contextmanager
def _said_of(what: str) -> Iterator[list[str]]:
    """Holds a sentence where a report could not be given, which is said: the verdict stands, and so does its code."""
    failed: list[str] = []
    try:
        yield failed
    except (OSError, ValueError) as error:
        failed.append(f"{what}: {getattr(error, 'strerror', None) or error}")
        with suppress(OSError):
            os.write(2, f"{failed[0]}\n".encode(errors="replace"))
        if what.startswith("the report"):
            leave_stdout()


def _check_readable() -> None:
    """OSError where the standard output was closed before the program began (`>&-`): it has one then that nobody reads,
    and exit code 0 would be a verdict.
    """
    if sys.__stdout__ is None:
        raise OSError("the standard output is closed")


def _no_verdict(junit: Path | None) -> int:
    """A CI service would take 0 for a verdict: the exit code instead."""
    why = "the kernel has ended this process with os._exit(0): there is no verdict"
    os.write(2, f"{why}\n".encode())
    if junit is not None:
        from conformance.junit import no_verdict

        with suppress(OSError):
            write_whole(junit, no_verdict(why))
    return 1


def _check_names(operation: str | None, runtime: str | None) -> None:
    """ValueError for a name that is none, before anything is run."""
    if operation:
        from conformance.kernel.named import check_operation

        check_operation(operation)
    if runtime:
        from conformance.runtimes import check_name

        check_name(runtime)


def _check_vectors(directory: Path) -> None:
    """ValueError where a file of somebody stands in place of one of vectors."""
    from conformance.cases import OPERATIONS

    for op in OPERATIONS:
        path = directory / f"{op}.safetensors"
        check_kind(path, "--out", VECTORS)


def _check_models(directory: Path, full: bool) -> None:
    """ValueError where something of somebody's stands in place of a model."""
    from conformance.models.build import names
    from conformance.models.earlier import check_models

    check_models(directory, names(full))


@contextmanager
def _error_reported(junit: Path | None) -> Iterator[None]:
    """Until there is a verdict the file holds an error, which says why there is none: whatever ends this run, a CI
    service reads no report of an earlier one for it.
    """
    if junit is None:
        yield
        return
    from conformance.junit import no_verdict

    own = os.getpid()
    write_whole(junit, no_verdict("the run has not come to its end"))
    try:
        yield
    except BaseException as error:
        if os.getpid() == own:  # and no child process of a kernel
            write_whole(junit, no_verdict(str(error) or type(error).__name__))
        raise


def _check_asked(model: Sequence[str], full: bool) -> None:
    """ValueError for a name of no model that is made now, before anything is run or sent to workers."""
    from conformance.models.build import check_names

    check_names(model, full)


def _check_device(device: str) -> None:
    """ValueError where no tensor can be put there: not one case would run."""
    import torch

    try:
        torch.zeros(1, device=device).cpu()
    except Exception as error:
        why = str(error).strip().splitlines()
        raise ValueError(f"--device {device!r} cannot be used: {why[0] if why else type(error).__name__}") from error


def _check_junit(path: Path, nothing_runs: bool) -> None:
    """ValueError where nothing will be run, or the file cannot be written: before anything is run."""
    if nothing_runs:
        raise ValueError(
            f"--junit {path} tells how cases came out: pass --kernel, --runtime or --checkpoint-dir as well."
        )
    if not path.parent.is_dir():
        raise ValueError(f"--junit {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise ValueError(f"--junit {path} is a folder: name a file in it.")
    check_kind(path, "--junit", JUNIT)
    check_outside(path, "--junit")


def _check_run(kernel: str, exact: Tested) -> None:
    """ValueError where a kernel takes too little for any case: nothing was tried, so nothing is right or wrong."""
    reasons = exact.skipped()
    if sum(count for _, count in reasons) == len(exact.findings):
        why = "; ".join(f"{count} as {reason}" for reason, count in reasons[:_REASONS])
        raise ValueError(
            f"--kernel {kernel} was run on none of {len(exact.findings)} cases ({why}), nor on one of usual sizes with "
            "none, one or all of its options, nor, on the first of these, with several rows, views, other taps or a "
            "state: wrap it in a function of the arguments and sizes that are asked for."
        )


def _shared(name: str, runtime: str, full: bool, only: Sequence[str], where: Where) -> Tested:
    """A runtime on models, each of which is made and run by one of many processes."""
    from conformance.findings import Finding
    from conformance.models.build import names
    from conformance.report import Tested
    from constructions.shards.shard import Shard

    asked = {"runtime": runtime, "full": full}
    job = "conformance.report:findings_on"
    shards = [Shard(model, 0, 1, job, asked | {"model": model}) for model in only or names(full)]
    found = {shard.part: rows for shard, rows in where.results(shards)}
    return Tested(name, "models", [Finding(**row) for shard in shards for row in found[shard.part]])


def _models(directory: Path | None, full: bool, only: Sequence[str]) -> list[ModelCase]:
    """One checkpoint of ours on its own tasks, or what --out has written, or models made now."""
    from conformance.report import models_in

    if directory is None or not (directory / "config.json").is_file():
        return models_in(directory, full, only=only)
    if only:
        raise ValueError(
            f"--model {only[0]} is one of several models, and --checkpoint-dir {directory} is one: leave it out."
        )
    import numpy as np

    from conformance.models.build import ROWS, SHORT, case_of
    from constructions.checkpoints.saved import same

    built = same(directory)[0]  # a runtime is held to the circuit, and so the weights must be its own
    if built.over_numbers or built.model is None:
        raise ValueError(f"--checkpoint-dir {directory} is no language model over tokens, which runtimes are tried on.")
    drawn = built.construction.tasks()[0].draw(np.random.default_rng(built.construction.seed), ROWS)
    tokens = drawn.tokens[:, : None if full else SHORT]
    return [case_of(directory, built.compiled, tokens, "the construction's own sequences")]


def _faults(where: Where, as_json: bool) -> None:
    """The table of injected bugs; exit code 1 where one is not caught, or not where it should be."""
    with working("faults", quiet=as_json) as bars:
        from conformance.faults.table import Row, bugs, row, text
        from constructions.shards.shard import Shard

        advance = bars("injected bugs", len(bugs()))
        found: dict[tuple[str, str], Row] = {}
        if where.asked:
            job = "conformance.faults.table:row_content"
            shards = [Shard(f"{op}: {bug}", 0, 1, job, {"op": op, "bug": bug}) for op, bug in bugs()]
            for shard, fields in where.results(shards):
                found[shard.arguments["op"], shard.arguments["bug"]] = Row(**fields)
                advance(1)
        else:
            for bug in bugs():
                found[bug] = row(*bug)
                advance(1)
        rows = [found[bug] for bug in bugs()]
    with _said_of("the report cannot be printed") as printed:
        _check_readable()
        say(strict_json([row.to_json() for row in rows]) if as_json else text(rows))
        sys.stdout.flush()
    if not all(row.right for row in rows):
        raise typer.Exit(1)
    if printed:
        raise typer.Exit(2)
