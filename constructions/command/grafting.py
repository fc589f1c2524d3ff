"""Commands that put circuits into other models: graft (into a host), compose (several circuits into one model)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from compiler.digits import at_least, at_most
from constructions.command import requests
from constructions.command.display import console, in_lines, progress, quiet, say, working
from constructions.command.options import Json
from constructions.command.outputs import check_spared
from constructions.command.reporting import strict_json
from constructions.experiments.names import WHAT
from constructions.experiments.table_files import TableFiles

if TYPE_CHECKING:
    from compiler.compiled import Compiled
    from compiler.language.circuit import Circuit

Force = Annotated[bool, typer.Option(help="replace an earlier result")]
Samples = Annotated[int, typer.Option(min=1, max=10**6, help="sequences of the circuit that are run")]
_CIRCUIT = "a checkpoint directory, a construction's name, or FILE.py:NAME"


def register(app: typer.Typer) -> None:
    """Add the commands to the `construct` application."""
    app.command("graft")(graft)
    app.command("compose")(compose)


def graft(
    host: Annotated[Path, typer.Argument(help="a directory of a language model; docs/graft.md names the classes")],
    circuit: Annotated[str, typer.Argument(help=_CIRCUIT)],
    out: Annotated[
        Path, typer.Option(parser=requests.directory, metavar="PATH", help="directory of the grafted model")
    ],
    mode: Annotated[
        Literal["direct-sum", "branch"], typer.Option(help="side by side, or a module that reads tokens")
    ] = "direct-sum",
    tokens: Annotated[
        Path | None, typer.Option(help="JSON file: letters of the circuit that are tokens of the host, by id or name")
    ] = None,
    width: Annotated[
        int | None, typer.Option(min=1, help="d_model of the direct sum [default: 4^k of the host's]")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="mixers of a side branch [default: mamba]; a direct sum has the host's")
    ] = None,
    samples: Samples = 200,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Put a circuit into a language model, whose own logits stay what they were."""
    from compiler.graft.directory import check_directory

    check_directory(out, force)
    check_spared(out, {"HOST": host, "CIRCUIT": _read_of(circuit), "--tokens": tokens})
    if mode == "branch":
        _check_branch(tokens, width)
    elif target is not None:
        raise ValueError(f"--target {target}: a direct sum has the host's mixers; leave out --target.")
    with working("graft", quiet=as_json):
        if mode == "branch":
            mixers = target or "mamba"
            report, complaint = _branch(host, _circuit(circuit, mixers), mixers, out, token_map(tokens, host), force)
        else:
            report, complaint = _direct_sum(host, circuit, out, tokens, width, samples, force)
    if as_json:
        say(strict_json(report))
    else:
        _tell(report)
    if complaint is not None:
        say(complaint, err=True)
        raise typer.Exit(1)


def _direct_sum(
    host: Path, circuit: str, out: Path, tokens: Path | None, width: int | None, samples: int, force: bool
) -> tuple[dict[str, Any], str | None]:
    """The report, and what is wrong in a sentence."""
    import numpy as np

    from compiler.graft.directory import save
    from compiler.graft.families import family_of
    from compiler.graft.grafted import graft as grafted_of
    from compiler.graft.hosts import read_host
    from compiler.graft.measure import (
        PROBE_LENGTH,
        answers,
        broken_promise,
        host_difference,
        mixed_text,
        random_text,
        same_sums,
    )
    from compiler.graft.others import compared
    from compiler.graft.tokenizer import tokenizer_with_letters

    quiet()
    model = read_host(host)
    family = family_of(model.config.model_type)
    assert family is not None  # read_host has seen to it
    grafted = grafted_of(model, _circuit(circuit, family.target), token_map(tokens, host), width)
    vocab = model.get_input_embeddings().weight.shape[0]
    text = random_text(vocab, [place for place in grafted.ids.values() if place < vocab])
    difference, same = host_difference(model, grafted, text), same_sums(model, grafted, text[:1])
    rows = [*mixed_text(grafted, vocab, samples, PROBE_LENGTH, seed=0)]
    found = answers(grafted, rows)
    others = compared(rows, np.array([*grafted.ids.values()]), grafted.scores, grafted.scores)
    measured = {"host": asdict(difference) | {"same_sums": same}, "answers": asdict(found), "others": asdict(others)}
    complaint = broken_promise(grafted, difference, same)
    if found.wrong or found.intruding:
        complaint = "the grafted model gives wrong answers"
    if complaint is None:
        save(grafted, out, tokenizer_with_letters(host, grafted), measured, force)
    return grafted.report | {"measured": measured, "directory": _saved(out, complaint)}, complaint


def _saved(out: Path, complaint: str | None) -> str | None:
    """Where the model is: nowhere, if something is wrong with it."""
    return str(out) if complaint is None else None


def _check_branch(tokens: Path | None, width: int | None) -> None:
    if tokens is None:
        raise ValueError("a side branch reads tokens of the host; lead letters to them by --tokens MAP.json.")
    if width is not None:
        raise ValueError(f"--width {width}: a side branch leaves the host's width as it is; leave out --width.")


def _branch(
    host: Path, circuit: Circuit, target: str, out: Path, tokens: dict[str, int | list[int]], force: bool
) -> tuple[dict[str, Any], str | None]:
    """The report, and what is wrong in a sentence."""
    import torch

    from compiler.graft.arguments import ids_of
    from compiler.graft.directory import save_branch
    from compiler.graft.hosts import check_runs, opened
    from compiler.graft.measure import random_text
    from compiler.graft.others import beside_host
    from compiler.graft.side import branch

    quiet()
    model = opened(host)
    check_runs(model)
    joined = branch(model, circuit, tokens, where="both", target=target)
    letters = {place for places in tokens.values() for place in ids_of(places)}
    ids = random_text(model.get_input_embeddings().weight.shape[0], letters)
    with torch.no_grad():
        before, after = model(ids).logits.float(), joined(ids).logits.float()
    worst, size = float((before - after).abs().max()), float(before.abs().max())
    report = {
        "mode": "branch",
        "circuit": circuit.name,
        "host": {"class": type(model).__name__},
        "letters": tokens,
        "trainable": int(joined.write.numel() + joined.say.numel()),
        "measured": {
            "host": {"positions": ids.numel(), "worst": worst, "size": size},
            "others": asdict(beside_host(circuit, target)),
        },
    }
    complaint = None if worst == 0 else f"the host's logits changed by {worst:.3g}, and equal ones are promised"
    if complaint is None:
        save_branch(joined, host, out, report, force)
    return report | {"directory": _saved(out, complaint)}, complaint


def _read_of(what: str) -> Path:
    """The directory or the file that a circuit is read of; nothing is there for one that is built by its name."""
    file, _, _ = what.rpartition(":")
    return Path(file if file.endswith(".py") else what)


def _circuit(what: str, target: str = "mamba") -> Circuit:
    return _part(what, target, "float32").source


def _part(what: str, target: str, dtype: str) -> Compiled:
    from constructions.command.show import compiled_of

    return compiled_of(what, target, dtype, compared=True, over_tokens=True, among_others=True)


def _told_of(part: Compiled) -> dict[str, str]:
    """What a part of a composed circuit was compiled for."""
    return {"circuit": part.source.name, "target": part.context.target.name, "dtype": part.dtype}


def token_map(path: Path | None, host: Path) -> dict[str, Any]:
    """Letters and the id of the host's token, or for a list the ids; names are looked up in the host's tokenizer."""
    from compiler.artifact.json_files import strict_value
    from compiler.artifact.plain_files import text_of

    if path is None:
        return {}
    try:
        content = strict_value(text_of(path))
    except OSError as reason:
        raise ValueError(f"--tokens {path} cannot be read: {reason.strerror}.") from reason
    except (ValueError, RecursionError) as reason:
        raise ValueError(f"--tokens {path} is no JSON: {reason}.") from reason
    listed = (
        [v for value in content.values() for v in (value if isinstance(value, list) else [value])]
        if isinstance(content, dict)
        else [None]
    )
    if not all(type(v) in (int, str) for v in listed):
        raise ValueError(f'--tokens {path} must hold an object such as {{"v0": 17, "v1": "the"}}.')
    names: dict[str, int] = {}
    if any(isinstance(value, str) for value in listed):
        from compiler.graft.hosts import tokenizer_of

        names = tokenizer_of(host).get_vocab()
        missing = next((v for v in listed if isinstance(v, str) and v not in names), None)
        if missing is not None:
            raise ValueError(f"--tokens {path} names {missing!r}, which is no token of the host.")
    return {
        letter: [names.get(v, v) for v in value] if isinstance(value, list) else names.get(value, value)
        for letter, value in content.items()
    }


def _tell(report: dict[str, Any]) -> None:
    from compiler.graft.card import answers_said, others_said, ties_said

    report = in_lines(report) | {"directory": report["directory"]}
    host, measured = report["host"], report["measured"]
    worst = measured["host"]["worst"]
    equal = (
        "bit for bit equal" if worst == 0 else f"within {at_most(worst)} of values up to {measured['host']['size']:.3g}"
    )
    if report["mode"] == "branch":
        console.print(f"{report['circuit']} beside {host['class']}: {report['trainable']:,} numbers to train")
        console.print(f"host logits on {measured['host']['positions']} positions: {equal}")
        console.print("circuit: the letter that leads, after letters; where none leads, as at ties, it says nothing")
        console.print(f"beside the host: {others_said(measured['others'])}")
        _tell_place(report)
        return
    result = report["result"]
    console.print(
        f"{report['circuit']} in {host['class']}: {host['layers']} layers of width {host['d_model']} became "
        f"{result['layers']} of width {result['d_model']}"
    )
    apart = " (letters' own after letters apart)" if report["mapped"] else ""
    console.print(f"host logits on {measured['host']['positions']} positions{apart}: {equal}")
    word = "promised" if report["directory"] is None else "proved"  # of a promise that is not kept nothing is proved
    console.print(f"{word}: {report['host_promise']['proved']}")
    promise, found = report["circuit_promise"], measured["answers"]
    console.print(f"circuit: {answers_said(found)}")
    console.print(f"beside the host: {others_said(measured['others'])}")
    console.print(
        f"{promise['level']}: a letter that leads does so by {at_least(promise['least_lead'], 9)} at least, and "
        f"{at_most(promise['lead_needed'])} is needed; {ties_said(report)}"
    )
    for warning in report["warnings"]:
        console.print(f"note: {warning}", soft_wrap=True)
    _tell_place(report)


def _tell_place(report: dict[str, Any]) -> None:
    place = report["directory"]
    console.print("nothing is saved" if place is None else f"checkpoint: {place}")


def compose(
    circuits: Annotated[list[str], typer.Argument(help=f"two or more of: {_CIRCUIT}")],
    out: Annotated[Path, typer.Option(parser=requests.directory, metavar="PATH", help="checkpoint directory")],
    target: Annotated[str, typer.Option(help="what to compile for, whatever the parts were compiled for")] = "mamba",
    dtype: Annotated[
        str, typer.Option(help="arithmetic that the promise is made for, whatever that of the parts is")
    ] = "float32",
    samples: Samples = 200,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Several circuits in one checkpoint: the union of their tokens, shared lanes, one head; then verify it.

    The circuits are compiled anew, for --target in --dtype.
    """
    if len(circuits) < 2:
        raise ValueError(f"compose was given {len(circuits)} circuit, and at least two are needed.")
    with working("compose", quiet=as_json):
        from compiler.artifact.save import check_target
        from compiler.driver import compile
        from compiler.graft.card import others_said
        from compiler.graft.others import SEQUENCES, among_others
        from compiler.graft.union import read_by_several, union
        from constructions.checkpoints.saved import verify_checkpoint

        check_target(out, overwrite=force)
        for circuit in circuits:
            check_spared(out, {"CIRCUITS": _read_of(circuit)})
        parts = [_part(circuit, target, dtype) for circuit in circuits]
        names = _names([part.source.name for part in parts], circuits)
        whole = union(*(part.source for part in parts))
        shared = [
            {"circuits": [names[i] for i in readers], "tokens": tokens}
            for readers, tokens in read_by_several([part.source for part in parts]).items()
        ]
        compiled = compile(whole, target, dtype)
        compiled.save(out, overwrite=force)
        found = verify_checkpoint(out, samples=samples)
        measured = among_others(compiled, parts, min(samples, SEQUENCES))
        others = [{"circuit": name} | asdict(each) for name, each in zip(names, measured, strict=True)]
    for sentence in found.complaints:
        say(sentence, err=True)
    rows = {name: {"sequences": r.sequences, "bit_exact": r.bit_exact} for name, r in found.results.items()}
    if as_json:
        made = {"circuit": whole.name, "target": target, "dtype": dtype, "parts": [_told_of(part) for part in parts]}
        told = {"good": found.good, "results": rows, "read_by_several": shared, "among_others": others}
        told["directory"] = str(out)
        say(strict_json(made | told))
    else:
        for name, row in rows.items():
            console.print(f"{name}: {row['sequences']} sequences, bit-exact: {'yes' if row['bit_exact'] else 'no'}")
        console.print(f"promised: for {target} in {dtype}")
        for part in in_lines([_told_of(part) for part in parts]):
            if (part["target"], part["dtype"]) != (target, dtype):
                console.print(
                    f"note: {part['circuit']} was for {part['target']} in {part['dtype']} and is compiled anew; "
                    "--target and --dtype choose"
                )
        for each in shared:
            console.print(f"note: {_shared_said(each['circuits'], each['tokens'])}")
        for each in others:
            console.print(f"{each['circuit']}: {others_said(each)}")
        console.print(f"checkpoint: {out}; `construct prove {out}` says whether it is proved")
    if not found.good:
        raise typer.Exit(1)


def _names(names: list[str], given: list[str]) -> list[str]:
    """The circuits' names; of several that are called alike, with what was given."""
    pairs = zip(names, given, strict=True)
    return [name if names.count(name) == 1 else f"{name} ({what})" for name, what in pairs]


def _shared_said(circuits: list[str], tokens: list[str]) -> str:
    some = " ".join(tokens[:4]) + f" … ({len(tokens):,} in all)" * (len(tokens) > 4)
    return (
        f"{' and '.join(circuits)} read {some}: there their scores are added, and which letter leads need be none's "
        "answer; tokens of other names keep them apart"
    )


def reproduce(seed: int, plot: Path | None, files: TableFiles, as_json: bool) -> None:
    """Train and measure the models of `graft_experiment`; exit code 1 where grafting changed the host or forgot."""
    with progress(quiet=as_json) as bars:
        with bars.stage("start PyTorch"):
            from constructions.experiments import graft as experiment
        quiet()
        seeds = range(seed, seed + experiment.SEEDS)
        advance = bars("graft", 2 * experiment.SEEDS * experiment.STEPS)
        found = list(experiment.points(seeds, experiment.STEPS, advance))
    if plot is not None:
        from constructions.experiments.graft_plot import draw_learning

        draw_learning(found, plot)
    points = [asdict(point) for point in found]
    files.write_records(WHAT["graft"], points)
    if as_json:
        say(strict_json(points))
    else:
        table = Table("model", "seed", "steps", "nats a character", "right recalls")
        for point in found:
            table.add_row(
                point.model, str(point.seed), str(point.step), f"{point.text:.4f}", f"{100 * point.recall:.1f} %"
            )
        console.print(table)
    if not experiment.kept(found):
        say("grafting changed what the host says of its text, or the circuit's answers are wrong", err=True)
        raise typer.Exit(1)
