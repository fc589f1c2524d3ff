"""Building one construction: compile, verify, prove, save, report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from constructions.command import display, requests
from constructions.command.reporting import strict_json
from constructions.construction import Construction

if TYPE_CHECKING:
    from compiler.compiled import Compiled
    from constructions.checkpoints.built import Built

Mode = Literal["auto", "exhaustive", "random", "none"]


def run(
    construction: Construction,
    out: Path | None,
    mode: Mode,
    samples: int,
    certify: bool,
    as_json: bool,
    force: bool,
    beside: Mapping[str, Any] | None = None,
) -> None:
    """Build, verify, save and report one construction; raises typer.Exit(1) when the verification fails.

    beside: what the object of --json tells more.
    """
    construction.check_effect()
    construction.check_sizes()  # before PyTorch is waited for
    if construction.target == "fnn+ssm":
        unused = {f"--out {out}": out is not None, "--force": force, "--no-certify": not certify}
        _run_network(construction, [option for option, given in unused.items() if given], mode, samples, as_json)
        return
    directory, overwrite = requests.checkpoint_directory(construction, out, force)
    with display.progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from compiler.artifact.save import check_target
            from constructions.checkpoints import artifact, guarantee, judged
            from constructions.checkpoints.built import build
            from verify.check import Verification
        check_target(directory, overwrite=overwrite)
        with bars.stage("compile"):
            built = build(construction)
        if built.model is None and out is not None:
            raise ValueError(
                f"--out {out}: Hugging Face has no {construction.target}, so there is no "
                "checkpoint to save; leave out --out."
            )
        bare_results, results = _verified(built, mode, samples, bars)
        with bars.stage("proof"):
            proof = guarantee.proof_of(built) if certify else guarantee.NOT_ASKED
        good = all(artifact.passed(built, found, proof) for found in (results, bare_results))
        saved = good and built.model is not None
        with bars.stage("save and report"):
            if saved:
                artifact.save(built, results, directory, bare_results, proof, overwrite=overwrite)
            report = artifact.report(built, results, str(directory) if saved else None, bare_results, proof)
        few = min(samples, 1000) if mode != "none" else 0
        others = artifact.contrasts(built, few, construction.seed, bars) if few else {}
        report["contrasts"] = {name: found.exact_sequences / found.sequences for name, found in others.items()}
        report["contrast_sequences"] = {name: found.sequences for name, found in others.items()}
        with bars.stage("generate"):
            report["generation"] = artifact.generations(built, directory) if saved and mode != "none" else []
    report["runtime"] = runtime_name(built.compiled)
    if as_json:
        display.say(strict_json(report | (beside or {})))
    else:
        display.show_report(report)
    for found, stack in ((results, lambda: built.stack() or built.bare_stack()), (bare_results, built.bare_stack)):
        if not artifact.passed(built, found, proof):
            _, wrong = judged.judged(built, sum(found.values(), start=Verification()), proof)
            if wrong:
                display.say(wrong, err=True)
            fail(built, stack(), found)
    wrong = [run for run in report["generation"] if run["wrong"]]
    for run in wrong:
        display.say(_other_chain(run), err=True)
    if wrong:
        raise typer.Exit(1)


def _other_chain(run: dict[str, Any]) -> str:
    """Of a chain that a runtime wrote, where the model was right when it was asked for one answer at a time."""
    return (
        f"written by {run['runtime']}: after {run['wrong']!r} it is not the chain that the oracle gives; where the "
        "answers above are right, the runtime computes otherwise, or the oracle answers otherwise at another call"
    )


def _verified(built: Built, mode: Mode, samples: int, bars: display.Bars) -> tuple[dict, dict]:
    """What is found of the bare form and of what is saved, or of the bare form again where nothing is.

    The modules live no longer than this: what follows needs the memory.
    """
    from constructions.checkpoints import artifact

    if mode == "none":
        return (artifact.not_run(built),) * 2
    with bars.stage("package"):
        bare, stack = built.bare_stack(), built.stack()
    forms = [artifact.Form(bare, bars.form("bare"), bare=True)]
    forms += [artifact.Form(stack, bars.form("language model"))] if stack is not None else []
    found = artifact.verify_forms(built, forms, mode, samples, built.construction.seed)
    return found[0], found[-1]


def _run_network(construction: Construction, of_files: list[str], mode: Mode, samples: int, as_json: bool) -> None:
    """The same on fnn+ssm, which has no checkpoint. of_files: options that were given and speak of one."""
    if of_files:
        raise ValueError(f"{of_files[0]}: no library ships fnn+ssm, so no checkpoint is saved or proved; leave it out.")
    with display.working("start PyTorch", quiet=as_json):
        from constructions.token_selection import network

    if not network.run(construction, mode, samples, as_json):
        display.say(f"{construction.name}: the network is not what was promised", err=True)
        raise typer.Exit(1)


def runtime_name(compiled: Compiled) -> str:
    """What the modules are that ran."""
    from importlib import metadata

    from compiler.runtime import has_mamba_ssm

    target = compiled.context.target
    if target.heads:
        return f"modules of ours with the equations of {target.name}; --runtime transformers runs the library's"
    if hasattr(target, "mixer"):
        return f"a module of ours, {target.mixer}, for no library ships it"
    if has_mamba_ssm():
        return f"mamba_ssm {metadata.version('mamba-ssm')}"
    return "modules of ours with the arithmetic of mamba_ssm, which is not installed"


def _circuits_own(built, result, of_data: bool) -> str:
    """Of a sequence on which the model does what the circuit does: whose the wrong answer is. of_data: whether the
    right ones are the labels of a user's file, which may be the ones that are wrong.
    """
    from compiler.artifact.prompts import outside

    _, tokens, position = result.failure
    beyond = outside(built.compiled.source.token_language, tokens[: position + 1])
    if beyond is not None:
        return f"the model follows the circuit to the end, and the promise says nothing of that sequence: {beyond}"
    if of_data:
        return (
            "the model follows the circuit to the end: the label of the data is another than the circuit's answer there"
        )
    return "the model follows the circuit to the end: the circuit itself gives the wrong answer there"


def fail(built, stack, results, of_data: bool = False, named: bool = True) -> None:
    """A sentence for each task that failed, and where; exit code 1. of_data: whether they are of a user's file; named:
    whether lanes of the stack stand where the circuit's do.
    """
    from constructions.checkpoints import artifact

    for name, result in results.items():
        if not result.passed:
            display.say(display.failure_sentence(built, name, result), err=True)
            where = artifact.divergence(built, stack, result, named)
            if not built.over_numbers:
                display.say(where or _circuits_own(built, result, of_data), err=True)
    raise typer.Exit(1)
