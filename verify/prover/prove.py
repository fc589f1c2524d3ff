"""Search for the claims that prove a checkpoint: `certificate` returns them as the kernel reads them."""

from __future__ import annotations

from pathlib import Path

from verify.kernel.files import read
from verify.kernel.proof import Proof, run
from verify.kernel.terms import Terms
from verify.prover.search import Claim, Search


def search(directory: Path) -> tuple[Proof, list[Claim]]:
    """What is proved of a checkpoint, and by which claims; Unproved where the search finds none."""
    checkpoint = read(directory)
    terms = Terms(checkpoint.language)
    found = Search(terms)
    return run(checkpoint, terms, found), found.claims
