"""A certificate: the claims of a proof in the order in which the kernel asks for them, as a JSON file."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from verify.kernel.claims import Refused, entries
from verify.kernel.files import Checkpoint, read, read_json
from verify.kernel.floats import Unproved
from verify.kernel.proof import Proof, run
from verify.kernel.terms import Terms

NAME, VERSION = "certificate.json", 4  # 2: before texts that ask were named; 3: before tables were named by their bytes
_UNEXPECTED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError, MemoryError)


def written(claims: Sequence[Any]) -> str:
    """The text of a certificate, a claim a line."""
    lines = ",\n".join(json.dumps(claim, separators=(",", ":")) for claim in claims)
    return f'{{"version": {VERSION}, "claims": [\n{lines}\n]}}\n'


def claims_of(path: Path) -> list[Any]:
    """The claims of a file; Unproved where it is no certificate."""
    try:
        content = read_json(path)
    except OSError as reason:
        raise Unproved(f"{path.name:.200} cannot be read: {reason.strerror}") from reason
    version = content.get("version")
    if set(content) != {"version", "claims"} or type(version) is not int or version != VERSION:
        told = f"is no certificate of version {VERSION}; construct prove DIR --certificate FILE writes one"
        raise Unproved(f"{path.name} {told}")
    return entries(content["claims"])


@contextmanager
def unexpected_told() -> Iterator[None]:
    """What the kernel does not expect of a file, or a fault of its own, is told with its place, and proves nothing."""
    try:
        yield
    except _UNEXPECTED as reason:
        last = traceback.extract_tb(reason.__traceback__)[-1]
        told = f"{reason!r:.200}, in {last.name} ({Path(last.filename).name}:{last.lineno})"
        raise Unproved(f"an entry of a file is not of its kind, or the kernel is at fault: {told}") from reason


def replay(directory: Path, claims: Sequence[Any]) -> Proof:
    """What these claims prove of a checkpoint, without any search. Unproved or Refused where they do not."""
    with unexpected_told():
        return prove(read(directory), claims)


def prove(checkpoint: Checkpoint, claims: Sequence[Any]) -> Proof:
    """The same of files that have been read."""
    left = iter(claims)
    proof = run(checkpoint, Terms(checkpoint.language, checkpoint.weights), lambda place, subjects: next(left, None))
    if proof.claims < len(claims):
        raise Refused(f"claim {proof.claims + 1} is used nowhere")
    return proof
