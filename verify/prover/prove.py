"""Search for the claims that prove a checkpoint: `certificate` returns them as the kernel reads them."""

from __future__ import annotations

from pathlib import Path

from verify.kernel.files import Checkpoint, read
from verify.kernel.proof import Proof, run
from verify.kernel.terms import Terms
from verify.prover.search import Claim, Search


def search(directory: Path) -> tuple[Proof, list[Claim]]:
    """What is proved of a checkpoint, and by which claims; Unproved where the search finds none."""
    return search_of(read(directory))


def search_of(checkpoint: Checkpoint, source: type[Search] = Search) -> tuple[Proof, list[Claim]]:
    """The same of files that have been read."""
    terms = Terms(checkpoint.language)
    found = source(terms)
    return run(checkpoint, terms, found), found.claims
