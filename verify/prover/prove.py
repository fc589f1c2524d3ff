"""Search for the claims that prove a checkpoint: `certificate` returns them as the kernel reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from verify.kernel.certificate import prove, unexpected_told
from verify.kernel.claims import Refused, Unused
from verify.kernel.files import Checkpoint, read
from verify.kernel.floats import Unproved
from verify.kernel.proof import Proof, run
from verify.kernel.tasks import read_task
from verify.kernel.terms import Terms
from verify.prover.search import Claim, Search


def search(directory: Path) -> tuple[Proof, list[Claim]]:
    """What is proved of a checkpoint, and by which claims; Unproved where the search finds none."""
    with unexpected_told():
        return search_of(read(directory))


class _Read(list[Claim]):
    """Claims, and how many of them were read."""

    reached = 0

    def __iter__(self) -> Iterator[Claim]:
        for self.reached, claim in enumerate(super().__iter__(), start=1):
            yield claim


def needed(checkpoint: Checkpoint, claims: list[Claim]) -> tuple[Proof, list[Claim]]:
    """The proof without the claims that turn out to be used nowhere: a search reads facts that a proof does not. Where
    one of them is gone, another may say no more than was claimed before it: that one goes, too.
    """
    while True:
        read = _Read(claims)
        try:
            return prove(checkpoint, read), claims
        except Unused as idle:
            claims = without(claims, idle)
        except Refused:
            claims = claims[: read.reached - 1] + claims[read.reached :]


def without(claims: list[Claim], idle: Unused) -> list[Claim]:
    return [claim for i, claim in enumerate(claims, start=1) if i not in idle.claims]


def search_of(
    checkpoint: Checkpoint, source: type[Search] = Search, reach: int = 2, first: int = 0
) -> tuple[Proof, list[Claim]]:
    """The same of files that have been read: first with few kinds of claims, and with all where these do not do."""
    reasons = []
    for most in dict.fromkeys((first, reach)):
        terms = Terms(checkpoint.language, checkpoint.weights)
        found = source(terms, most, checkpoint.form)
        if checkpoint.task is not None:
            _, found.machines = read_task(checkpoint.circuit["alphabet"], checkpoint.task)
        try:
            try:
                run(checkpoint, terms, found)
            except Unused as idle:
                with suppress(Refused, Unproved):  # a walk that the search began reads facts that are not counted
                    return needed(checkpoint, without(found.claims, idle))
            return needed(checkpoint, found.claims)
        except Unproved as reason:
            reasons.append(reason)
    raise reasons[-1]
