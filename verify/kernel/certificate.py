"""A certificate: the claims of a proof in the order in which the kernel asks for them, as a JSON file."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from verify.kernel.claims import Refused
from verify.kernel.files import Checkpoint, read, read_json
from verify.kernel.floats import Unproved
from verify.kernel.proof import Proof, run
from verify.kernel.terms import Poly, Terms

NAME, VERSION = "certificate.json", 2  # 1: before states were followed and new atoms of circuit.json were compared
_UNEXPECTED = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    MemoryError,
)


def written(claims: Sequence[Any]) -> str:
    """The text of a certificate, a claim a line."""
    lines = ",\n".join(json.dumps(claim, separators=(",", ":")) for claim in claims)
    return f'{{"version": {VERSION}, "claims": [\n{lines}\n]}}\n'


def claims_of(path: Path) -> list[Any]:
    """The claims of a file; Unproved where it is no certificate."""
    content = read_json(path)
    version = content.get("version")
    if set(content) != {"version", "claims"} or type(version) is not int or not 1 <= version <= VERSION:
        raise Unproved(f"{path.name} is no certificate of version {VERSION}")
    if version < VERSION:
        told = f"has version {version}, and the kernel reads version {VERSION}, which has other kinds of claims"
        raise Unproved(f"{path.name} {told}; construct prove DIR --certificate FILE writes it anew")
    if type(content["claims"]) is not list:
        raise Unproved(f"{path.name} lists no claims")
    return content["claims"]


class Unexpected(Unproved):
    """The kernel came upon an entry of circuit.json that it did not expect, or has a fault of its own: says where."""

    def __init__(self, reason: Exception):
        last = traceback.extract_tb(reason.__traceback__)[-1]
        super().__init__(
            f"an entry of circuit.json is not of its kind, or the kernel is at fault: {reason!r:.200}, in {last.name} "
            f"({Path(last.filename).name}:{last.lineno})"
        )


@contextmanager
def unexpected_told() -> Iterator[None]:
    """What the kernel does not expect of a file is told, and proves nothing."""
    try:
        yield
    except _UNEXPECTED as reason:
        raise Unexpected(reason) from reason


class _Replay:
    """Claims one by one, in their order."""

    def __init__(self, claims: Sequence[Any]):
        self._left = iter(claims)

    def __call__(self, place: str, subjects: Sequence[Poly]) -> Any:
        return next(self._left, None)


def replay(directory: Path, claims: Sequence[Any]) -> Proof:
    """What these claims prove of a checkpoint, without any search. Unproved or Refused where they do not."""
    with unexpected_told():
        return prove(read(directory), claims)


def prove(checkpoint: Checkpoint, claims: Sequence[Any]) -> Proof:
    """The same of files that have been read."""
    proof = run(checkpoint, Terms(checkpoint.language), _Replay(claims))
    if proof.claims < len(claims):
        raise Refused(f"claim {proof.claims + 1} is used nowhere")
    return proof
