"""`construct prove DIR`: run the checker on a checkpoint and write its verdict beside the weights.

A model over numbers, which the checker does not read, is proved by its construction's certificate where it has one. The
checker is a program of its own (`python -m verify.checker`); this command only keeps what it says. proof.json names
the files it speaks of by their hashes. It is a record, not evidence: who wants to know runs the checker.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from compiler.artifact.errors import CheckpointError
from compiler.artifact.json_files import strict_value
from compiler.artifact.manifest import file_hash, is_disguised, manifest_content
from compiler.artifact.plain_files import check_replaced, text_of, write_whole
from compiler.language.arguments import counted
from constructions.command.certificates import CertificateFile, certify, check_place_of, line
from constructions.command.damaged import of_files
from constructions.command.disguising import KeyFile
from constructions.command.display import say, working
from constructions.command.numbers import over_numbers
from constructions.command.options import Json
from constructions.command.outputs import check_apart
from constructions.command.reporting import strict_json

PROOF = "proof.json"
LARGEST_REFUSED = 1 << 28  # bytes of a file that is hashed although the checkpoint is not accepted
Verdict = tuple[bool, dict[str, Any], list[str]]  # (accepted, what a program reads, lines for people)
_BEFORE = ("model.safetensors", "config.json", "circuit.json", "construction.json")  # in records of earlier versions
SPOKEN_OF = (*_BEFORE, "generation_config.json", "tokenizer.json", "tokenizer_config.json")


def register(app: typer.Typer) -> None:
    """Add the command to the `construct` application."""
    app.command("prove")(prove)


def prove(
    directory: Annotated[Path, typer.Argument(help="a checkpoint directory")],
    key: KeyFile = None,
    certificate: CertificateFile = None,
    as_json: Json = False,
) -> None:
    """Prove a checkpoint from its files alone, for every input of its language, and write proof.json into it."""
    check_record(directory / PROOF)  # all before the search, which may take long
    if certificate is not None:
        check_place_of(certificate)
        check_apart({"--certificate": certificate, "the record": directory / PROOF})
    with working("prove", quiet=as_json):
        accepted, verdict, lines = _proved(directory, key)
        if certificate is not None:
            kernel = certify(directory, certificate)
            accepted, verdict = accepted and kernel["proved"], verdict | {"kernel": kernel}
            lines = [*lines, line(kernel, directory, certificate)]
    record = verdict | {"files": hashes(directory, accepted)}
    say(strict_json(record) if as_json else "\n".join(lines))
    try:
        write_record(directory, record)
    except OSError as reason:  # the verdict stands, whoever owns the directory
        say(f"{directory / PROOF} is not written: {(reason.strerror or str(reason)).lower()}", err=True)
    if not accepted:
        raise typer.Exit(1)


def hashes(directory: Path, accepted: bool) -> dict[str, str | None]:
    """The SHA-256 of the files that a verdict speaks of."""
    spoken_of = {name: directory / name for name in SPOKEN_OF}
    return {name: file_hash(path) if _worth_hashing(path, accepted) else None for name, path in spoken_of.items()}


def check_record(path: Path) -> None:
    """ValueError where a file stands there that is no record of an earlier proof: it would be lost."""
    check_replaced(path, str(path))
    if path.exists() and not _is_record(path):
        raise ValueError(f"{path} is there already, and no record of construct prove: it would be lost. Move it away.")


def _is_record(path: Path) -> bool:
    """Whether it is empty, or, byte for byte, what `write_record` writes of such content."""
    try:
        text = text_of(path)
        record = strict_value(text) if text else None
    except (OSError, ValueError, RecursionError):
        return False
    if record is None:
        return not text
    if not isinstance(record, dict) or type(record.get("accepted")) is not bool:
        return False
    files = record.get("files")
    return isinstance(files, dict) and set(files) in (set(SPOKEN_OF), set(_BEFORE)) and text == _text(record)


def _text(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write_record(directory: Path, record: dict[str, Any]) -> None:
    """proof.json, whole or not at all."""
    write_whole(directory / PROOF, _text(record))


def _proved(directory: Path, key: Path | None) -> Verdict:
    """By the checker, by a certificate, or by the checker on what a key gives back."""
    if key is not None:
        return _undisguised(directory, key)
    with of_files(directory):
        return _as_it_stands(directory)


def _as_it_stands(directory: Path) -> Verdict:
    if is_disguised(directory) or not over_numbers(directory):
        return _over_tokens(directory)
    return _over_numbers(directory)


def _undisguised(directory: Path, key: Path) -> Verdict:
    """The checker's, of the plain checkpoint that the key gives back, of the directory as it stands, and of noise."""
    from compiler.disguise.directory import check_disguised
    from compiler.disguise.key import read_key
    from constructions.checkpoints.disguised import prove_plain

    check_disguised(directory)
    opened = read_key(key)
    try:
        found = prove_plain(directory, opened)
    except CheckpointError as reason:
        return (
            False,
            {"version": 1, "accepted": False, "disguise": str(reason)},
            [f"not proved with --key {key}: {reason}"],
        )
    told = f"{key} gives a plain checkpoint back, of which the disguised one is made bit for bit."
    without = "" if found.noise is None else ", without its noise"
    said = [f"{told} Of the plain one:", *found.verdict.lines()]
    said += [f"Of the disguised one as it stands{without}:", *found.standing.lines()]
    if found.noise is not None:
        lead = found.noise.get("lead")
        proved = f"not proved: {found.noise['unproved']}" if lead is None else f"every right letter leads by {lead}"
        said.append(f"with the noise in its weights: {proved}")
    verdict = found.verdict.to_json() | {"accepted": found.accepted, "disguise": told, "noise": found.noise}
    return found.accepted, verdict | {"disguised": found.standing.to_json()}, said


def _worth_hashing(path: Path, accepted: bool) -> bool:
    """Whether a file is there, and was read: one that is refused for its size would be read only to be named."""
    return path.is_file() and (accepted or path.stat().st_size <= LARGEST_REFUSED)


def _over_tokens(directory: Path) -> Verdict:
    """The checker's."""
    from verify.checker.check import check

    found = check(directory)
    return found.accepted, found.to_json(), [*found.lines(), *_only_tested(directory, found.task)]


def _only_tested(directory: Path, task: str | None) -> Iterator[str]:
    """Of an author's function, which nothing proves: how its answers are known, and what would be proved."""
    from verify.checker.check import UNSTATED

    if task != UNSTATED or is_disguised(directory):
        return
    if answers := manifest_content(directory).get("answers"):
        yield (
            f"its author's function {answers['function']} answers {counted(answers['questions'], 'question')}, which "
            "construct verify asks; what verify.Automaton, Lookup or Counted says can be proved"
        )


def _over_numbers(directory: Path) -> Verdict:
    """The certificate's, from the tensors as they are saved, of a circuit and a promise that the construction has."""
    from compiler.artifact.artifact import Artifact
    from compiler.artifact.compare import statement_differences, weight_differences
    from compiler.artifact.files import WEIGHTS
    from compiler.artifact.load import load
    from constructions.checkpoints.guarantee import numbers_proof, without_tests
    from constructions.checkpoints.saved import rebuild
    from verify.certificates import Violated

    built, stack = rebuild(directory), load(directory, sealed=False)
    try:
        for sentence in statement_differences(directory, Artifact(built.compiled, built.model)):
            raise Violated(sentence)
        certificate, said = numbers_proof(built, stack)
        for sentence in weight_differences(directory / WEIGHTS, built.model.tensors) if certificate is None else ():
            raise Violated(f"{sentence} from what its circuit compiles to")
    except Violated as reason:
        certificate, said = None, f"not proved: {reason}"
    else:
        if certificate is None:
            raise ValueError(f"{directory} holds a model over numbers: {without_tests(said)}.")
    verdict = {"version": 1, "accepted": certificate is not None, "certificate": certificate, "proof": said}
    return certificate is not None, verdict, [said]
