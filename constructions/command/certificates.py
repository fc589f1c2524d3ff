"""`construct prove DIR --certificate FILE`: the claims by which the small kernel proves a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from compiler.artifact.plain_files import write_whole
from constructions.command.outputs import file_path

CertificateFile = Annotated[
    Path | None, typer.Option("--certificate", help="also write the claims by which the small kernel proves it")
]


def check_place_of(file: Path) -> None:
    """ValueError where no certificate can be written there, or where something else stands there."""
    file_path(file, "--certificate")
    if file.exists() and not _is_certificate(file):
        raise ValueError(f"--certificate {file} exists and is no certificate; choose another file.")


def certify(directory: Path, file: Path) -> dict[str, Any]:
    """Search for claims, and keep those that prove the checkpoint when they are replayed without the search.

    The object says whether they do, how many there are, and otherwise why not; no file is written then.
    """
    from verify.kernel.certificate import replay, written
    from verify.kernel.claims import Refused
    from verify.kernel.floats import Unproved
    from verify.prover.prove import search

    try:
        text = written(search(directory)[1])
        proof = replay(directory, json.loads(text)["claims"])
    except (Unproved, Refused) as reason:
        return {"proved": False, "reason": str(reason), "claims": None, "task": None}
    write_whole(file, text)
    return {"proved": True, "reason": None, "claims": proof.claims, "task": proof.task}


def _is_certificate(file: Path) -> bool:
    """Whether it is, byte for byte, what `written` makes of such claims, in this version or an earlier one."""
    from verify.kernel.certificate import VERSION, written
    from verify.kernel.files import read_json
    from verify.kernel.floats import Unproved

    try:
        content = read_json(file)
    except Unproved:
        return False
    version, claims = content.get("version"), content.get("claims")
    if type(version) is not int or not 1 <= version <= VERSION or not isinstance(claims, list) or not claims:
        return False
    if not all(isinstance(claim, list) and claim and isinstance(claim[0], str) for claim in claims):
        return False
    text = written(claims).replace(f'"version": {VERSION}', f'"version": {version}', 1)
    return file.read_bytes() == text.encode()


def line(found: dict[str, Any], directory: Path, file: Path) -> str:
    """The same for people."""
    if not found["proved"]:
        return f"no certificate: the small kernel does not prove it: {found['reason']}"
    return f"certificate: {found['claims']} claims in {file}; python -m verify.kernel {directory} {file} replays them"
